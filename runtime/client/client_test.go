package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/keelson-dev/keelson/runtime/client"
)

// dial returns a client of a server with the handler h.
func dial(t *testing.T, cfg client.Config, o client.Options, h http.HandlerFunc) (*client.Client, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	cfg.Server = s.URL + cfg.Server
	c, err := client.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, s
}

var boats = client.Target{Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "boats"}, Namespace: "n"}

// The test checks the request of each verb.
func TestVerbs(t *testing.T) {
	var got string
	c, _ := dial(t, client.Config{Server: "/base", Username: "u", Password: "p", Impersonate: client.Impersonation{User: "boss", Groups: []string{"g", "h"},
		Extra: map[string][]string{"example.com/a": {"1"}}}}, client.Options{UserAgent: "test"},
		func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			got = fmt.Sprintf("%s %s %s", r.Method, r.URL, body)
			user, password, _ := r.BasicAuth()
			if user != "u" || password != "p" || r.UserAgent() != "test" || r.Header.Get("Impersonate-User") != "boss" ||
				len(r.Header["Impersonate-Group"]) != 2 || r.Header.Get("Impersonate-Extra-example.com%2Fa") != "1" {
				t.Errorf("headers: %v", r.Header)
			}
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			fmt.Fprint(w, `{"kind":"Boat","apiVersion":"example.com/v1","metadata":{"name":"a"},"spec":{"length":9007199254740993}}`)
		})
	one := boats
	one.Name, one.Query = "a", url.Values{"fieldManager": {"m"}}
	core := client.Target{Resource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}}
	seconds := int64(5)
	initial := true
	obj := map[string]string{"a": "b"}
	ctx := t.Context()
	for _, s := range []struct {
		do   func() error
		want string
	}{
		{func() error {
			u := &unstructured.Unstructured{}
			err := c.Get(ctx, one, u)
			if length, _, _ := unstructured.NestedInt64(u.Object, "spec", "length"); length != 9007199254740993 {
				t.Errorf("an integer became %v", u.Object)
			}
			return err
		}, "GET /base/apis/example.com/v1/namespaces/n/boats/a?fieldManager=m "},
		{func() error {
			var text json.RawMessage
			err := c.List(ctx, core, metav1.ListOptions{LabelSelector: "a=b", Limit: 3, Continue: "t", FieldSelector: "f=1", ResourceVersion: "7", ResourceVersionMatch: "Exact"}, &text)
			if !strings.HasPrefix(string(text), `{"kind"`) {
				t.Errorf("raw: %s", text)
			}
			return err
		}, "GET /base/api/v1/nodes?continue=t&fieldSelector=f%3D1&labelSelector=a%3Db&limit=3&resourceVersion=7&resourceVersionMatch=Exact "},
		{func() error { return c.Create(ctx, boats, obj, nil) }, `POST /base/apis/example.com/v1/namespaces/n/boats {"a":"b"}`},
		{func() error { return c.Update(ctx, one, []byte("{}"), &Boat{}) }, `PUT /base/apis/example.com/v1/namespaces/n/boats/a?fieldManager=m {}`},
		{func() error {
			return c.Create(ctx, client.Target{Resource: boats.Resource, Namespace: "n", Name: "a", Subresource: "token"}, obj, nil)
		}, `POST /base/apis/example.com/v1/namespaces/n/boats/a/token {"a":"b"}`},
		{func() error { return c.Delete(ctx, one, nil) }, "DELETE /base/apis/example.com/v1/namespaces/n/boats/a?fieldManager=m "},
		{func() error { return c.Delete(ctx, one, &metav1.DeleteOptions{DryRun: []string{"All"}}) },
			`DELETE /base/apis/example.com/v1/namespaces/n/boats/a?fieldManager=m {"kind":"DeleteOptions","apiVersion":"meta.k8s.io/v1","dryRun":["All"]}`},
		{func() error {
			w, err := c.Watch(ctx, core, metav1.ListOptions{TimeoutSeconds: &seconds, SendInitialEvents: &initial, AllowWatchBookmarks: true})
			if err == nil {
				w.Close()
			}
			return err
		}, "GET /base/api/v1/nodes?allowWatchBookmarks=true&sendInitialEvents=true&timeoutSeconds=5&watch=true "},
		{func() error {
			_, err := c.Do(ctx, client.Request{Method: http.MethodPost, Body: []byte("x")})
			return err
		}, "POST /base x"},
	} {
		if err := s.do(); err != nil || got != s.want {
			t.Errorf("got  %s (%v)\nwant %s", got, err, s.want)
		}
	}
	for _, bad := range []client.Target{{}, {Resource: boats.Resource, Name: ".."}, {Resource: boats.Resource, Name: "a/b"}, {Resource: boats.Resource, Namespace: "%2e"}, boats} {
		if err := c.Get(ctx, bad, nil); err == nil {
			t.Errorf("the target %v is got", bad)
		}
	}
}

