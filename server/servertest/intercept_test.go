package servertest_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// took returns how long f takes, in the time of a bubble.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func TestDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarbour(t, server.Options{})
		h.want(201, h.create("sloop"))
		get := func() { h.want(200, h.get("sloop")) }

		remove := h.Inject(servertest.Fault{Match: on("get"), Delay: 3 * time.Second})
		other := h.Inject(servertest.Fault{Match: on("get"), Delay: time.Second, Times: 1})
		if d := took(get); d != 4*time.Second {
			t.Errorf("two delays took %v, want 4s", d)
		}
		other()
		remove()
		if d := took(get); d != 0 {
			t.Errorf("without a fault it took %v", d)
		}

		seen := map[time.Duration]bool{}
		remove = h.Inject(servertest.Fault{Match: on("get"), Delay: time.Second, Jitter: time.Second, Seed: 1})
		for range 8 {
			d := took(get)
			if d < time.Second || d > 2*time.Second {
				t.Errorf("it took %v, want between 1s and 2s", d)
			}
			seen[d] = true
		}
		if len(seen) < 4 {
			t.Errorf("there are only %d delays", len(seen))
		}
		remove()

		// A delay ends at the deadline of the request: the server's, or the client's timeout parameter.
		remove = h.Inject(servertest.Fault{Match: on("get"), Delay: time.Hour})
		for query, want := range map[string]time.Duration{"": time.Minute, "?timeout=5s": 5 * time.Second} {
			var a reply
			if d := took(func() { a = h.do("GET", boats+"/sloop"+query, "") }); d != want {
				t.Errorf("%q took %v, want %v", query, d, want)
			}
			if s := h.want(504, a).status(t); s.Reason != metav1.StatusReasonTimeout {
				t.Errorf("%q answered %+v", query, s)
			}
		}

		// The sum of the longest delays does not overflow.
		remove()
		remove = h.Inject(servertest.Fault{Match: on("get"), Delay: math.MaxInt64, Jitter: math.MaxInt64})
		other = h.Inject(servertest.Fault{Match: on("get"), Delay: math.MaxInt64})
		if d := took(func() { h.want(504, h.get("sloop")) }); d != time.Minute {
			t.Errorf("the longest delay took %v", d)
		}
		other()

		// A delay also ends when the client leaves.
		rec := h.Record(servertest.Match{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if a := h.doIn(ctx, "GET", boats+"/sloop", ""); !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("the client got %+v", a)
		}
		synctest.Wait()
		if got := rec.Requests(); len(got) != 1 || !got[0].Ended || got[0].Completed {
			t.Errorf("recorded %+v", got)
		}
		remove()

		// A delay also ends with the server.
		h.Inject(servertest.Fault{Match: on("get", "watch"), Delay: 24 * time.Hour})
		for _, path := range []string{boats + "?watch=1", boats + "/sloop?timeout=30s"} {
			go func() { h.wantDropped(h.do("GET", path, "")) }()
		}
		synctest.Wait()
		if d := took(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}); d > time.Second {
			t.Errorf("the server took %v to end", d)
		}
		synctest.Wait()
	})
}

func TestTimesOfWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarbour(t, server.Options{})
		h.want(201, h.create("sloop"))
		h.Inject(servertest.Fault{Match: on("watch"), Lasts: time.Minute, Expired: true, Times: 1})
		h.Inject(servertest.Fault{Match: on("watch"), Lasts: 10 * time.Second, Events: 2, Times: 1})
		h.Inject(servertest.Fault{Match: on("watch"), Events: 5, Drop: true})
		for _, tc := range []struct {
			timeout string
			want    time.Duration
			events  int
		}{{"600", time.Minute, 2}, {"600", 10 * time.Second, 1}, {"30", 30 * time.Second, 1}} {
			var a reply
			if d := took(func() { a = h.want(200, h.do("GET", boats+"?watch=1&timeoutSeconds="+tc.timeout, "")) }); d != tc.want {
				t.Errorf("a watch took %v, want %v", d, tc.want)
			}
			if got, _ := eventsOf(t, a); len(got) != tc.events {
				t.Errorf("the events are %v, want %d", got, tc.events)
			}
		}
	})
}

