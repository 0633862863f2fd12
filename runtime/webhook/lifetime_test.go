package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/webhook"
	"go.uber.org/goleak"
)

// Clients with equal configurations share connections; clients that trust other authorities do not.
func TestSharing(t *testing.T) {
	t.Parallel()
	h := serve(t, say(200, "ok"))
	caller := webhook.New(webhook.Options{})
	t.Cleanup(caller.Close)
	post := func(path string, bundle []byte) error {
		t.Helper()
		_, err := clientOf(t, caller, webhook.Config{URL: h.URL + path, CABundle: bundle}).Post(t.Context(), []byte("{}"))
		return err
	}
	for _, path := range []string{"/a", "/a", "/b"} {
		if err := post(path, h.pem); err != nil {
			t.Error(err)
		}
	}
	if got := h.conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1", got)
	}
	if err := post("/a", newAuthority(t).pem); err == nil {
		t.Error("a client that trusts others got an answer")
	}
	if got := webhook.Transports(caller); got != 2 {
		t.Errorf("%d transports, want 2", got)
	}
}

// The number of idle connections is limited, for any number of webhooks; connections in use stay.
func TestIdleBound(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	h := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hang" {
			close(entered)
			<-leave
		}
	})
	caller := webhook.New(webhook.Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == h.address() {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		return nil, errors.New("nobody")
	}})
	t.Cleanup(caller.Close)
	hung := make(chan error)
	go func() {
		_, err := clientOf(t, caller, webhook.Config{URL: h.URL + "/hang", CABundle: h.pem}).Post(t.Context(), []byte("{}"))
		hung <- err
	}()
	<-entered
	for i := range 3 * webhook.MaxTransports {
		_, err := clientOf(t, caller, webhook.Config{URL: fmt.Sprintf("https://hook%d.example.com", i)}).Post(t.Context(), []byte("{}"))
		wantError(t, err, "nobody")
	}
	if got := webhook.Transports(caller); got != webhook.MaxTransports {
		t.Errorf("%d transports, want %d", got, webhook.MaxTransports)
	}
	close(leave)
	wantError(t, <-hung, "0-length response with status code: 200")
	if _, err := clientOf(t, caller, webhook.Config{URL: h.URL, CABundle: h.pem}).Post(t.Context(), []byte("{}")); err == nil || h.conns.Load() != 1 {
		t.Errorf("%v; %d connections, want 1", err, h.conns.Load())
	}
}

// A call returns at once when its context ends.
func TestContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	h := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	client, _ := newClient(t, h, webhook.Options{})
	if _, err := client.Post(ctx, []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	client, _ = newClient(t, h, webhook.Options{Timeout: 50 * time.Millisecond})
	if _, err := client.Post(t.Context(), []byte("{}")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	again, leave := context.WithCancel(t.Context())
	h = serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer leave() // while the client waits to send the request again, or reads the answer
		say(429, "", "Retry-After", "20")(w, r)
	})
	client, _ = newClient(t, h, webhook.Options{})
	if _, err := client.Post(again, []byte("{}")); err == nil {
		t.Error("an answer that says 429 is none")
	}
}

// After Close there are no calls, connections or goroutines left.
func TestClose(t *testing.T) {
	entered := make(chan struct{}, 10)
	h := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise an HTTP/1.1 server does not notice that the client has disconnected
		switch r.URL.Path {
		case "/hang":
			entered <- struct{}{}
			<-r.Context().Done()
		case "/amid":
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			entered <- struct{}{}
			<-r.Context().Done()
		default:
			_, _ = w.Write([]byte("{}"))
		}
	}, "hooks.prod.svc")
	leaks := goleak.IgnoreCurrent()
	dialling, asked := make(chan struct{}, 1), make(chan struct{}, 1)
	var lingered atomic.Int64
	linger := func(d time.Duration) { // Close waits for this
		time.Sleep(d)
		lingered.Add(1)
	}
	caller := webhook.New(webhook.Options{
		Timeout: 24 * time.Hour,
		Resolve: func(context.Context, string, string, int32) (string, error) { return h.address(), nil },
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == h.address() {
				return new(net.Dialer).DialContext(ctx, network, address)
			}
			dialling <- struct{}{}
			<-ctx.Done()
			linger(60 * time.Millisecond)
			return nil, ctx.Err()
		},
		Identify: func(hostPort string) (webhook.Identity, error) {
			return webhook.Identity{Authorization: func(ctx context.Context) (string, error) {
				if hostPort == "locked.example.com:443" {
					asked <- struct{}{}
					<-ctx.Done()
					linger(20 * time.Millisecond)
				}
				return "", nil
			}}, nil
		},
	})
	post := func(cfg webhook.Config) error {
		client, err := caller.Client(cfg)
		if err != nil {
			return err
		}
		_, err = client.Post(context.Background(), []byte("{}"))
		return err
	}
	service := func(path string) webhook.Config {
		return webhook.Config{Service: &webhook.Service{Namespace: "prod", Name: "hooks", Path: path}, CABundle: h.pem}
	}
	for _, cfg := range []webhook.Config{{URL: h.URL, CABundle: h.pem}, service("/")} {
		if err := post(cfg); err != nil {
			t.Fatal(err)
		}
	}
	hanging := []webhook.Config{
		{URL: h.URL + "/hang", CABundle: h.pem}, {URL: h.URL + "/amid", CABundle: h.pem}, service("/hang"), service("/amid"),
		{URL: "https://hook.example.com"}, {URL: "https://locked.example.com"},
	}
	var all sync.WaitGroup
	for _, cfg := range hanging {
		all.Go(func() { wantError(t, post(cfg), "the caller is closed") })
	}
	for range 4 {
		<-entered
	}
	<-dialling
	<-asked
	caller.Close()
	if got := lingered.Load(); got != 2 {
		t.Errorf("%d of 2 have returned when Close does", got)
	}
	all.Wait()
	wantError(t, post(hanging[0]), "the caller is closed")
	for range h.conns.Load() { // one with HTTP/2, at least two with HTTP/1.1; all are closed
		<-h.closed
	}
	caller.Close() // a second time
	h.Close()
	goleak.VerifyNone(t, leaks)
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
