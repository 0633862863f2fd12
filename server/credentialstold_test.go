package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/bootstrap"
	"github.com/keelson-dev/keelson/authn/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	authreviews "github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenHookOf returns an authenticator for a webhook. It is closed before the servers that were started earlier.
func tokenHookOf(t *testing.T, o webhook.Options, answer http.HandlerFunc) authn.Authenticator {
	t.Helper()
	hook := httptest.NewServer(answer)
	t.Cleanup(hook.Close)
	tokens, err := webhook.New(client.Config{Server: hook.URL}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tokens.Close)
	return authn.BearerToken(tokens)
}

// Whatever credential a request has, and whatever a webhook says about it, the credential is in no log line, audit event, metric or
// answer.
func TestNoCredentialIsTold(t *testing.T) {
	t.Parallel()
	const mark = "s3cret" // in every token and password
	bootstrapToken := "abcdef.0123456789" + mark
	passwords := authn.BasicAuth([]authn.Password{{Password: mark + "-right", User: authn.User{Name: "basil"}}})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: bootstrap.SecretType, Data: map[string][]byte{
		"token-id": []byte("abcdef"), "token-secret": []byte(bootstrapToken[7:]), "usage-bootstrap-authentication": []byte("true"),
	}}
	core, logs := observer.New(zap.DebugLevel)
	events := &audittest.Log{}
	srv := servertest.Start(t, server.Options{
		Policy: server.Policy{
			Users: map[string]authn.User{mark + "-own": {Name: "own"}},
			Audit: []audit.Backend{{Name: "all", Policy: &audit.Policy{Rules: []audit.Rule{{Level: audit.RequestResponse}}}, Sink: events}},
		},
		Observe: server.Observe{Logger: zap.New(core), SlowRequest: 1},
	}, authreviews.New(authreviews.Options{}))
	hook := tokenHookOf(t, webhook.Options{Attempts: 1}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var review struct{ Spec struct{ Token string } }
		_ = json.Unmarshal(body, &review)
		status := "{}"
		switch token := review.Spec.Token; {
		case strings.HasSuffix(token, "hook"):
			status = `{"authenticated":true,"user":{"username":"hook"}}`
		case strings.HasSuffix(token, "error"):
			status = `{"error":"the token ` + token + ` is unknown"}`
		case strings.HasSuffix(token, "500"):
			http.Error(w, string(body), http.StatusInternalServerError)
			return
		case strings.HasSuffix(token, "403"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"message":%q}`, "not "+token)
			return
		case strings.HasSuffix(token, "redirect"):
			http.Redirect(w, r, "/"+token, http.StatusFound)
			return
		case strings.HasSuffix(token, "kind"):
			_, _ = fmt.Fprintf(w, `{"kind":%q,"apiVersion":"v1"}`, token)
			return
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":%s}`, status)
	})
	h := host(t, srv)
	for name, a := range map[string]authn.Authenticator{
		authn.TokenFile:       authn.BearerToken(authn.StaticTokens(map[string]authn.User{mark + "-file": {Name: "file"}})),
		authn.BootstrapTokens: authn.BearerToken(bootstrap.New(secretsOf{list: []*corev1.Secret{secret}}, bootstrap.Options{})),
		authn.TokenWebhook:    hook, "passwords": passwords,
	} {
		if err := h.Authenticate(name, a); err != nil {
			t.Fatal(err)
		}
	}
	var told strings.Builder
	send := func(want int, header ...string) {
		t.Helper()
		a := roundTrip(t, srv.Anonymous(), "POST", srv.URL+"/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}", append(header, "Content-Type", "application/json")...)
		wantCode(t, want, a.code, a.body)
		fmt.Fprintln(&told, a.header, a.body)
	}
	basic := func(name, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
	}
	for _, right := range []string{"Bearer " + mark + "-own", "Bearer " + mark + "-file", "Bearer " + mark + "-hook", "Bearer " + bootstrapToken, basic("basil", mark+"-right")} {
		send(201, "Authorization", right)
	}
	for _, wrong := range []string{
		"Bearer " + mark, "Bearer " + mark + "-error", "Bearer " + mark + "-500", "Bearer " + mark + "-403", "Bearer " + mark + "-redirect", "Bearer " + mark + "-kind",
		"Bearer " + bootstrapToken[:22] + "x", basic("basil", mark), basic(mark, mark), "Basic " + mark,
	} {
		send(401, "Authorization", wrong)
	}
	time.Sleep(1100 * time.Millisecond) // the log has ten lines a second
	encoded := "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(mark+"-file"))
	for _, protocols := range []string{encoded, encoded + "," + encoded + ",a", encoded + "*, a", encoded + "eA, a"} {
		send(401, "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Protocol", protocols)
	}
	refused := 0
	for _, line := range logs.All() {
		fmt.Fprintln(&told, line.Message, line.ContextMap())
		if line.Message == "unable to authenticate the request" {
			refused++
		}
	}
	recorded, err := json.Marshal(events.Events())
	if err != nil || len(events.Events()) < 19 || refused != 14 {
		t.Errorf("%d events, %v; %d lines about 14 requests", len(events.Events()), err, refused)
	}
	_, metrics := call(t, srv.Client(), "GET", srv.URL+"/metrics", "")
	text := told.String() + string(recorded) + metrics
	for _, part := range []string{mark, "0123456789", base64.StdEncoding.EncodeToString([]byte("basil:" + mark))[:14], encoded[len(encoded)-10:]} {
		if at := strings.Index(text, part); at >= 0 {
			t.Errorf("a log line, an audit event or a metric has the credential %s: %s", part, text[max(0, at-300):min(len(text), at+50)])
		}
	}
}

// A token webhook that hangs delays only the requests whose token it has to know: others are answered meanwhile, and those end with
// 401 when its time is over.
func TestHangingTokenWebhook(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	goOn := make(chan struct{})
	srv := servertest.Start(t, server.Options{Policy: server.Policy{Users: map[string]authn.User{"own": {Name: "own"}}}})
	hook := tokenHookOf(t, webhook.Options{Attempts: 1, Timeout: time.Hour, Cache: authn.CacheOptions{Lookup: 500 * time.Millisecond}}, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked.Add(1)
		select {
		case <-goOn:
		case <-r.Context().Done():
		}
	})
	if err := host(t, srv).Authenticate(authn.TokenWebhook, hook); err != nil {
		t.Fatal(err)
	}
	const crowd = 50
	var waits sync.WaitGroup
	codes := make(chan int, crowd)
	for i := range crowd {
		waits.Go(func() {
			a := roundTrip(t, srv.Anonymous(), "GET", srv.URL+"/version", "", "Authorization", fmt.Sprint("Bearer unknown", i))
			codes <- a.code
		})
	}
	eventually(t, "the webhook is asked", func() bool { return asked.Load() > 0 })
	for _, header := range [][]string{nil, {"Authorization", "Bearer own"}} {
		a := roundTrip(t, srv.Anonymous(), "GET", srv.URL+"/version", "", header...)
		wantCode(t, 200, a.code, a.body)
	}
	waits.Wait()
	close(goOn)
	for range crowd {
		if code := <-codes; code != 401 {
			t.Errorf("an unknown token: %d", code)
		}
	}
}