// Errors are the same as those of client-go for the same answers.
func TestErrors(t *testing.T) {
	var code int
	var contentType, body string
	c, s := dial(t, client.Config{}, client.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	})
	one := boats
	one.Name = "a"
	for _, a := range []struct {
		code              int
		contentType, body string
		is                func(error) bool
		want              string
	}{
		{409, "application/json", `{"kind":"Status","status":"Failure","reason":"Conflict","code":409,"message":"the words of the server"}`, apierrors.IsConflict, "the words of the server"},
		{404, "text/plain", "404 page not found\n", apierrors.IsNotFound, "the server could not find the requested resource (get boats.example.com a)"},
		{403, "text/html", "", apierrors.IsForbidden, `(get boats.example.com a)`},
		{500, "text/plain", "oops", apierrors.IsInternalError, `an error on the server ("oops") has prevented the request from succeeding (get boats.example.com a)`},
		{500, "application/octet-stream", "\x00", apierrors.IsInternalError, `an error on the server ("unknown") has prevented`},
		{429, "application/json", `{}`, apierrors.IsTooManyRequests, "the server has received too many requests"},
		{302, "text/plain", "", func(err error) bool { return err != nil }, "302"},
	} {
		code, contentType, body = a.code, a.contentType, a.body
		if err := c.Get(t.Context(), one, &Boat{}); !a.is(err) || !strings.Contains(err.Error(), a.want) {
			t.Errorf("%d %q: %v; want %q", a.code, a.body, err, a.want)
		}
	}
	code, contentType, body = 200, "text/html", "<html>"
	var failed *url.Error
	if err := c.Get(t.Context(), one, &Boat{}); !errors.As(err, &failed) || !strings.Contains(err.Error(), "want application/json") {
		t.Errorf("HTML: %v", err)
	}
	s.Close()
	if err := c.Get(t.Context(), one, nil); !errors.As(err, &failed) || !strings.HasPrefix(err.Error(), `Get "`+s.URL) {
		t.Errorf("no server: %v", err)
	}
}

func TestTriesAgain(t *testing.T) {
	var requests atomic.Int64
	var tried []string
	hooks := client.Hooks{Retry: func(method, url string, err error, after time.Duration) {
		tried = append(tried, fmt.Sprint(method, " ", apierrors.ReasonForError(err), " ", after))
	}}
	code := http.StatusTooManyRequests
	seconds := "0"
	c, _ := dial(t, client.Config{}, client.Options{Hooks: hooks, Retries: 3, Timeout: 5 * time.Second}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if n := requests.Add(1); n < 3 || string(body) == "never" {
			w.Header().Set("Retry-After", seconds)
			w.WriteHeader(code)
			return
		}
		_, _ = w.Write(body)
	})
	do := func(body string) (*client.Response, error) {
		requests.Store(0)
		return c.Do(t.Context(), client.Request{Method: http.MethodPost, Path: "/x", Body: []byte(body)})
	}
	if r, err := do("again"); err != nil || string(r.Body) != "again" {
		t.Errorf("third time: %v %v", r, err)
	}
	want(t, "hooks", tried, []string{"POST TooManyRequests 0s", "POST TooManyRequests 0s"})
	if _, err := do("never"); !apierrors.IsTooManyRequests(err) || requests.Load() != 4 {
		t.Errorf("always refused: %v after %d requests", err, requests.Load())
	}
	seconds = "60"
	if _, err := do("x"); !apierrors.IsTooManyRequests(err) || requests.Load() != 1 {
		t.Errorf("longer than the timeout: %v after %d requests", err, requests.Load())
	}
	code, seconds = 500, "0"
	if _, err := do("x"); !apierrors.IsInternalError(err) || requests.Load() != 1 {
		t.Errorf("a code that is not tried again: %v after %d requests", err, requests.Load())
	}
}

func TestAnswersAreBounded(t *testing.T) {
	c, _ := dial(t, client.Config{}, client.Options{MaxAnswer: 1000}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/error" {
			w.WriteHeader(500)
		}
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "1001")
		}
		for range 1001 {
			_, _ = w.Write([]byte("x"))
		}
	})
	for _, path := range []string{"/known", "/unknown"} {
		if _, err := c.Do(t.Context(), client.Request{Path: path}); !errors.Is(err, client.ErrTooLong) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := c.Do(t.Context(), client.Request{Path: "/error"}); !apierrors.IsInternalError(err) {
		t.Errorf("a long error: %v", err)
	}
}

