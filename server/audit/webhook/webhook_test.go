package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/audit/webhook"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a server that receives events.
type receiver struct {
	fails int           // how many requests fail at first
	waits chan struct{} // a request waits until it is closed; nil: it does not wait

	mu       sync.Mutex // guards the fields below
	requests []string   // "POST /audit?timeout=30s application/json"
	bodies   []string
}

func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.String()+" "+r.Header.Get("Content-Type"))
	s.bodies = append(s.bodies, string(body))
	fails := len(s.requests) <= s.fails
	s.mu.Unlock()
	if s.waits != nil {
		select {
		case <-s.waits:
		case <-r.Context().Done():
		}
	}
	if fails {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// sent returns the bodies that have been sent.
func (s *receiver) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.bodies)
}

func start(t *testing.T, r *receiver, o webhook.Options) *webhook.Sink {
	t.Helper()
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	s, err := webhook.New(client.Config{Server: srv.URL + "/audit"}, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestEventsAreSent(t *testing.T) {
	t.Parallel()
	r := &receiver{}
	s := start(t, r, webhook.Options{})
	if err := s.Record(t.Context(), &audit.Event{AuditID: "1"}, &audit.Event{AuditID: "2"}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.requests, ", "); got != "POST /audit?timeout=30s application/json" {
		t.Error(got)
	}
	var list struct{ Items []audit.Event }
	if err := json.Unmarshal([]byte(r.sent()[0]), &list); err != nil || len(list.Items) != 2 || list.Items[1].AuditID != "2" {
		t.Errorf("%s %v", r.sent()[0], err)
	}
	if !strings.HasPrefix(r.sent()[0], `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{"level":""`) {
		t.Error(r.sent()[0])
	}
}

func TestEventsAreSentAgain(t *testing.T) {
	t.Parallel()
	r := &receiver{fails: 2}
	s := start(t, r, webhook.Options{Attempts: 3, Backoff: time.Millisecond})
	if err := s.Record(t.Context(), &audit.Event{AuditID: "1"}); err != nil {
		t.Fatal(err)
	}
	if len(r.sent()) != 3 || r.sent()[0] != r.sent()[2] {
		t.Errorf("%q", r.sent())
	}
	r = &receiver{fails: 9}
	s = start(t, r, webhook.Options{Attempts: 3, Backoff: time.Millisecond})
	if err := s.Record(t.Context(), &audit.Event{AuditID: "1"}); err == nil || !strings.Contains(err.Error(), "1 events were not sent in 3 attempts") || len(r.sent()) != 3 {
		t.Errorf("%d requests, %v", len(r.sent()), err)
	}
}

func TestAttemptsEnd(t *testing.T) {
	t.Parallel()
	r := &receiver{fails: 9}
	s := start(t, r, webhook.Options{Backoff: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Record(ctx, &audit.Event{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("between attempts: %v", err)
	}
	r = &receiver{waits: make(chan struct{})}
	s = start(t, r, webhook.Options{})
	done := make(chan error, 1)
	go func() { done <- s.Record(context.Background(), &audit.Event{}) }()
	time.Sleep(20 * time.Millisecond)
	s.Close()
	if err := <-done; !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	close(r.waits)
	r = &receiver{waits: make(chan struct{})}
	s = start(t, r, webhook.Options{Timeout: 20 * time.Millisecond, Attempts: 2, Backoff: time.Millisecond})
	if err := s.Record(t.Context(), &audit.Event{}); err == nil || len(r.sent()) != 2 {
		t.Errorf("a server that does not answer: %d requests, %v", len(r.sent()), err)
	}
	close(r.waits)
}

func TestWebhooksThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for _, o := range []webhook.Options{{Attempts: -1}, {Backoff: -1}, {Timeout: -1}} {
		if _, err := webhook.New(client.Config{Server: "http://127.0.0.1:1"}, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if _, err := webhook.New(client.Config{Server: "ftp://x"}, webhook.Options{}); err == nil || !strings.Contains(err.Error(), "scheme") {
		t.Error(err)
	}
}

// A batch in front of a server that comes back loses nothing.
func TestBatchOfAServerThatComesBack(t *testing.T) {
	t.Parallel()
	r := &receiver{fails: 3}
	s := start(t, r, webhook.Options{Backoff: time.Millisecond})
	b, err := audit.NewBatch(s, audit.BatchOptions{MaxSize: 7, QPS: -1, Failed: func(err error, _ int) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if err := b.Record(t.Context(), &audit.Event{AuditID: "x"}); err != nil {
			t.Error(err)
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	n := 0
	for _, body := range r.sent()[3:] {
		n += strings.Count(body, `"auditID":"x"`)
	}
	if n != 100 {
		t.Errorf("%d events", n)
	}
}
