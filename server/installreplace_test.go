package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const stampsGroup = "stamps.example.com"

var stampsResource = schema.GroupResource{Group: stampsGroup, Resource: "stamps"}

// edition returns the kind Stamp; its objects have the number of the edition that made them.
func edition(n int) server.Group {
	return server.Group{Name: stampsGroup, Scheme: runtime.NewScheme(), Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Stamp", untypedOptions{Hub: true, Schema: specFields{"edition": int64(n)}}),
	}}}}
}

// judgedBy returns a plug-in that refuses stamps of editions after n.
func judgedBy(n int) admission.Plugin {
	return admission.Plugin{Name: "editions", Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		if u, ok := r.Object().(*unstructured.Unstructured); ok {
			if got, _, _ := unstructured.NestedInt64(u.Object, "spec", "edition"); got > int64(n) {
				return fmt.Errorf("edition %d is judged by the plug-in of edition %d", got, n)
			}
		}
		return nil
	})}
}

// reissued is an extension that replaces stamps, and then their plug-in.
func reissued(n int, end func(h *server.Host) error) server.Extension {
	return server.ExtensionFunc(func(h *server.Host) error {
		return errors.Join(h.Replace([]schema.GroupResource{stampsResource}, edition(n)), h.Admit(judgedBy(n)), end(h))
	})
}

func nothingMore(*server.Host) error { return nil }

const newStamp = `{"apiVersion":"` + stampsGroup + `/v1","kind":"Stamp","metadata":{"generateName":"a-"},"spec":{}}`

// A kind that an Install replaces is never served without its new guards.
func TestReplacedKindIsGuardedFromTheFirst(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, edition(0))
	var over atomic.Bool
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for !over.Load() && !t.Failed() {
				if code, body := tryCall(t, srv.Client(), "POST", srv.URL+stampPath(stampsGroup), newStamp); code != 201 && code != 429 && code != 503 {
					t.Errorf("%d %s", code, body)
				}
			}
		})
	}
	defer all.Wait()
	defer over.Store(true)
	for n := 1; n <= 30; n++ {
		if err := srv.Install(reissued(n, nothingMore)); err != nil {
			t.Fatal(err)
		}
		if code, body := tryCall(t, srv.Client(), "POST", srv.URL+stampPath(stampsGroup), newStamp); code != 201 || !strings.Contains(body, fmt.Sprintf(`"edition":%d`, n)) {
			t.Errorf("edition %d is installed: %d %s", n, code, body)
		}
	}
}

// Resources that an Install replaces or withdraws are served until it returns, and stay if it fails.
func TestReplacedKindIsServedUntilInstallReturns(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, edition(0), widgets())
	h := host(t, srv)
	served := func(when string, n int) {
		t.Helper()
		if code, body := tryCall(t, srv.Client(), "POST", srv.URL+stampPath(stampsGroup), newStamp); code != 201 || !strings.Contains(body, fmt.Sprintf(`"edition":%d`, n)) {
			t.Errorf("%s: %d %s, want edition %d", when, code, body, n)
		}
	}
	withdrawn := func(when string, want int) {
		t.Helper()
		if code, body := tryCall(t, srv.Client(), "GET", srv.URL+widgetsPath, ""); code != want {
			t.Errorf("%s: widgets are answered with %d %s, want %d", when, code, body, want)
		}
	}
	discovery := func() string {
		_, body := tryCall(t, srv.Client(), "GET", srv.URL+"/apis/"+stampsGroup+"/v1", "")
		return body
	}
	before := discovery()
	failure := errors.New("no more")
	during := func(h2 *server.Host) error {
		if err := h2.Withdraw(widgetsResource()); err != nil {
			t.Error(err)
		}
		if err := h2.ShowVerbs(stampsResource, "get"); err != nil {
			t.Error(err)
		}
		if err := h2.Withdraw(widgetsResource()); err == nil || !strings.Contains(err.Error(), "is not served") {
			t.Errorf("withdrawn twice: %v", err)
		}
		served("during Install", 0)
		withdrawn("during Install", 200)
		if got := discovery(); got != before {
			t.Errorf("during Install discovery shows %s", got)
		}
		// Other extensions cannot change a resource that is being changed, and may change others.
		for name, err := range map[string]error{
			"Withdraw": h.Withdraw(stampsResource), "Replace": h.Replace([]schema.GroupResource{stampsResource}, edition(9)), "Withdraw of what leaves": h.Withdraw(widgetsResource()),
		} {
			if err == nil || !strings.Contains(err.Error(), "another extension") {
				t.Errorf("%s by another: %v", name, err)
			}
		}
		if err := h.Serve(edition(9)); !errors.Is(err, server.ErrServed) {
			t.Errorf("Serve by another: %v", err)
		}
		if _, err := h2.Registry(widgetsResource()); err == nil {
			t.Error("to the extension what it has withdrawn is still there")
		}
		return h2.Replace([]schema.GroupResource{stampsResource}, edition(2)) // in place of edition 1
	}
	if err := srv.Install(reissued(1, func(h2 *server.Host) error { return errors.Join(during(h2), failure) })); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	served("after Install failed", 0)
	withdrawn("after Install failed", 200)
	if got := discovery(); got != before {
		t.Errorf("after Install failed discovery shows %s", got)
	}
	if err := srv.Install(reissued(2, during)); err != nil {
		t.Fatal(err)
	}
	served("after Install", 2)
	withdrawn("after Install", 404)
	if err := h.Withdraw(stampsResource); err != nil {
		t.Errorf("after Install it is anybody's to withdraw: %v", err)
	}
}

