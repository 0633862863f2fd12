package webhook_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// newClient returns a client of a hook and its caller, which is closed at the end of the test.
func newClient(t testing.TB, h *hook, o webhook.Options) (*webhook.Client, *webhook.Caller) {
	t.Helper()
	caller := webhook.New(o)
	t.Cleanup(caller.Close)
	return clientOf(t, caller, webhook.Config{URL: h.URL + "/convert", CABundle: h.pem}), caller
}

func clientOf(t testing.TB, caller *webhook.Caller, cfg webhook.Config) *webhook.Client {
	t.Helper()
	client, err := caller.Client(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// reasonOf returns the Reason of a failed call.
func reasonOf(t testing.TB, err error) error {
	t.Helper()
	var call *webhook.Error
	if !errors.As(err, &call) {
		t.Fatalf("error %T %v, want a *webhook.Error", err, err)
	}
	return call.Reason
}

// wantError checks that the text of the Reason of an error contains want.
func wantError(t testing.TB, err error, want string) {
	t.Helper()
	if reason := reasonOf(t, err); !strings.Contains(reason.Error(), want) {
		t.Errorf("reason %v, want one with %q", reason, want)
	}
}

func TestPost(t *testing.T) {
	t.Parallel()
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s %s %s %s %s", r.Method, r.URL, r.Proto, r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.UserAgent(), body)
	})
	client, _ := newClient(t, h, webhook.Options{})
	got, err := client.Post(t.Context(), []byte("{}"))
	const want = "POST /convert?timeout=30s HTTP/2.0 application/json application/json, */* kube-apiserver-admission {}"
	if err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if client.String() != fmt.Sprintf("%q", h.URL+"/convert") {
		t.Errorf("its name is %s", client)
	}
}

// A service is called by its DNS name, at any address, by HTTP/1.1.
func TestService(t *testing.T) {
	t.Parallel()
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.Host, r.TLS.ServerName, r.URL)
	}, "hooks.prod.svc")
	var resolved atomic.Pointer[string]
	caller := webhook.New(webhook.Options{
		Timeout: 20 * time.Second,
		Resolve: func(_ context.Context, namespace, name string, port int32) (string, error) {
			s := fmt.Sprintf("%s/%s:%d", namespace, name, port)
			resolved.Store(&s)
			if name == "none" {
				return "", errors.New(`service "none" not found`)
			}
			return h.address(), nil
		},
	})
	t.Cleanup(caller.Close)
	client := clientOf(t, caller, webhook.Config{Service: &webhook.Service{Namespace: "prod", Name: "hooks", Path: "/x/"}, CABundle: h.pem})
	got, err := client.Post(t.Context(), []byte("{}"))
	if want := "HTTP/1.1 hooks.prod.svc:443 hooks.prod.svc /x?timeout=20s"; err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if *resolved.Load() != "prod/hooks:443" {
		t.Errorf("resolved %s", *resolved.Load())
	}
	if client.String() != "the service hooks.prod.svc:443" {
		t.Errorf("its name is %s", client)
	}
	client = clientOf(t, caller, webhook.Config{Service: &webhook.Service{Namespace: "prod", Name: "none", Port: 8443}, CABundle: h.pem})
	_, err = client.Post(t.Context(), []byte("{}"))
	wantError(t, err, `Post "https://none.prod.svc:8443/?timeout=20s": service "none" not found`)
	client = clientOf(t, caller, webhook.Config{Service: &webhook.Service{Namespace: "prod", Name: "other"}, CABundle: h.pem})
	_, err = client.Post(t.Context(), []byte("{}"))
	wantError(t, err, "x509: certificate is valid for hooks.prod.svc, not other.prod.svc")
}

