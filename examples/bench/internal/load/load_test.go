package load_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/examples/bench/internal/load"
)

// serve runs a server with HTTP/2 for the test.
func serve(t *testing.T, handler http.HandlerFunc) load.Target {
	s := httptest.NewUnstartedServer(handler)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	cas := x509.NewCertPool()
	cas.AddCert(s.Certificate())
	return load.Target{URL: s.URL, Token: "secret", CAs: cas}
}

func TestDo(t *testing.T) {
	body := strings.Repeat("0123456789", 100_000)
	target := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			http.Error(w, "who is it?", http.StatusUnauthorized)
		case r.Header.Get("Accept-Encoding") == "gzip":
			w.Header().Set("Content-Encoding", "gzip") // the client does not decode it
			fmt.Fprint(w, "squeezed")
		case r.Method == http.MethodPost:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, r.Header.Get("Content-Type"))
		default:
			fmt.Fprint(w, body)
		}
	})
	c := target.Dial()
	defer c.Close()
	for _, tt := range []struct {
		name    string
		request load.Request
		head    string
		size    int
		gzipped bool
	}{
		{"nothing is kept", load.Request{Path: "/"}, "", len(body), false},
		{"a beginning is kept", load.Request{Path: "/", Keep: 12}, "012345678901", len(body), false},
		{"all is kept", load.Request{Path: "/", Keep: load.KeepAll}, body, len(body), false},
		{"compressed", load.Request{Path: "/", Gzip: true, Keep: load.KeepAll}, "squeezed", 8, true},
		{"a body is JSON", load.Request{Method: http.MethodPost, Path: "/", Body: []byte("{}"), Keep: 100}, "application/json", 16, false},
		{"or what it is", load.Request{Method: http.MethodPost, Path: "/", Body: []byte("{}"), ContentType: "text/x", Keep: 100}, "text/x", 6, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, err := c.Do(t.Context(), tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if string(a.Head) != tt.head || a.Size != int64(tt.size) || a.Gzipped != tt.gzipped {
				t.Errorf("%d bytes, %d kept, gzipped %v; want %d, %d, %v", a.Size, len(a.Head), a.Gzipped, tt.size, len(tt.head), tt.gzipped)
			}
		})
	}
	target.Token = ""
	unauthenticated := target.Dial()
	defer unauthenticated.Close()
	_, err := unauthenticated.Do(t.Context(), load.Request{Path: "/x?y=1"})
	refused := new(load.StatusError)
	const want = "GET /x?y=1 was answered with 401: who is it?"
	if !errors.As(err, &refused) || refused.Code != http.StatusUnauthorized || !strings.Contains(err.Error(), want) {
		t.Errorf("without the token: %v", err)
	}
}

func TestLoopEnds(t *testing.T) {
	clients := make([]*load.Client, 3) // the operations do not use them
	for _, tt := range []struct {
		name  string
		limit load.Limit
		want  int // the minimum; exact if there is a Most
	}{
		{"at the most", load.Limit{For: time.Hour, Most: 7}, 7},
		{"not before the least", load.Limit{Least: 20}, 20},
		{"between", load.Limit{Least: 5, Most: 5}, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var done atomic.Int64
			r, err := load.Loop(t.Context(), clients, tt.limit, func(context.Context, *load.Client, int, int) error {
				done.Add(1)
				return nil
			})
			if err != nil || r.Ops != int(done.Load()) || r.Ops != len(r.Latencies) {
				t.Fatalf("%d operations, %d latencies, %d done, %v", r.Ops, len(r.Latencies), done.Load(), err)
			}
			if r.Ops < tt.want || tt.limit.Most > 0 && r.Ops > tt.want {
				t.Errorf("%d operations, want %d", r.Ops, tt.want)
			}
		})
	}
}

func TestLoopEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("broken")
	long := load.Limit{For: time.Hour}
	_, err := load.Loop(t.Context(), make([]*load.Client, 4), long, func(ctx context.Context, _ *load.Client, worker, n int) error {
		if worker == 2 && n == 3 {
			return broken
		}
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("the loop ended with %v", err)
	}
}

func TestLoopCountsByClient(t *testing.T) {
	var mu sync.Mutex
	next := make(map[int]int)
	limit := load.Limit{Least: 100, Most: 100}
	_, err := load.Loop(t.Context(), make([]*load.Client, 3), limit, func(_ context.Context, _ *load.Client, worker, n int) error {
		mu.Lock()
		defer mu.Unlock()
		if next[worker] != n {
			return fmt.Errorf("operation %d of client %d is the number %d", next[worker], worker, n)
		}
		next[worker]++
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestQuantile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, tt := range []struct {
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		{nil, 0.5, 0}, {hundred[:1], 0.99, 1}, {hundred, 0.5, 51}, {hundred, 0.99, 100}, {hundred, 1, 100}, {hundred, 0, 1},
	} {
		if got := load.Quantile(tt.sorted, tt.q); got != tt.want {
			t.Errorf("quantile %v of %d values is %d, want %d", tt.q, len(tt.sorted), got, tt.want)
		}
	}
}