// A resource that is not published yet cannot be withdrawn by another host.
func TestPendingKindIsItsExtensions(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	h := host(t, srv)
	err := srv.Install(server.ExtensionFunc(func(mine *server.Host) error {
		if err := mine.Serve(edition(1)); err != nil {
			return err
		}
		if err := h.Withdraw(stampsResource); err == nil {
			t.Error("another host has withdrawn it")
		}
		if err := h.Replace([]schema.GroupResource{stampsResource}); err == nil {
			t.Error("another host has replaced it")
		}
		return errors.Join(mine.Withdraw(stampsResource), mine.Serve(edition(2)))
	}))
	if err != nil {
		t.Fatal(err)
	}
	if code, body := tryCall(t, srv.Client(), "POST", srv.URL+stampPath(stampsGroup), newStamp); code != 201 || !strings.Contains(body, `"edition":2`) {
		t.Errorf("%d %s", code, body)
	}
}

// A request that was authenticated before a kind was replaced, and reaches it afterwards, is answered with 429: its policy does
// not have the new guards.
func TestRequestOfBeforeIsAskedAgain(t *testing.T) {
	t.Parallel()
	came, goesOn := make(chan struct{}), make(chan struct{})
	wait := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Wait") != "" {
				close(came)
				<-goesOn
			}
			next.ServeHTTP(w, r)
		})
	}
	srv := servertest.Start(t, server.Options{Groups: []server.Group{edition(0)}, Serving: server.Serving{Filters: func(list []server.NamedFilter) []server.NamedFilter {
		return append(list, server.NamedFilter{Name: "wait", Filter: wait})
	}}})
	var late sync.WaitGroup
	late.Go(func() {
		code, body := tryCall(t, srv.Client(), "POST", srv.URL+stampPath(stampsGroup), newStamp, "X-Wait", "1")
		if code != 429 || !strings.Contains(body, `"retryAfterSeconds":1`) {
			t.Errorf("%d %s", code, body)
		}
	})
	<-came
	err := srv.Install(reissued(1, nothingMore))
	close(goesOn)
	late.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if code, body := tryCall(t, srv.Client(), "POST", srv.URL+stampPath(stampsGroup), newStamp); code != 201 {
		t.Errorf("asked again: %d %s", code, body)
	}
}

