package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/servertest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// swells is a computed storage that behaves in ways in which a program's storage should not.
type swells struct {
	entered chan struct{} // receives a value for each read of "slack"
	release chan struct{} // closed to let these reads return
}

func (s swells) Get(_ *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	switch name {
	case "rip":
		panic("carried away")
	case "slack": // ignores its context
		s.entered <- struct{}{}
		<-s.release
	}
	m := &Moon{}
	m.Name = name
	return m, nil
}

const swellsPath = "/apis/sea.example.com/v1/swells/"

// startSwells starts a server of swells where everybody may do everything. Requests of system:masters are never refused, so the
// tests use other users.
func startSwells(t *testing.T, opts server.Options) (*servertest.Server, swells) {
	t.Helper()
	s := swells{make(chan struct{}, 10), make(chan struct{})}
	opts.Policy.Authorizer = authz.AlwaysAllow()
	opts.Groups = []server.Group{{Name: "sea.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Swell", server.KindOptions[*Moon]{ClusterScoped: true, Storage: s}),
	}}}}}
	srv := servertest.Start(t, opts)
	t.Cleanup(func() { // before the server ends
		select {
		case <-s.release:
		default:
			close(s.release)
		}
	})
	return srv, s
}

func TestChainHasEveryFilterInItsPlace(t *testing.T) {
	t.Parallel()
	want := []string{
		"recover", "unread-body", "audit-id", "header-fields", "received-at", "address", "request-info", "slow", "log", "starting", "retry-after", "hsts", "cache-control", "goaway", "origin",
		"in-flight-wait", "lasting", "deadline", "timeout", "warnings", "cors", "policy", "authenticate", "audit", "impersonate", "in-flight", "header-bytes", "authorize",
		"long-running", "metrics",
	}
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	if got := srv.Chain(); !slices.Equal(got, want) {
		t.Errorf("the chain is %q, want %q", got, want)
	}
}

func TestAPanicIsOneFailedRequest(t *testing.T) {
	t.Parallel()
	srv, _ := startSwells(t, server.Options{})
	code, body := call(t, srv.Client(), "GET", srv.URL+swellsPath+"rip", "")
	if code != 500 || !strings.Contains(body, "This request caused apiserver to panic. Look in the logs for details.") || strings.Contains(body, "carried away") {
		t.Errorf("answered %d %s", code, body)
	}
	code, body = call(t, srv.Client(), "GET", srv.URL+swellsPath+"neap", "")
	wantCode(t, 200, code, body)
}

func TestRequestsHaveATimeout(t *testing.T) {
	t.Parallel()
	srv, _ := startSwells(t, server.Options{Limits: server.Limits{RequestTimeout: 50 * time.Millisecond}})
	code, body := call(t, srv.Client(), "GET", srv.URL+swellsPath+"slack", "")
	if code != 504 || !strings.Contains(body, `"kind":"Status"`) || !strings.Contains(body, `"reason":"Timeout"`) {
		t.Errorf("answered %d %s", code, body)
	}
}

func TestRequestsInFlightAreBounded(t *testing.T) {
	t.Parallel()
	srv, s := startSwells(t, server.Options{Limits: server.Limits{MaxReadsInFlight: 1}})
	anybody, admin := srv.Anonymous(), srv.Client()
	first := make(chan int, 1)
	go func() { // ends when the swell is released
		resp, err := anybody.Get(srv.URL + swellsPath + "slack")
		if err != nil {
			first <- 0
			return
		}
		_ = resp.Body.Close()
		first <- resp.StatusCode
	}()
	<-s.entered
	resp, err := anybody.Get(srv.URL + swellsPath + "neap")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("one read too many is answered %s, Retry-After %q", resp.Status, resp.Header.Get("Retry-After"))
	}
	code, body := call(t, admin, "GET", srv.URL+swellsPath+"neap", "")
	wantCode(t, 200, code, body)
	close(s.release)
	if code := <-first; code != 200 {
		t.Errorf("the first read is answered %d", code)
	}
	code, body = call(t, anybody, "GET", srv.URL+swellsPath+"neap", "")
	wantCode(t, 200, code, body)
}

