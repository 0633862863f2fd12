package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// tryCall is like call, for any goroutine.
func tryCall(t testing.TB, c *http.Client, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// stampGroup returns a group with the kind Stamp, in a separate scheme.
func stampGroup(name string) server.Group {
	return server.Group{Name: name, Scheme: runtime.NewScheme(), Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Stamp", untypedOptions{Hub: true, Schema: specFields{"a": nil}}),
	}}}}
}

func stamp(group, metadata string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Stamp","metadata":{%s}}`, group, metadata)
}

func stampPath(group string) string { return "/apis/" + group + "/v1/namespaces/default/stamps" }

// guarded is an extension that serves a kind, judges its objects by a plug-in, and allows group stampers everything with it.
func guarded(group string) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		// The kind is added first: it must not be served without its guards, although Install adds them later.
		if err := h.Serve(stampGroup(group)); err != nil {
			return err
		}
		err := h.Admit(admission.Plugin{Name: "guard-" + group, Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			if r.Resource.Group == group {
				return errors.New("judged")
			}
			return nil
		})})
		if err != nil {
			return err
		}
		return h.Authorize("guard-"+group, authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
			if a.APIGroup == group && slices.Contains(a.User.Groups, "stampers") {
				return authz.Allow, "", nil
			}
			return authz.NoOpinion, "", nil
		}))
	})
}

// A kind of an extension is never served without the plug-in and the authorizer of the extension.
func TestInstalledKindIsGuardedFromTheFirst(t *testing.T) {
	t.Parallel()
	const installs, clients = 30, 8
	srv := servertest.New(t)
	admin, stamper := srv.Client(), srv.ClientOf(srv.AddUser(authn.User{Name: "st", Groups: []string{"stampers"}}))
	groupOf := func(n int64) string { return fmt.Sprintf("g%d.example.com", n) }
	var now atomic.Int64 // number of the extension to install
	var over atomic.Bool
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for !over.Load() && !t.Failed() {
				group := groupOf(now.Load())
				path, body := stampPath(group), stamp(group, `"generateName":"a-"`)
				// For the administrator the kind does not exist, or the plug-in refuses the request.
				code, got := tryCall(t, admin, "POST", srv.URL+path, body)
				if code != 404 && (code != 403 || !strings.Contains(got, "judged")) {
					t.Errorf("client %d, POST %s: %d %s", i, path, code, got)
				}
				// For others it is forbidden, does not exist, or the plug-in refuses the request.
				code, got = tryCall(t, stamper, "POST", srv.URL+path, body)
				if code != 404 && code != 403 {
					t.Errorf("client %d, a stamper's POST %s: %d %s", i, path, code, got)
				}
			}
		})
	}
	defer all.Wait()
	defer over.Store(true)
	for n := range int64(installs) {
		now.Store(n)
		if err := srv.Install(guarded(groupOf(n))); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*http.Client{admin, stamper} {
			if code, body := tryCall(t, c, "POST", srv.URL+stampPath(groupOf(n)), stamp(groupOf(n), `"name":"a"`)); code != 403 || !strings.Contains(body, "judged") {
				t.Errorf("installed: %d %s", code, body)
			}
		}
	}
}

// A request that was authenticated before the extension was installed does not reach its kind and path: the policy of the request
// does not have their guards.
func TestRequestOfBeforeDoesNotReachWhatIsInstalled(t *testing.T) {
	t.Parallel()
	const group = "late.example.com"
	came, goesOn := make(chan struct{}, 5), make(chan struct{})
	// Behind "policy", and before the routes.
	wait := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Wait") != "" {
				came <- struct{}{}
				<-goesOn
			}
			next.ServeHTTP(w, r)
		})
	}
	srv := servertest.Start(t, server.Options{Serving: server.Serving{Filters: func(list []server.NamedFilter) []server.NamedFilter {
		return append(list, server.NamedFilter{Name: "wait", Filter: wait})
	}}})
	var all sync.WaitGroup
	paths := []string{stampPath(group), "/late", "/apis/far.example.com/v1/things", "/nowhere", "/apis/nowhere.example.com/v1/things"}
	for _, path := range paths {
		all.Go(func() {
			if code, body := tryCall(t, srv.Client(), "POST", srv.URL+path, stamp(group, `"name":"early"`), "X-Wait", "1"); code != 404 {
				t.Errorf("%s: %d %s", path, code, body)
			}
		})
	}
	for range paths {
		<-came
	}
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return errors.Join(guarded(group).Install(h), h.Handle("/late", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})),
			h.Delegate(farVersion, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})),
			h.NotFound("late", func(http.ResponseWriter, *http.Request) bool { return true }))
	}))
	if err != nil {
		t.Error(err)
	}
	close(goesOn)
	all.Wait()
	if code, body := tryCall(t, srv.Client(), "POST", srv.URL+paths[0], stamp(group, `"name":"a"`)); code != 403 || !strings.Contains(body, "judged") {
		t.Errorf("afterwards: %d %s", code, body)
	}
	for _, path := range paths[1:] {
		if code, body := tryCall(t, srv.Client(), "POST", srv.URL+path, ""); code != 200 {
			t.Errorf("afterwards: %s: %d %s", path, code, body)
		}
	}
}