// The host of an Install that has failed returns errors.
func TestHostOfAFailedInstall(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, edition(0))
	failure := errors.New("no more")
	for name, end := range map[string]func() error{
		"an error": func() error { return failure },
		"a panic":  func() error { panic(failure) },
	} {
		var h *server.Host
		changed := host(t, srv).Catalogue().Changed()
		before := state(t, srv)
		func() {
			defer func() { _ = recover() }()
			_ = srv.Install(server.ExtensionFunc(func(mine *server.Host) error { h = mine; return end() }))
		}()
		select {
		case <-changed: // the prepared resources are free
		default:
			t.Errorf("%s: who waits for what is served is not woken", name)
		}
		refuse := admission.ValidatorFunc(func(context.Context, *admission.Request) error { return failure })
		for method, err := range map[string]error{
			"Serve":               h.Serve(widgets()),
			"Withdraw":            h.Withdraw(stampsResource),
			"Replace":             h.Replace([]schema.GroupResource{stampsResource}, edition(1)),
			"ShowVerbs":           h.ShowVerbs(stampsResource, "get"),
			"Authenticate":        h.Authenticate("late", authn.Anonymous()),
			"Authorize":           h.Authorize("late", authz.AlwaysAllow()),
			"Admit":               h.Admit(admission.Plugin{Name: "late", Validator: refuse}),
			"Control":             h.Control(nil),
			"RemoveAuthenticator": h.RemoveAuthenticator("late"),
			"RemoveAuthorizer":    h.RemoveAuthorizer(server.MastersAuthorizer),
			"RemovePlugin":        h.RemovePlugin("late"),
			"CollectGarbage":      h.CollectGarbage(),
			"Check":               h.Check(server.Check{Name: "late", Check: func(context.Context) error { return failure }}),
			"Handle":              h.Handle("/extra", http.NotFoundHandler()),
			"Delegate":            h.Delegate(farVersion, http.NotFoundHandler()),
			"RemoveDelegate":      h.RemoveDelegate(farVersion),
			"NotFound":            h.NotFound("late", func(http.ResponseWriter, *http.Request) bool { return true }),
			"RemoveNotFound":      h.RemoveNotFound("late"),
			"Registry":            func() error { _, err := h.Registry(stampsResource); return err }(),
		} {
			if err == nil || !strings.Contains(err.Error(), "Install has failed") {
				t.Errorf("%s, %s: %v", name, method, err)
			}
		}
		called := 0
		h.OnClose(func() { called++ })
		h.Go(func(ctx context.Context) {
			if called++; ctx.Err() == nil {
				t.Error("work begins whose context has not ended")
			}
		})
		if called != 2 {
			t.Errorf("%s: %d of OnClose and Go were called at once", name, called)
		}
		if after := state(t, srv); after != before {
			t.Errorf("%s: before:\n%s\nafter:\n%s", name, before, after)
		}
	}
}

// Admit adds all of its plug-ins or none.
func TestAdmitTakesAllOrNone(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	refuse := admission.ValidatorFunc(func(context.Context, *admission.Request) error { return errors.New("refused") })
	if err := host(t, srv).Admit(admission.Plugin{Name: "good", Validator: refuse}, admission.Plugin{Name: "bad"}); !errors.Is(err, admission.ErrPlugin) {
		t.Errorf("it was taken: %v", err)
	}
	if code, body := tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`); code != 201 {
		t.Errorf("%d %s", code, body)
	}
}

// An authenticator that takes every request as one of system:anonymous does not lock the administrator out.
func TestAnonymousMemberHidesNobody(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	h := host(t, srv)
	if err := h.Authenticate("anonymous", authn.Anonymous()); err != nil {
		t.Fatal(err)
	}
	get := func(token string) int {
		var header []string
		if token != "" {
			header = []string{"Authorization", "Bearer " + token}
		}
		code, _ := tryCall(t, srv.Anonymous(), "GET", srv.URL+widgetsPath, "", header...)
		return code
	}
	if code := get(srv.Credentials().Token); code != 200 {
		t.Errorf("the administrator is answered with %d", code)
	}
	if code := get(""); code != 403 {
		t.Errorf("somebody without a credential is answered with %d", code)
	}
	if code := get("wrong"); code != 401 {
		t.Errorf("somebody with a token that nobody knows is answered with %d", code)
	}
	if err := h.Authenticate(authn.TokenWebhook, authn.Func(func(*http.Request) (*authn.Response, error) { return nil, errors.New("wrong") })); err != nil {
		t.Fatal(err)
	}
	if code := get(""); code != 401 {
		t.Errorf("a wrong credential is answered with %d", code)
	}
	if code := get(srv.Credentials().Token); code != 200 {
		t.Errorf("the administrator, whom another member does not know, is answered with %d", code)
	}
}

func TestWrapAuthenticatorMustReturnOne(t *testing.T) {
	t.Parallel()
	_, err := server.New(server.Options{Policy: server.Policy{WrapAuthenticator: func(authn.Authenticator) authn.Authenticator { return nil }}})
	if err == nil || !strings.Contains(err.Error(), "Policy.WrapAuthenticator returns nil") {
		t.Error(err)
	}
}
