package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// loader is a member of any kind that is not ready until it has loaded.
type loader struct {
	loaded atomic.Bool
	asked  atomic.Int32 // number of calls of Ready
	unable authz.Verdict
}

var errLoading = errors.New("loading")

func (l *loader) Ready(context.Context) error {
	l.asked.Add(1)
	if l.loaded.Load() {
		return nil
	}
	return errLoading
}

func (l *loader) judge() error {
	if !l.loaded.Load() {
		return errors.New("judged before it has loaded")
	}
	return nil
}

func (l *loader) Mutate(context.Context, *admission.Request) error   { return l.judge() }
func (l *loader) Validate(context.Context, *admission.Request) error { return l.judge() }

func (l *loader) Authorize(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	switch {
	case !l.loaded.Load() && l.unable == authz.Deny:
		return authz.Deny, "", errLoading
	case !l.loaded.Load() || a.User.Name != "reader":
		return authz.NoOpinion, "", nil
	}
	return authz.Allow, "", nil
}

func (l *loader) Authenticate(r *http.Request) (*authn.Response, error) {
	switch {
	case r.Header.Get("X-Reader") == "":
		return nil, nil
	case !l.loaded.Load():
		return nil, errLoading
	}
	return &authn.Response{User: authn.User{Name: "reader"}}, nil
}

// wantReady checks whether /readyz names a check as failing.
func wantReady(t *testing.T, srv *servertest.Server, check string, want bool) {
	t.Helper()
	code, body := tryCall(t, srv.Client(), "GET", srv.URL+"/readyz?verbose", "")
	line := "[-]" + check + " failed"
	if want {
		line = "[+]" + check + " ok"
	}
	if (code == 200) != want || !strings.Contains(body, line) {
		t.Errorf("/readyz: %d %s, want %s", code, body, line)
	}
}

// Requests wait ten seconds for a plug-in that is not ready, with one poll for all of them. Then they are refused, or they
// continue when the plug-in becomes ready.
func TestPluginThatIsNotReady(t *testing.T) {
	t.Parallel()
	for name, plugin := range map[string]func(l *loader) admission.Plugin{
		"a mutator":   func(l *loader) admission.Plugin { return admission.Plugin{Name: "slow", Mutator: l} },
		"a validator": func(l *loader) admission.Plugin { return admission.Plugin{Name: "slow", Validator: l} },
		"both":        func(l *loader) admission.Plugin { return admission.Plugin{Name: "slow", Mutator: l, Validator: l} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, srv := &loader{}, servertest.New(t, widgets())
				if err := host(t, srv).Admit(plugin(l)); err != nil {
					t.Fatal(err)
				}
				wantReady(t, srv, "admission-slow", false)
				if code, body := tryCall(t, srv.Client(), "GET", srv.URL+widgetsPath, ""); code != 200 {
					t.Errorf("a read, which it does not judge: %d %s", code, body)
				}
				post := func(want int, text string, took time.Duration) {
					began := time.Now()
					code, body := tryCall(t, srv.Client(), "POST", srv.URL+widgetsPath, `{"metadata":{"generateName":"a-"}}`)
					if waited := time.Since(began); code != want || !strings.Contains(body, text) || waited != took {
						t.Errorf("after %v: %d %s, want %d after %v", waited, code, body, want, took)
					}
				}
				l.asked.Store(0)
				var all sync.WaitGroup
				for range 20 {
					all.Go(func() { post(403, "not yet ready to handle request", 10*time.Second) })
				}
				all.Wait()
				if asked := l.asked.Load(); asked > 600 { // one call each 50 ms, for both parts of the plug-in
					t.Errorf("20 requests asked %d times", asked)
				}
				for range 20 {
					all.Go(func() { post(201, "", 4*time.Second) })
				}
				time.Sleep(4*time.Second - time.Millisecond)
				l.loaded.Store(true)
				all.Wait()
				post(201, "", 0)
				wantReady(t, srv, "admission-slow", true)
			})
		})
	}
}