// Each filter can be left out, and the server still serves, except for the filters that guard it, which take Serving.TrustFilters.
// With that, each can also be replaced.
func TestEachFilterCanBeLeftOutOrReplaced(t *testing.T) {
	t.Parallel()
	plain, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = plain.Close() }()
	pass := func(next http.Handler) http.Handler { return next }
	for _, name := range plain.Chain() {
		leaveOut := func(l []server.NamedFilter) []server.NamedFilter {
			return slices.DeleteFunc(l, func(f server.NamedFilter) bool { return f.Name == name })
		}
		replace := func(l []server.NamedFilter) []server.NamedFilter {
			l[indexOf(l, name)].Filter = pass
			return l
		}
		guard := slices.Contains(server.Guards(), name)
		for what, serving := range map[string]server.Serving{
			"left out": {Filters: leaveOut}, "left out with trust": {Filters: leaveOut, TrustFilters: true}, "replaced with trust": {Filters: replace, TrustFilters: true},
		} {
			srv, err := server.New(server.Options{Groups: []server.Group{widgets()}, Serving: serving})
			if refused := guard && !serving.TrustFilters; (err != nil) != refused {
				t.Errorf("%s %s: %v", name, what, err)
			}
			if err != nil {
				continue
			}
			handler := srv.Handler()
			ask := func() *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), "GET", widgetsPath, http.NoBody)
				r.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				return w
			}
			w := ask()
			for w.Code == http.StatusServiceUnavailable { // until the server has been ready
				time.Sleep(time.Millisecond)
				w = ask()
			}
			want := http.StatusOK
			switch name {
			case server.FilterAuthenticate: // there is no user whom authorization could allow anything
				want = http.StatusForbidden
			case server.FilterRequestInfo: // nobody knows which resource the request is for
				want = http.StatusNotFound
			}
			if w.Code != want {
				t.Errorf("%s %s: answered %d %s", name, what, w.Code, w.Body)
			}
			if err := srv.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// traced is what a filter that traces requests knows of a request.
type traced struct {
	verb, resource, auditID, user string
	code                          int
}

// codeWriter is an http.ResponseWriter as tracing has it.
type codeWriter struct {
	http.ResponseWriter
	code int
}

func (w *codeWriter) WriteHeader(code int) {
	w.code = code
	w.ResponseWriter.WriteHeader(code)
}

func (w *codeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// tracing returns Serving.Filters with a filter behind the one with that name. The filter sends what it knows of each request.
func tracing(behind string, to chan<- traced) func([]server.NamedFilter) []server.NamedFilter {
	filter := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer := &codeWriter{ResponseWriter: w, code: http.StatusOK}
			next.ServeHTTP(answer, r)
			one := traced{auditID: request.AuditIDFrom(r.Context()), code: answer.code}
			if info := request.InfoFrom(r.Context()); info != nil {
				one.verb, one.resource = info.Verb, info.Resource
			}
			if user := authn.UserFrom(r.Context()); user != nil {
				one.user = user.Name
			}
			to <- one
		})
	}
	return func(chain []server.NamedFilter) []server.NamedFilter {
		return server.InsertAfter(chain, behind, server.NamedFilter{Name: "tracing", Filter: filter})
	}
}

// A filter that traces requests has a place behind authentication, as in kube-apiserver, and another that sees all requests.
func TestTracingHasAPlace(t *testing.T) {
	t.Parallel()
	for behind, wants := range map[string]map[string]traced{ // by the token
		server.FilterAuthenticate: {"": {"list", "widgets", "id", "system:anonymous", 403}, "bob": {"list", "widgets", "id", "bob", 200}, "unknown": {}},
		server.FilterRequestInfo:  {"": {"list", "widgets", "id", "", 403}, "bob": {"list", "widgets", "id", "", 200}, "unknown": {"list", "widgets", "id", "", 401}},
	} {
		seen := make(chan traced, 100)
		may := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
			if a.User.Name == "bob" || !a.ResourceRequest {
				return authz.Allow, "", nil
			}
			return authz.Deny, "", nil
		})
		srv := servertest.Start(t, server.Options{
			Groups:  []server.Group{widgets()},
			Policy:  server.Policy{Users: map[string]authn.User{"bob": {Name: "bob"}}, Authorizer: may},
			Serving: server.Serving{Filters: tracing(behind, seen), TrustFilters: true},
		})
		for drained := false; !drained; { // of the requests of Start
			select {
			case <-seen:
			default:
				drained = true
			}
		}
		for token, want := range wants {
			header := []string{"Audit-ID", "id"}
			if token != "" {
				header = append(header, "Authorization", "Bearer "+token)
			}
			code, body := call(t, srv.Anonymous(), "GET", srv.URL+widgetsPath, "", header...)
			var got traced
			if want != got { // it was traced
				got = <-seen
				wantCode(t, want.code, code, body)
			}
			if got != want || len(seen) > 0 {
				t.Errorf("behind %s, token %q: %+v, want %+v", behind, token, got, want)
			}
		}
	}
}