// Without a resolver, services are dialled by their names in the DNS of a cluster.
func TestServiceByName(t *testing.T) {
	t.Parallel()
	var dialled atomic.Pointer[string]
	caller := webhook.New(webhook.Options{Dial: func(_ context.Context, _, address string) (net.Conn, error) {
		dialled.Store(&address)
		return nil, errors.New("no such thing")
	}})
	t.Cleanup(caller.Close)
	_, err := clientOf(t, caller, webhook.Config{Service: &webhook.Service{Namespace: "prod", Name: "hooks", Port: 8443}}).Post(t.Context(), nil)
	wantError(t, err, "no such thing")
	if got := dialled.Load(); got == nil || *got != "hooks.prod.svc:8443" {
		t.Errorf("dialled %v", got)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	caller := webhook.New(webhook.Options{})
	t.Cleanup(caller.Close)
	service := &webhook.Service{Namespace: "a", Name: "b"}
	for _, c := range []struct {
		cfg  webhook.Config
		want string
	}{
		{webhook.Config{}, "must have either a URL or a service"},
		{webhook.Config{URL: "https://a", Service: service}, "must have either a URL or a service"},
		{webhook.Config{URL: "http://a/b"}, "want https://host"},
		{webhook.Config{URL: "https://"}, "want https://host"},
		{webhook.Config{URL: "https://:443"}, "want https://host"},
		{webhook.Config{URL: "https://user:secret@a"}, `"https://user:xxxxx@a": want https://host`},
		{webhook.Config{URL: "https://a\x00"}, "does not parse"},
		{webhook.Config{Service: &webhook.Service{Name: "b"}}, "needs a name and a namespace"},
		{webhook.Config{URL: "https://a", CABundle: []byte("x")}, `the CA bundle of "https://a": unable to load root certificates`},
		{webhook.Config{URL: "https://a"}, ""},
		{webhook.Config{Service: service}, ""},
	} {
		_, err := caller.Client(c.cfg)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.cfg, err, c.want)
		}
	}
}

func TestCheckBundle(t *testing.T) {
	t.Parallel()
	good := string(newAuthority(t).pem)
	const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	const key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	for bundle, want := range map[string]string{
		"": "", good: "", good + broken: "", broken + good: "", "text\n" + good: "",
		"x":    "unable to load root certificates: unable to parse bytes as PEM block",
		" \n":  "unable to load root certificates: unable to parse bytes as PEM block",
		key:    "unable to load root certificates: no valid certificate authority data seen",
		broken: "unable to load root certificates: failed to parse certificate: x509: malformed certificate",
	} {
		got := ""
		if err := webhook.CheckBundle([]byte(bundle)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", bundle, got, want)
		}
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int64
	until := int64(3)
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if n := attempts.Add(1); n < until {
			say(http.StatusTooManyRequests, "busy", "Retry-After", "0")(w, r)
			return
		}
		_, _ = w.Write(body)
	})
	client, _ := newClient(t, h, webhook.Options{})
	if got, err := client.Post(t.Context(), []byte("again")); err != nil || string(got) != "again" || attempts.Load() != 3 {
		t.Errorf("%q, %v after %d attempts", got, err, attempts.Load())
	}
	for _, c := range []struct {
		code   int
		after  string
		want   int64
		reason func(error) bool
	}{
		{429, "0", 11, apierrors.IsTooManyRequests},
		{500, "0", 11, apierrors.IsInternalError},
		{503, "-1", 11, apierrors.IsServiceUnavailable},
		{400, "0", 1, apierrors.IsBadRequest},
		{429, "", 1, apierrors.IsTooManyRequests},
		{503, "soon", 1, apierrors.IsServiceUnavailable},
		{503, "50000", 1, apierrors.IsServiceUnavailable}, // the deadline comes before that
		{503, "99999999999999999999", 1, apierrors.IsServiceUnavailable},
	} {
		attempts.Store(0)
		h := serve(t, func(w http.ResponseWriter, r *http.Request) {
			attempts.Add(1)
			say(c.code, "no", "Retry-After", c.after)(w, r)
		})
		client, _ := newClient(t, h, webhook.Options{Timeout: 12 * time.Hour})
		if _, err := client.Post(t.Context(), []byte("{}")); !c.reason(reasonOf(t, err)) || attempts.Load() != c.want {
			t.Errorf("%d, Retry-After %q: %v after %d attempts, want %d", c.code, c.after, err, attempts.Load(), c.want)
		}
	}
}

// flood writes more bytes than a client should read.
type flood struct {
	written atomic.Int64
	done    chan struct{} // closed when the handler has ended
}

