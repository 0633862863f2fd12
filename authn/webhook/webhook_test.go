package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
	"go.uber.org/goleak"
	authenticationv1 "k8s.io/api/authentication/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hook is a webhook. It answers each token with its status, and other tokens as not authenticated.
type hook struct {
	statuses map[string]string // status of a token in JSON
	answer   func(w http.ResponseWriter, r *http.Request) bool

	mu     sync.Mutex // guards the fields below
	bodies []string
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.bodies = append(h.bodies, string(body))
	h.mu.Unlock()
	if h.answer != nil && h.answer(w, r) {
		return
	}
	var review authenticationv1.TokenReview
	if err := json.Unmarshal(body, &review); err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	status := h.statuses[review.Spec.Token]
	if status == "" {
		status = `{"authenticated":false}`
	}
	_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"TokenReview","status":%s}`, review.APIVersion, status)
}

func (h *hook) calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.bodies)
}

// of returns an authenticator for h.
func of(t *testing.T, h http.Handler, o webhook.Options) *webhook.Authenticator {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	a, err := webhook.New(client.Config{Server: srv.URL}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

func outcome(resp *authn.Response, err error) string {
	switch {
	case err != nil:
		return "error: " + err.Error()
	case resp == nil:
		return "no opinion"
	}
	return fmt.Sprint(resp.User.Name, resp.Audiences)
}

func TestAuthenticateToken(t *testing.T) {
	h := &hook{statuses: map[string]string{
		"jane":      `{"authenticated":true,"user":{"username":"jane","uid":"1","groups":["a","b"],"extra":{"k":["v"]}}}`,
		"aimed":     `{"authenticated":true,"user":{"username":"aimed"},"audiences":["x","y"]}`,
		"error":     `{"error":"bad token"}`,
		"echo-4711": `{"error":"no user has echo-4711, or echo-4711 is old"}`,
		"nameless":  `{"authenticated":true,"user":{}}`,
		"a":         `{"error":"a bad day"}`,
		"12345678":  `{"error":"no user has 12345678"}`,
		"1234567":   `{"error":"no user has 1234567"}`,
		`odd"token`: `{"error":"no user has odd\\\"token"}`, // escaped twice
		"both":      `{"authenticated":true,"error":"ignored","user":{"username":"both"}}`,
	}}
	for _, version := range []string{"", webhook.V1, webhook.V1beta1} {
		a := of(t, h, webhook.Options{Version: version, Audiences: []string{"own", "second"}})
		for _, test := range []struct {
			token     string
			audiences []string
			want      string
		}{
			{"jane", nil, "jane[]"},
			{"jane", []string{"own"}, "jane[own]"},
			{"jane", []string{"x"}, "no opinion"},
			{"aimed", nil, "aimed[]"},
			{"aimed", []string{"y", "own"}, "aimed[y]"},
			{"aimed", []string{"own"}, "no opinion"},
			{"error", nil, "error: bad token"},
			{"error", []string{"own"}, "error: bad token"},
			{"echo-4711", nil, "error: no user has [the token], or [the token] is old"},
			{"12345678", nil, "error: no user has [the token]"},
			{"1234567", nil, "error: authentication webhook: the text of the error has the token, and is withheld"},
			{"a", nil, "error: authentication webhook: the text of the error has the token, and is withheld"},
			{`odd"token`, nil, "error: authentication webhook: the text of the error is withheld, because the token has characters that a text may show in another form"},
			{"nameless", nil, "error: authentication webhook: the answer authenticates a user without a name"},
			{"both", nil, "both[]"},
			{"unknown", nil, "no opinion"},
		} {
			ctx := t.Context()
			if test.audiences != nil {
				ctx = authn.WithAudiences(ctx, test.audiences)
			}
			if got := outcome(a.AuthenticateToken(ctx, test.token)); got != test.want {
				t.Errorf("%s: %s for %q: got %s, want %s", version, test.token, test.audiences, got, test.want)
			}
		}
		resp, _ := a.AuthenticateToken(t.Context(), "jane")
		if diff := cmp.Diff(authn.User{Name: "jane", UID: "1", Groups: []string{"a", "b"}, Extra: map[string][]string{"k": {"v"}}}, resp.User); diff != "" {
			t.Error(diff)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, want := range []string{
		`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{"token":"jane"},"status":{}}`,
		`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","metadata":{},"spec":{"token":"aimed","audiences":["y","own"]},"status":{}}`,
	} {
		if !slices.Contains(h.bodies, want) {
			t.Errorf("no request %s", want)
		}
	}
}

func TestAnswersAreRemembered(t *testing.T) {
	h := &hook{statuses: map[string]string{"jane": `{"authenticated":true,"user":{"username":"jane"}}`, "error": `{"error":"bad"}`}}
	a, none := of(t, h, webhook.Options{}), of(t, h, webhook.Options{Success: -1, Failure: -1})
	for token, want := range map[string]int{"jane": 1 + 3, "unknown": 1 + 3, "error": 3 + 3} {
		before := h.calls()
		for range 3 {
			_, _ = a.AuthenticateToken(t.Context(), token)
			_, _ = none.AuthenticateToken(t.Context(), token)
		}
		if got := h.calls() - before; got != want {
			t.Errorf("%s: %d calls, want %d", token, got, want)
		}
	}
}