// state has everything that an Install may change.
func state(t *testing.T, srv *servertest.Server) string {
	t.Helper()
	var out strings.Builder
	for _, path := range []string{"/apis", "/readyz?verbose", "/", "/extra", "/extra/below", stampPath("half.example.com")} {
		code, body := tryCall(t, srv.Client(), "GET", srv.URL+path, "")
		fmt.Fprintln(&out, path, code, body)
	}
	code, body := tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath+"?dryRun=All", `{"metadata":{"name":"a"}}`)
	fmt.Fprintln(&out, "admission", code, strings.Contains(body, "is forbidden"))
	for _, user := range []string{"", "half"} {
		code, _ := tryCall(t, srv.Anonymous(), "GET", srv.URL+widgetsPath, "", "X-Half", user)
		fmt.Fprintln(&out, "user", user, code)
	}
	// Paths that another extension has added stay.
	return strings.Join(slices.DeleteFunc(strings.Split(out.String(), "\n"), func(line string) bool {
		return strings.Contains(line, "/taken/")
	}), "\n")
}

// half is an extension that adds something by each method, and then calls end.
type half struct {
	end            func(h *server.Host) error
	begun, stopped atomic.Int32
	closed         atomic.Int32
}

func (x *half) Install(h *server.Host) error {
	h.Go(func(ctx context.Context) {
		x.begun.Add(1)
		<-ctx.Done()
		x.stopped.Add(1)
	})
	h.OnClose(func() { x.closed.Add(1) })
	refuse := func(context.Context, *admission.Request) error { return errors.New("half") }
	err := errors.Join(
		h.Check(server.Check{Name: "half", Check: func(context.Context) error { return nil }}),
		h.Serve(stampGroup("half.example.com")),
		h.Admit(admission.Plugin{Name: "half", Validator: admission.ValidatorFunc(refuse)}),
		h.Authorize("half", authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
			if a.User.Name == "half" {
				return authz.Allow, "", nil
			}
			return authz.NoOpinion, "", nil
		})),
		h.Authenticate("half", authn.Func(func(r *http.Request) (*authn.Response, error) {
			if name := r.Header.Get("X-Half"); name != "" {
				return &authn.Response{User: authn.User{Name: name}}, nil
			}
			return nil, nil
		})),
		h.Handle("/extra/", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "extra") })),
	)
	return errors.Join(err, x.end(h))
}

// taker serves a path that another extension is about to serve.
type taker struct{ path string }

func (x taker) Install(h *server.Host) error { return h.Handle(x.path, http.NotFoundHandler()) }

// If an Install fails, for any reason, nothing of it is left, and it may be tried again.
func TestInstallThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	failure := errors.New("no more")
	for name, end := range map[string]func(srv *servertest.Server, n int) error{
		"it returns an error": func(*servertest.Server, int) error { return failure },
		"a path is taken while it is installed": func(srv *servertest.Server, n int) error {
			return srv.Install(taker{fmt.Sprintf("/taken/%d", n)})
		},
		"it panics": func(*servertest.Server, int) error { panic(failure) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := servertest.New(t, widgets())
			before := state(t, srv)
			install := func(x server.Extension) (panicked any, err error) {
				defer func() { panicked = recover() }()
				return nil, srv.Install(x)
			}
			for n := range 3 {
				x := &half{}
				x.end = func(h *server.Host) error {
					if err := h.Handle(fmt.Sprintf("/taken/%d", n), http.NotFoundHandler()); err != nil {
						return err
					}
					return end(srv, n)
				}
				panicked, err := install(x)
				if err == nil && panicked == nil {
					t.Fatal("it succeeds")
				}
				if (panicked != nil) != (name == "it panics") {
					t.Errorf("panicked with %v", panicked)
				}
				if x.begun.Load() != 1 || x.stopped.Load() != 1 || x.closed.Load() != 1 {
					t.Errorf("try %d: %d begun, %d stopped, %d closed", n, x.begun.Load(), x.stopped.Load(), x.closed.Load())
				}
				after := state(t, srv)
				if after != before {
					t.Errorf("try %d: before:\n%s\nafter:\n%s", n, before, after)
				}
			}
			x := &half{end: func(*server.Host) error { return nil }}
			if panicked, err := install(x); err != nil || panicked != nil {
				t.Fatal(err, panicked)
			}
			if code, body := tryCall(t, srv.Client(), "POST", srv.URL+stampPath("half.example.com"), stamp("half.example.com", `"name":"a"`)); code != 403 || !strings.Contains(body, "half") {
				t.Errorf("installed in the end: %d %s", code, body)
			}
			if code, body := tryCall(t, srv.Client(), "GET", srv.URL+"/readyz/half", ""); code != 200 {
				t.Errorf("its check: %d %s", code, body)
			}
		})
	}
}