func TestTimeouts(t *testing.T) {
	release := make(chan struct{})
	c, _ := dial(t, client.Config{}, client.Options{Timeout: 20 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			w.(http.Flusher).Flush()
		}
		<-release
	})
	defer close(release)
	for _, path := range []string{"/silent", "/slow"} {
		var failed net.Error
		if _, err := c.Do(t.Context(), client.Request{Path: path}); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &failed) || !failed.Timeout() {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := c.Watch(t.Context(), boats, metav1.ListOptions{}); err == nil {
		t.Error("a watch that does not begin")
	}
}

func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("another server got %v", r.Header) }))
	defer other.Close()
	c, _ := dial(t, client.Config{Token: "secret"}, client.Options{}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/near":
			http.Redirect(w, r, "/there", http.StatusTemporaryRedirect)
		default:
			fmt.Fprint(w, r.Header.Get("Authorization"))
		}
	})
	if _, err := c.Do(t.Context(), client.Request{Path: "/away"}); err == nil || !strings.Contains(err.Error(), "another server") || strings.Contains(err.Error(), "secret") {
		t.Errorf("away: %v", err)
	}
	if r, err := c.Do(t.Context(), client.Request{Path: "/near"}); err != nil || string(r.Body) != "Bearer secret" {
		t.Errorf("near: %v %v", r, err)
	}
}

func TestTokenFile(t *testing.T) {
	file := write(t, t.TempDir(), "token", []byte("first"))
	var valid atomic.Value
	valid.Store("Bearer first")
	var problems atomic.Int64
	c, _ := dial(t, client.Config{TokenFile: file}, client.Options{Hooks: client.Hooks{Credentials: func(string, error) { problems.Add(1) }}},
		func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != valid.Load() {
				w.WriteHeader(401)
			}
		})
	get := func() error { _, err := c.Do(t.Context(), client.Request{}); return err }
	if err := get(); err != nil {
		t.Error(err)
	}
	valid.Store("Bearer second")
	if err := get(); !apierrors.IsUnauthorized(err) {
		t.Errorf("the same token: %v", err)
	}
	write(t, filepath.Dir(file), "token", []byte("second\n"))
	if err := get(); err != nil {
		t.Errorf("another token: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := get(); err != nil || problems.Load() != 0 {
		t.Errorf("a token that is gone, and need not be read: %v", err)
	}
	valid.Store("Bearer third")
	if err := get(); !apierrors.IsUnauthorized(err) || problems.Load() != 1 {
		t.Errorf("a token that cannot be read: %v, %d hooks", err, problems.Load())
	}
}

// A token is read again after a minute.
func TestTokenAge(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "token", []byte("first"))
	synctest.Test(t, func(t *testing.T) {
		dial := func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go func() {
				defer func() { _ = far.Close() }()
				buf := make([]byte, 4096)
				for {
					n, err := far.Read(buf)
					if err != nil {
						return
					}
					_, token, _ := strings.Cut(string(buf[:n]), "Authorization: ")
					token, _, _ = strings.Cut(token, "\r\n")
					if _, err := fmt.Fprintf(far, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(token), token); err != nil {
						return
					}
				}
			}()
			return near, nil
		}
		c, err := client.New(client.Config{Server: "http://localhost", TokenFile: file}, client.Options{Dial: dial})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		token := func(wanted string) {
			t.Helper()
			if r, err := c.Do(t.Context(), client.Request{}); err != nil || string(r.Body) != "Bearer "+wanted {
				t.Errorf("%v %v", r, err)
			}
		}
		write(t, dir, "token", []byte("second"))
		token("first")
		time.Sleep(59 * time.Second)
		token("first")
		time.Sleep(time.Second)
		token("second")
	})
}