func TestAttempts(t *testing.T) {
	status := func(code int, headers ...string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
			return true
		}
	}
	for name, test := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		calls  int
	}{
		"internal error":                {status(500), 3},
		"too many":                      {status(429), 3},
		"timeout":                       {status(504), 3},
		"unavailable":                   {status(503), 1},
		"unavailable, but not for long": {status(503, "Retry-After", "1"), 3},
		"not found":                     {status(404), 1},
		"forbidden":                     {status(403), 1},
		"aborted":                       {func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }, 1},
		"redirect elsewhere":            {status(307, "Location", "http://192.0.2.1/"), 1},
		"no JSON":                       {func(w http.ResponseWriter, _ *http.Request) bool { _, _ = io.WriteString(w, "<html>"); return true }, 1},
		"another kind": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1"}`)
			return true
		}, 1},
		"another version": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","status":{"authenticated":true,"user":{"username":"x"}}}`)
			return true
		}, 1},
		"nothing": {func(http.ResponseWriter, *http.Request) bool { return true }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hook{answer: test.answer}
			a := of(t, h, webhook.Options{Attempts: 3})
			got := outcome(a.AuthenticateToken(t.Context(), "secret-token"))
			if !strings.HasPrefix(got, "error: authentication webhook: ") || strings.Contains(got, "secret-token") || h.calls() != test.calls {
				t.Errorf("%s, after %d calls, want %d", got, h.calls(), test.calls)
			}
		})
	}
	fails := 2
	h := &hook{statuses: map[string]string{"jane": `{"authenticated":true,"user":{"username":"jane"}}`}}
	h.answer = func(w http.ResponseWriter, _ *http.Request) bool {
		if fails--; fails < 0 {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	if got := outcome(of(t, h, webhook.Options{}).AuthenticateToken(t.Context(), "jane")); got != "jane[]" {
		t.Errorf("after two failures: %s", got)
	}
}

// TestLongAnswers checks that an answer of gigabytes costs what is allowed.
func TestLongAnswers(t *testing.T) {
	h := &hook{answer: func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.WriteString(w, `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"`)
		for part := strings.Repeat("x", 1<<20); r.Context().Err() == nil; {
			if _, err := io.WriteString(w, part); err != nil {
				break
			}
		}
		return true
	}}
	if got := outcome(of(t, h, webhook.Options{}).AuthenticateToken(t.Context(), "x")); !strings.Contains(got, client.ErrTooLong.Error()) {
		t.Error(got)
	}
}

// TestHangingWebhook checks that a webhook that hangs costs only the requests that need it, until they end.
func TestHangingWebhook(t *testing.T) {
	h := &hook{answer: func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }}
	a := of(t, h, webhook.Options{Attempts: 1, Timeout: 50 * time.Millisecond})
	if got := outcome(a.AuthenticateToken(t.Context(), "x")); !strings.HasPrefix(got, "error: ") {
		t.Error(got)
	}
	a = of(t, h, webhook.Options{Cache: authn.CacheOptions{Lookup: 50 * time.Millisecond}})
	if got := outcome(a.AuthenticateToken(t.Context(), "x")); !strings.HasPrefix(got, "error: ") {
		t.Error(got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	a = of(t, h, webhook.Options{})
	if got := outcome(a.AuthenticateToken(ctx, "x")); !strings.HasPrefix(got, "error: ") {
		t.Error(got)
	}
	go a.Close()
	if got := outcome(a.AuthenticateToken(t.Context(), "y")); !strings.HasPrefix(got, "error: ") {
		t.Error(got)
	}
}

func TestOptions(t *testing.T) {
	for name, test := range map[string]struct {
		cfg client.Config
		o   webhook.Options
	}{
		"version":  {client.Config{Server: "https://localhost"}, webhook.Options{Version: "v2"}},
		"attempts": {client.Config{Server: "https://localhost"}, webhook.Options{Attempts: -1}},
		"server":   {client.Config{}, webhook.Options{}},
	} {
		if _, err := webhook.New(test.cfg, test.o); err == nil || !strings.HasPrefix(err.Error(), "authentication webhook: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The error says whether the webhook has answered.
func TestErrorsSayWhatCameOfTheAttempts(t *testing.T) {
	code := 0
	h := &hook{answer: func(w http.ResponseWriter, _ *http.Request) bool {
		if code == 0 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(code)
		return true
	}}
	for _, test := range []struct {
		code       int
		path, want string
	}{
		{403, "", "refused: "},
		{400, "", "refused: "},
		{404, "", "refused: the server at that URL serves no TokenReviews at its path: "},
		{404, webhook.TokenReviews, "refused: the server at that URL serves no TokenReviews at the path /apis/authentication.k8s.io/v1/tokenreviews: "},
		{429, "", "2 attempts failed, the last with the code 429: "},
		{500, "", "2 attempts failed, the last with the code 500: "},
		{0, "", "no answer in 1 attempts: "},
	} {
		code = test.code
		got := outcome(of(t, h, webhook.Options{Path: test.path, Attempts: 2}).AuthenticateToken(t.Context(), "secret-token"))
		if !strings.HasPrefix(got, "error: authentication webhook: "+test.want) {
			t.Errorf("%d at %q: %s; want %s", test.code, test.path, got, test.want)
		}
	}
}

// An authenticator that is closed is not ready.
func TestReadyFailsAfterClose(t *testing.T) {
	a := of(t, &hook{}, webhook.Options{})
	asked, ok := authn.BearerToken(a).(interface{ Ready(context.Context) error })
	if !ok {
		t.Fatal("an authenticator of requests has no Ready")
	}
	if err := asked.Ready(t.Context()); err != nil {
		t.Errorf("before Close: %v", err)
	}
	a.Close()
	if err := asked.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "is closed") {
		t.Errorf("after Close: %v", err)
	}
}