func (f *flood) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer close(f.done)
	var out io.Writer = w
	if r.URL.Path == "/zipped" {
		w.Header().Set("Content-Encoding", "gzip")
		out = gzip.NewWriter(w)
	}
	if r.URL.Path == "/refused" {
		w.WriteHeader(http.StatusInternalServerError)
	}
	chunk := bytes.Repeat([]byte(" "), 64<<10)
	for f.written.Load() < 3<<30 && r.Context().Err() == nil {
		if _, err := out.Write(chunk); err != nil {
			return
		}
		f.written.Add(int64(len(chunk)))
	}
}

func TestLongAnswers(t *testing.T) {
	t.Parallel()
	const limit = 4 << 20
	for _, path := range []string{"/plain", "/zipped", "/refused"} {
		f := &flood{done: make(chan struct{})}
		h := serve(t, f.ServeHTTP)
		caller := webhook.New(webhook.Options{MaxAnswer: limit})
		_, err := clientOf(t, caller, webhook.Config{URL: h.URL + path, CABundle: h.pem}).Post(t.Context(), []byte("{}"))
		if path == "/refused" {
			wantError(t, err, `an error on the server ("") has prevented the request from succeeding`)
		} else {
			wantError(t, err, fmt.Sprintf("Post %q: the answer is longer than 4194304 bytes", h.URL+path+"?timeout=30s"))
		}
		caller.Close()
		<-f.done
		if got := f.written.Load(); path != "/zipped" && got > 3*limit {
			t.Errorf("%s: %d bytes were taken", path, got)
		}
	}
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})
	client, _ := newClient(t, h, webhook.Options{MaxAnswer: 10})
	if got, err := client.Post(t.Context(), []byte("0123456789")); err != nil || len(got) != 10 {
		t.Errorf("an answer of the right length: %q, %v", got, err)
	}
	_, err := client.Post(t.Context(), []byte("0123456789a"))
	wantError(t, err, "the answer is longer than 10 bytes")
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	who := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			w.Header().Set("Location", r.Header.Get("X"))
		}
		name := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			name = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		_, _ = fmt.Fprintf(w, "%s %q", name, r.Header.Get("Authorization"))
	}
	h := serve(t, who)
	cert := h.issue(t, "the server")
	client, _ := newClient(t, h, webhook.Options{Identify: func(hostPort string) (webhook.Identity, error) {
		return webhook.Identity{
			Certificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil },
			Authorization: func(context.Context) (string, error) { return "Bearer for " + hostPort, nil },
		}, nil
	}})
	got, err := client.Post(t.Context(), []byte("{}"))
	if want := fmt.Sprintf("the server %q", "Bearer for "+h.address()); err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	client, _ = newClient(t, h, webhook.Options{})
	if got, err := client.Post(t.Context(), []byte("{}")); err != nil || string(got) != `nobody ""` {
		t.Errorf("%q, %v", got, err)
	}
	client, _ = newClient(t, h, webhook.Options{Identify: func(string) (webhook.Identity, error) { return webhook.Identity{}, errors.New("locked") }})
	_, err = client.Post(t.Context(), []byte("{}"))
	wantError(t, err, "locked")
	client, _ = newClient(t, h, webhook.Options{Identify: func(string) (webhook.Identity, error) {
		return webhook.Identity{Authorization: func(context.Context) (string, error) { return "", errors.New("no token") }}, nil
	}})
	_, err = client.Post(t.Context(), []byte("{}"))
	wantError(t, err, "no token")
}

// Where redirects are followed, the credentials for one webhook are not sent to another one.
func TestRedirect(t *testing.T) {
	t.Parallel()
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %q %s", r.Method, r.Header.Get("Authorization"), body)
	}, "localhost")
	h := serve(t, nil)
	h.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(other.URL, "127.0.0.1", "localhost", 1), http.StatusTemporaryRedirect)
	})
	caller := webhook.New(webhook.Options{FollowRedirects: true, Identify: func(string) (webhook.Identity, error) {
		return webhook.Identity{Authorization: func(context.Context) (string, error) { return "Bearer secret", nil }}, nil
	}})
	t.Cleanup(caller.Close)
	client := clientOf(t, caller, webhook.Config{URL: h.URL, CABundle: append(h.pem, other.pem...)})
	if got, err := client.Post(t.Context(), []byte("{}")); err != nil || string(got) != `POST "" {}` {
		t.Errorf("%q, %v", got, err)
	}
}