// Over HTTP/1.1 a dropped connection is closed, and a recording treats a WebSocket like any other watch.
func TestConnectionsOfHTTP1(t *testing.T) {
	t.Parallel()
	h := newHarbour(t, server.Options{})
	h.want(201, h.create("sloop"))
	transport := h.Transport()
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP1(true)
	defer transport.CloseIdleConnections()
	send := func(path string, header ...string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", h.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+h.Token)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return transport.RoundTrip(r)
	}

	remove := h.Inject(servertest.Fault{Match: on("get"), Drop: true})
	if resp, err := send(boats + "/sloop"); !errors.Is(err, io.EOF) {
		t.Errorf("answered %v, error %v; want EOF", resp, err)
	}
	remove()

	h.Inject(servertest.Fault{Match: on("watch"), Events: 1, Error: errors.New("oops"), Times: 1})
	rec := h.Record(on("watch"))
	resp, err := send(boats+"?watch=1", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-Websocket-Version", "13", "Sec-Websocket-Key", "AAAAAAAAAAAAAAAAAAAAAA==")
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 101 {
		t.Fatalf("answered %s", resp.Status)
	}
	frame := make([]byte, 64)
	if _, err := io.ReadFull(resp.Body, frame); err != nil || !strings.Contains(string(frame), `"ADDED"`) {
		t.Errorf("the first frame begins %q, error %v", frame, err)
	}
	if got := rec.Requests(); len(got) != 1 || got[0].Code != 101 || got[0].Ended {
		t.Errorf("recorded %+v", got)
	}
	resp.Body.Close()
	if got, _ := eventsOf(t, h.want(200, h.do("GET", boats+"?watch=1", ""))); len(got) != 2 { // ADDED and ERROR
		t.Errorf("the fault that passes a WebSocket over let the next watch have %v", got)
	}
}

// BenchmarkGet measures a GET through the whole server, without the network: without servertest, with it, with a fault that never
// happens, and recorded.
func BenchmarkGet(b *testing.B) {
	alone := func() http.Handler {
		srv, err := server.New(server.Options{Groups: []server.Group{boatGroup()}, Storage: memory.Open(), Policy: server.Policy{Authenticator: everybody{}}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { srv.Close() })
		return srv.Handler()
	}
	fixture := func(prepare func(h harbour)) func() http.Handler {
		return func() http.Handler {
			h := newHarbour(b, server.Options{Policy: server.Policy{Authenticator: everybody{}}})
			prepare(h)
			return h.Handler()
		}
	}
	for _, bc := range []struct {
		name    string
		handler func() http.Handler
	}{
		{"server", alone},
		{"idle", fixture(func(harbour) {})},
		{"fault", fixture(func(h harbour) { h.Inject(servertest.Fault{Match: on("create"), Drop: true}) })},
		{"recorded", fixture(func(h harbour) { h.Record(servertest.Match{}) })},
	} {
		b.Run(bc.name, func(b *testing.B) {
			handler := bc.handler()
			serve := func(r *http.Request) int {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				return w.Code
			}
			serve(httptest.NewRequest("GET", boats+"/none", nil))
			b.ReportAllocs()
			for b.Loop() {
				if code := serve(httptest.NewRequest("GET", boats+"/none", nil)); code != 404 {
					b.Fatal(code)
				}
			}
		})
	}
}

// everybody is an authenticator that authenticates every request as the administrator.
type everybody struct{}

func (everybody) Authenticate(*http.Request) (*authn.Response, error) {
	return &authn.Response{User: authn.User{Name: "admin", Groups: []string{"system:masters"}}}, nil
}
