package filters_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serve sends one request through f around h and returns the answer.
func serve(f filters.Filter, h http.HandlerFunc, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	filters.Chain(h, f).ServeHTTP(w, r)
	return w
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

// status reads a Status out of a JSON body.
func status(t *testing.T, body io.Reader) metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.NewDecoder(body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestChain(t *testing.T) {
	var order []string
	mark := func(name string) filters.Filter {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				order = append(order, name)
				next.ServeHTTP(w, r)
			})
		}
	}
	h := filters.Chain(http.HandlerFunc(ok), mark("a"), nil, mark("b"))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	if !slices.Equal(order, []string{"a", "b"}) {
		t.Errorf("order %q", order)
	}
}

func TestAuditID(t *testing.T) {
	var inner string
	h := func(_ http.ResponseWriter, r *http.Request) { inner = request.AuditIDFrom(r.Context()) }
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	w := serve(filters.AuditID(), h, r)
	if got := w.Header().Get("Audit-Id"); !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-`).MatchString(got) || got != inner {
		t.Errorf("answer %q, context %q", got, inner)
	}
	r.Header.Set("Audit-ID", "mine")
	if w := serve(filters.AuditID(), h, r); w.Header().Get("Audit-Id") != "mine" || inner != "mine" {
		t.Errorf("answer %q, context %q", w.Header().Get("Audit-Id"), inner)
	}
}

// An ID that a client gives is bounded: a longer one is in no header, no context and no log.
func TestLongAuditID(t *testing.T) {
	for length, want := range map[int]int{73: 200, 256: 200, 257: 400, 1 << 20: 400} {
		id, inner := strings.Repeat("x", length), ""
		r := httptest.NewRequest(http.MethodGet, "/version", nil)
		r.Header.Set("Audit-ID", id)
		w := serve(filters.AuditID(), func(_ http.ResponseWriter, r *http.Request) { inner = request.AuditIDFrom(r.Context()) }, r)
		got := w.Header().Get("Audit-Id")
		switch {
		case w.Code != want:
			t.Errorf("%d bytes: %d, want %d", length, w.Code, want)
		case want == 200 && (got != id || inner != id):
			t.Errorf("%d bytes: answer %q, context %q", length, got, inner)
		case want == 400:
			s := status(t, w.Body)
			if message := fmt.Sprintf("the Audit-ID header has %d bytes: it may have at most 256", length); s.Message != message || s.Reason != metav1.StatusReasonBadRequest {
				t.Errorf("%+v, want %q", s, message)
			}
			if len(got) != 36 || inner != "" {
				t.Errorf("%d bytes: answer %q, context %q", length, got, inner)
			}
		}
	}
}

func TestOrigin(t *testing.T) {
	console := func(origin string) bool { return origin == "https://console.example.com" }
	for _, c := range []struct {
		origin string
		plain  bool // the request came by HTTP
		allow  func(string) bool
		want   int
	}{
		{"", false, nil, 200},
		{"https://api.example.com:6443", false, nil, 200},
		{"https://API.example.com:6443", false, nil, 200},
		{"http://api.example.com:6443", false, nil, 403},
		{"http://api.example.com:6443", true, nil, 200},
		{"https://api.example.com:6443", true, nil, 200}, // a proxy has decrypted it
		{"https://api.example.com", false, nil, 403},
		{"https://api.example.com:6443.evil.example.org", false, nil, 403},
		{"https://evil.example.org/?api.example.com:6443", false, nil, 403},
		{"https://console.example.com", false, nil, 403},
		{"https://console.example.com", false, console, 200},
		{"https://elsewhere.example.com", false, console, 403},
		{"null", false, console, 403},
		{"null", false, func(origin string) bool { return origin == "null" }, 200},
		{"%zz", false, console, 403},
	} {
		r := httptest.NewRequest(http.MethodGet, "https://api.example.com:6443/api/v1/pods?watch=1", nil)
		if c.plain {
			r.TLS = nil
		}
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if w := serve(filters.Origin(c.allow), ok, r); w.Code != 200 {
			t.Errorf("%+v: %d without a WebSocket", c, w.Code)
		}
		r.Header.Set("Connection", "keep-alive, Upgrade")
		r.Header.Set("Upgrade", "websocket")
		if w := serve(filters.Origin(c.allow), ok, r); w.Code != c.want {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
		r.Header["Origin"] = append([]string{"https://api.example.com:6443"}, r.Header["Origin"]...) // all of them count
		r.Header.Set("Authorization", "Bearer t")                                                    // from a client that is not a browser
		if w := serve(filters.Origin(c.allow), ok, r); w.Code != 200 {
			t.Errorf("%+v, with a token: %d %s", c, w.Code, w.Body)
		}
		r.Header.Del("Authorization")
		if w := serve(filters.Origin(c.allow), ok, r); w.Code != c.want {
			t.Errorf("%+v, after another one: %d %s", c, w.Code, w.Body)
		}
	}
}

// A page can change something by requests of the browser only if it has the server's own origin, or an allowed one.
func TestOriginOfWrites(t *testing.T) {
	console := func(origin string) bool { return origin == "https://console.example.com" }
	const own, foreign = "https://api.example.com:6443", "https://evil.example.org"
	for _, c := range []struct {
		method, origin, site string
		credentials          string
		want                 int
	}{
		{method: "POST", want: 200},
		{method: "POST", origin: own, want: 200},
		{method: "POST", origin: own, site: "same-origin", want: 200},
		{method: "POST", origin: "https://hidden.example.com", site: "same-origin", want: 200}, // behind a proxy of another name
		{method: "POST", origin: "null", site: "same-origin", want: 200},                       // a page that hides its origin
		{method: "POST", origin: foreign, want: 403},
		{method: "POST", origin: foreign, site: "cross-site", want: 403},
		{method: "POST", origin: foreign, site: "same-site", want: 403},
		{method: "POST", origin: foreign, site: "cross-site", credentials: "Bearer t", want: 200},
		{method: "POST", origin: foreign, site: "cross-site", credentials: "Basic eDp5", want: 403}, // credentials that a browser may add
		{method: "POST", origin: foreign, site: "cross-site", credentials: "Negotiate t", want: 403},
		{method: "POST", origin: "null", site: "cross-site", want: 403},
		{method: "POST", site: "cross-site", want: 403},
		{method: "POST", site: "none", want: 200},
		{method: "POST", origin: "https://console.example.com", site: "cross-site", want: 200},
		{method: "DELETE", origin: foreign, want: 403},
		{method: "PUT", origin: foreign, want: 403},
		{method: "PATCH", origin: foreign, want: 403},
		{method: "GET", origin: foreign, site: "cross-site", want: 200},
		{method: "HEAD", origin: foreign, site: "cross-site", want: 200},
		{method: "OPTIONS", origin: foreign, site: "cross-site", want: 200},
	} {
		r := httptest.NewRequest(c.method, own+"/api/v1/pods", nil)
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site, "Authorization": c.credentials} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		if w := serve(filters.Origin(console), ok, r); w.Code != c.want {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

func TestReceivedAt(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	serve(filters.ReceivedAt(func() time.Time { return at }), func(_ http.ResponseWriter, r *http.Request) {
		if got, known := request.ReceivedFrom(r.Context()); !known || !got.Equal(at) {
			t.Errorf("%v, %v", got, known)
		}
	}, httptest.NewRequest(http.MethodGet, "/", nil))
	serve(filters.ReceivedAt(nil), func(_ http.ResponseWriter, r *http.Request) {
		if got, _ := request.ReceivedFrom(r.Context()); got.IsZero() {
			t.Error("zero")
		}
	}, httptest.NewRequest(http.MethodGet, "/", nil))
}

func TestRequestInfo(t *testing.T) {
	w := serve(filters.RequestInfo(request.Resolver{}), func(_ http.ResponseWriter, r *http.Request) {
		if info := request.InfoFrom(r.Context()); info == nil || info.Resource != "widgets" || info.Verb != "list" {
			t.Errorf("%+v", info)
		}
	}, httptest.NewRequest(http.MethodGet, "/apis/g/v/widgets", nil))
	if w.Code != 200 {
		t.Errorf("code %d", w.Code)
	}
	w = serve(filters.RequestInfo(request.Resolver{}), func(http.ResponseWriter, *http.Request) { t.Error("served") }, httptest.NewRequest(http.MethodGet, "/api/v1/watch", nil))
	if s := status(t, w.Body); w.Code != 400 || s.Reason != "BadRequest" || s.Message != "unable to determine kind and namespace from url, /api/v1/watch" {
		t.Errorf("%d %+v", w.Code, s)
	}
}

func TestCacheControl(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if got := serve(filters.CacheControl(), ok, r).Header().Get("Cache-Control"); got != "no-cache, private" {
		t.Error(got)
	}
	own := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "public") }
	if got := serve(filters.CacheControl(), own, r).Header().Get("Cache-Control"); got != "public" {
		t.Error(got)
	}
	before := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "public")
			next.ServeHTTP(w, r)
		})
	}
	w := httptest.NewRecorder()
	filters.Chain(http.HandlerFunc(ok), before, filters.CacheControl()).ServeHTTP(w, r)
	if got := w.Header().Get("Cache-Control"); got != "public" {
		t.Error(got)
	}
}

func TestDeadline(t *testing.T) {
	from := time.Now()
	for _, tc := range []struct {
		target string
		want   time.Duration // 0: no deadline
	}{
		{"/x", time.Minute},
		{"/apis/g/v/widgets", time.Minute},
		{"/apis/g/v/widgets?timeout=10s", 10 * time.Second},
		{"/apis/g/v/widgets?timeout=1h", time.Minute},
		{"/apis/g/v/widgets?timeout=0s", time.Minute},
		{"/apis/g/v/widgets?timeout=-5s", time.Minute},
		{"/apis/g/v/widgets?timeout=", time.Minute},
		{"/apis/g/v/widgets?timeoutSeconds=5", time.Minute},
		{"/apis/g/v/widgets?watch=1", 0},
		{"/apis/g/v/widgets?watch=1&timeout=abc", 0},
		{"/apis/g/v/watch/widgets", 0},
	} {
		r := httptest.NewRequest(http.MethodGet, tc.target, nil)
		r = r.WithContext(request.WithReceived(r.Context(), from))
		served := false
		serve(filters.Deadline(0), func(_ http.ResponseWriter, r *http.Request) {
			served = true
			at, has := r.Context().Deadline()
			if has != (tc.want > 0) || (has && !at.Equal(from.Add(tc.want))) {
				t.Errorf("%s: deadline %v %v, want %v", tc.target, at.Sub(from), has, tc.want)
			}
		}, r)
		if !served {
			t.Errorf("%s: not served", tc.target)
		}
	}
	w := serve(filters.Deadline(time.Second), func(http.ResponseWriter, *http.Request) { t.Error("served") }, httptest.NewRequest(http.MethodGet, "/apis/g/v/widgets?timeout=abc", nil))
	s := status(t, w.Body)
	if want := `invalid timeout specified in the request URL - time: invalid duration "abc"`; w.Code != 400 || s.Message != want || s.Reason != "BadRequest" {
		t.Errorf("%d %+v", w.Code, s)
	}
}

func TestWarnings(t *testing.T) {
	w := serve(filters.Warnings(), func(w http.ResponseWriter, r *http.Request) {
		request.Warn(r.Context(), `unknown field "spec.foo"`)
		request.Warn(r.Context(), "second")
		w.WriteHeader(http.StatusCreated)
	}, httptest.NewRequest(http.MethodGet, "/", nil))
	if got := w.Result().Header["Warning"]; !slices.Equal(got, []string{`299 - "unknown field \"spec.foo\""`, `299 - "second"`}) {
		t.Errorf("%q", got)
	}
}

func TestAuthenticate(t *testing.T) {
	a := authn.Func(func(r *http.Request) (*authn.Response, error) {
		switch r.Header.Get("Authorization") {
		case "":
			return &authn.Response{User: authn.User{Name: "system:anonymous"}}, nil
		case "Bearer good":
			return &authn.Response{User: authn.User{Name: "u"}}, nil
		case "Bearer unknown":
			return nil, nil
		}
		return nil, errors.New("the secret reason")
	})
	for _, tc := range []struct {
		credential string
		proto      int
		user       string // "": 401
		close      bool
	}{
		{"Bearer good", 1, "u", false},
		{"Bearer good", 2, "u", false},
		{"", 1, "system:anonymous", false},
		{"", 2, "system:anonymous", true},
		{"Bearer unknown", 1, "", false},
		{"Bearer unknown", 2, "", true},
		{"Bearer bad", 1, "", false},
		{"Bearer bad", 2, "", true},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.ProtoMajor = tc.proto
		r.Header.Set("X-Remote-User", "root")
		if tc.credential != "" {
			r.Header.Set("Authorization", tc.credential)
		}
		user := ""
		w := serve(filters.Authenticate(a, filters.AuthenticateOptions{}), func(_ http.ResponseWriter, r *http.Request) {
			user = authn.UserFrom(r.Context()).Name
			if len(r.Header) != 0 {
				t.Errorf("credentials are left: %v", r.Header)
			}
		}, r)
		if user != tc.user || (w.Header().Get("Connection") == "close") != tc.close {
			t.Errorf("%+v: user %q, headers %v", tc, user, w.Header())
		}
		if tc.user != "" {
			continue
		}
		if s := status(t, w.Body); w.Code != 401 || s.Reason != "Unauthorized" || s.Message != "Unauthorized" || s.Code != 401 {
			t.Errorf("%d %+v", w.Code, s)
		}
	}
}

func TestAuthorize(t *testing.T) {
	var got authz.Attributes
	var verdict authz.Verdict
	var fault error
	a := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		got = a
		return verdict, "because", fault
	})
	get := func(target string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		return serve(filters.Authorize(a), ok, r.WithContext(authn.WithUser(r.Context(), &authn.User{Name: "u"})))
	}
	w := get("/apis/example.com/v1/namespaces/ns/widgets?fieldSelector=metadata.name%3Da,x%3Dy&labelSelector=k+in+(v)")
	s := status(t, w.Body)
	if want := `widgets.example.com "a" is forbidden: User "u" cannot list resource "widgets" in API group "example.com" in the namespace "ns": because`; w.Code != 403 || s.Message != want || s.Reason != "Forbidden" {
		t.Errorf("%d %+v", w.Code, s)
	}
	if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", w.Header())
	}
	if !got.ResourceRequest || got.Verb != "list" || got.APIGroup != "example.com" || got.APIVersion != "v1" || got.Namespace != "ns" || got.Name != "a" ||
		len(got.FieldSelector) != 2 || len(got.LabelSelector) != 1 || got.User.Name != "u" {
		t.Errorf("attributes %+v", got)
	}
	get("/apis/g/v/widgets?fieldSelector=foo&labelSelector=a+in")
	if got.FieldSelector != nil || got.LabelSelector != nil {
		t.Errorf("selectors that do not parse: %+v", got)
	}
	get("/apis/g/v/widgets?fieldSelector=metadata.name%3Da" + strings.Repeat(",x%3Dy", 400) + "&labelSelector=a" + strings.Repeat(",a", 400))
	if got.FieldSelector != nil || got.LabelSelector != nil || got.Name != "" {
		t.Errorf("selectors that are too large: %d and %d requirements, name %q", len(got.FieldSelector), len(got.LabelSelector), got.Name)
	}
	verdict = authz.Deny
	if s := status(t, get("/x").Body); s.Message != `forbidden: User "u" cannot get path "/x": because` || got.ResourceRequest || got.Path != "/x" {
		t.Errorf("%+v, %+v", s, got)
	}
	fault = errors.New("no answer from <webhook>")
	w = get("/x?a=<b>")
	if want := "Internal Server Error: \"/x?a=&lt;b&gt;\": no answer from &lt;webhook&gt;\n"; w.Code != 500 || w.Body.String() != want || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	verdict = authz.Allow
	if w := get("/x"); w.Code != 200 {
		t.Errorf("allowed, with an error beside: %d", w.Code)
	}
	verdict, fault = authz.NoOpinion, nil
	serve(filters.Authorize(a), ok, httptest.NewRequest(http.MethodGet, "/x", nil))
	if got.User == nil || got.User.Name != "" {
		t.Errorf("nobody: %+v", got.User)
	}
}

func TestInFlight(t *testing.T) {
	inside, leave := make(chan struct{}), make(chan struct{})
	h := filters.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside <- struct{}{}; <-leave }), filters.InFlight(1, 1))
	do := func(method, target string, groups ...string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, target, nil)
		h.ServeHTTP(w, r.WithContext(authn.WithUser(r.Context(), &authn.User{Name: "u", Groups: groups})))
		return w
	}
	done := make(chan *httptest.ResponseRecorder, 4)
	enter := func(method, target string, groups ...string) {
		go func() { done <- do(method, target, groups...) }()
		<-inside
	}
	enter("GET", "/apis/g/v/widgets")
	for range 2 {
		w := do("GET", "/apis/g/v/widgets/a")
		if w.Code != 429 || w.Header().Get("Retry-After") != "1" || w.Body.String() != "Too many requests, please try again later.\n" ||
			!strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
			t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
		}
	}
	enter("POST", "/apis/g/v/widgets")                  // writes are counted separately
	enter("GET", "/apis/g/v/widgets?watch=1")           // watches are not counted
	enter("GET", "/apis/g/v/widgets", "system:masters") // nor are masters
	close(leave)
	for range 4 {
		if w := <-done; w.Code != 200 {
			t.Errorf("code %d", w.Code)
		}
	}
	enter("GET", "/apis/g/v/widgets")
}