// The server's certificate is checked, the client's certificate is sent and read again, and HTTP/2 is used.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	serverCert, serverKey := certificate(t, "server")
	pair, err := tls.X509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, c := range r.TLS.PeerCertificates {
			fmt.Fprint(w, c.Subject.CommonName, " ")
		}
		fmt.Fprint(w, r.Proto)
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	defer s.Close()
	cert, key := certificate(t, "first")
	cfg := client.Config{Server: s.URL, CA: serverCert, CertFile: write(t, dir, "cert", cert), KeyFile: write(t, dir, "key", key)}
	ask := func(cfg client.Config) string {
		c, err := client.New(cfg, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r, err := c.Do(t.Context(), client.Request{})
		if err != nil {
			return err.Error()
		}
		return string(r.Body)
	}
	want(t, "mutual TLS", ask(cfg), "first HTTP/2.0")
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cert, key = certificate(t, "renewed")
	write(t, dir, "cert", cert)
	write(t, dir, "key", key)
	if err := os.Chtimes(cfg.CertFile, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Do(t.Context(), client.Request{}); err != nil || string(r.Body) != "renewed HTTP/2.0" {
		t.Errorf("renewed: %v %v", r, err)
	}
	cfg.CertFile, cfg.KeyFile = "", ""
	want(t, "nobody", ask(cfg), "HTTP/2.0")
	cfg.ServerName = "elsewhere"
	if got := ask(cfg); !strings.Contains(got, "elsewhere") || !strings.Contains(got, "certificate") {
		t.Errorf("another name: %s", got)
	}
	cfg.ServerName = "localhost"
	want(t, "a name of the certificate", ask(cfg), "HTTP/2.0")
	cfg.CA, cfg.ServerName = cert, ""
	if got := ask(cfg); !strings.Contains(got, x509.UnknownAuthorityError{}.Error()) {
		t.Errorf("another authority: %s", got)
	}
	cfg.CA, cfg.Insecure = nil, true
	want(t, "insecure", ask(cfg), "HTTP/2.0")
}

func TestWatch(t *testing.T) {
	var mu sync.Mutex // guards body and abort
	var body string
	var abort bool
	c, _ := dial(t, client.Config{}, client.Options{MaxAnswer: 1000}, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		body, abort := body, abort
		mu.Unlock()
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush()
		if abort {
			panic(http.ErrAbortHandler)
		}
	})
	all := func() (types []watch.EventType, err error) {
		w, err := c.Watch(t.Context(), boats, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		defer w.Close()
		for {
			e, err := w.Next()
			if err != nil {
				return types, err
			}
			types = append(types, e.Type)
		}
	}
	const added = `{"type":"ADDED","object":{"metadata":{"name":"a"}}}`
	for _, s := range []struct {
		body  string
		abort bool
		types []watch.EventType
		is    func(error) bool
	}{
		{"", false, nil, func(err error) bool { return err == io.EOF }},
		{added + "\n" + `{"type":"BOOKMARK","object":{}}`, false, []watch.EventType{"ADDED", "BOOKMARK"}, func(err error) bool { return err == io.EOF }},
		{added + added[:10], false, []watch.EventType{"ADDED"}, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{added + added[:10], true, []watch.EventType{"ADDED"}, func(err error) bool { return err != io.EOF }},
		{added, true, []watch.EventType{"ADDED"}, func(err error) bool { return err != io.EOF }},
		{strings.Repeat(added, 100), false, nil, func(err error) bool { return err == io.EOF }},
		{added + `{"type":"ADDED","object":"` + strings.Repeat("x", 2000), false, []watch.EventType{"ADDED"}, func(err error) bool { return errors.Is(err, client.ErrTooLong) }},
		{added + `{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}}`, false, []watch.EventType{"ADDED"}, apierrors.IsResourceExpired},
		{`{"type":"ERROR","object":{}}`, false, nil, apierrors.IsInternalError},
		{`{"type":"SUNK","object":{}}`, false, nil, func(err error) bool { return strings.Contains(err.Error(), "SUNK") }},
		{`<html>`, false, nil, func(err error) bool { return strings.Contains(err.Error(), "invalid character") }},
	} {
		mu.Lock()
		body, abort = s.body, s.abort
		mu.Unlock()
		types, err := all()
		if s.types != nil {
			want(t, s.body[:min(len(s.body), 80)], types, s.types)
		}
		if !s.is(err) {
			t.Errorf("%.80s: %v", s.body, err)
		}
	}
}

// Close ends requests in progress, and leaves no goroutines or connections behind.
func TestClose(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	release := make(chan struct{})
	asked := make(chan struct{}, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		asked <- struct{}{}
		<-release
	}))
	c, err := client.New(client.Config{Server: s.URL}, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.Watch(context.Background(), boats, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := w.Next(); !errors.Is(err, client.ErrClosed) {
			t.Errorf("watch: %v", err)
		}
	})
	wait.Go(func() {
		if _, err := c.Do(context.Background(), client.Request{}); !errors.Is(err, client.ErrClosed) {
			t.Errorf("request: %v", err)
		}
	})
	<-asked
	<-asked
	c.Close()
	c.Close()
	wait.Wait()
	if _, err := c.Do(context.Background(), client.Request{}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if _, err := c.Watch(context.Background(), boats, metav1.ListOptions{}); !errors.Is(err, client.ErrClosed) {
		t.Errorf("watch after Close: %v", err)
	}
	close(release)
	s.Close()
	if err := goleak.Find(leaks); err != nil {
		t.Error(err)
	}
}