// Until it is ready, an authorizer that can only allow abstains, and one that could deny denies, whichever authorizers come after
// it.
func TestAuthorizerThatIsNotReady(t *testing.T) {
	t.Parallel()
	for unable, codes := range map[authz.Verdict][2]int{authz.NoOpinion: {403, 200}, authz.Deny: {500, 500}} {
		l, srv := &loader{unable: unable}, servertest.New(t, widgets())
		h := host(t, srv)
		reader := srv.ClientOf(srv.AddUser(authn.User{Name: "reader"}))
		get := func(when string, want int) {
			t.Helper()
			if code, body := tryCall(t, reader, "GET", srv.URL+widgetsPath, ""); code != want {
				t.Errorf("%d, %s: %d %s, want %d", unable, when, code, body, want)
			}
		}
		if err := h.Authorize("slow", l); err != nil {
			t.Fatal(err)
		}
		wantReady(t, srv, "authorizer-slow", false)
		get("alone", codes[0])
		if err := h.Authorize("later", allowing("reader", "list")); err != nil {
			t.Fatal(err)
		}
		get("before another that allows", codes[1])
		l.loaded.Store(true)
		wantReady(t, srv, "authorizer-slow", true)
		get("ready", 200)
		if err := h.RemoveAuthorizer("slow"); err != nil {
			t.Fatal(err)
		}
		if _, body := tryCall(t, srv.Client(), "GET", srv.URL+"/readyz?verbose", ""); strings.Contains(body, "authorizer-slow") {
			t.Errorf("removed: %s", body)
		}
	}
}

// A request with a credential that an authenticator cannot judge yet is not taken for one of system:anonymous.
func TestAuthenticatorThatIsNotReady(t *testing.T) {
	t.Parallel()
	l, srv := &loader{}, servertest.New(t, widgets())
	h := host(t, srv)
	if err := errors.Join(h.Authenticate("slow", l), h.Authorize("all", authz.AlwaysAllow())); err != nil {
		t.Fatal(err)
	}
	get := func(want int, header ...string) {
		t.Helper()
		if code, body := tryCall(t, srv.Anonymous(), "GET", srv.URL+widgetsPath, "", header...); code != want {
			t.Errorf("%q: %d %s, want %d", header, code, body, want)
		}
	}
	wantReady(t, srv, "authenticator-slow", false)
	get(401, "X-Reader", "1")
	get(200)
	l.loaded.Store(true)
	wantReady(t, srv, "authenticator-slow", true)
	get(200, "X-Reader", "1")
}

// /readyz also calls the members that are in the options, and members of a union.
func TestMembersOfTheOptionsThatAreNotReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		who, may, judges := &loader{}, &loader{}, &loader{}
		srv, err := server.New(server.Options{Groups: []server.Group{widgets()}, Policy: server.Policy{
			Authenticator: who, Authorizer: authz.Union(authz.AlwaysAllow(), may), Admission: admission.Chain{{Validator: judges}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		}()
		for _, next := range []struct {
			check string
			of    *loader
		}{{"authenticator-options", who}, {"authorizer-options", may}, {"admission-options-0", judges}} {
			if err := srv.CheckReady(t.Context()); err == nil || err.Error() != next.check+": loading" {
				t.Errorf("%v, want %s", err, next.check)
			}
			if next.of != judges {
				next.of.loaded.Store(true)
			}
		}
		c := &http.Client{Transport: handled{srv.Handler()}}
		began := time.Now()
		code, body := tryCall(t, c, "POST", "http://localhost"+widgetsPath, `{"metadata":{"name":"a"}}`, "X-Reader", "1")
		if took := time.Since(began); code != 403 || !strings.Contains(body, "not yet ready to handle request") || took != 10*time.Second {
			t.Errorf("after %v: %d %s", took, code, body)
		}
		judges.loaded.Store(true)
		if err := srv.CheckReady(t.Context()); err != nil {
			t.Error(err)
		}
		if code, body := tryCall(t, c, "POST", "http://localhost"+widgetsPath, `{"metadata":{"name":"a"}}`, "X-Reader", "1"); code != 201 {
			t.Errorf("%d %s", code, body)
		}
	})
}

// handled is a transport that calls a handler.
type handled struct{ http.Handler }

func (h handled) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}
