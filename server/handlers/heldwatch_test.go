package handlers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const initialBytes = 160 << 10 // the bytes that a watch counts before its initial events are sent

// until waits until another goroutine makes a condition true.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 10_000 {
		if done() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("this does not happen: " + what)
}

// late is a ResponseWriter of a client that reads nothing at first, and then everything.
type late struct {
	head   http.Header
	writes chan<- int   // receives the length of each write
	from   chan<- *byte // receives the address of the bytes of each write; may be nil
	read   <-chan struct{}

	mu   sync.Mutex
	code int
	text strings.Builder
}

func (s *late) Header() http.Header { return s.head }
func (s *late) WriteHeader(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
}
func (s *late) Flush()                           {}
func (s *late) SetWriteDeadline(time.Time) error { return nil }

func (s *late) Write(p []byte) (int, error) {
	if s.from != nil {
		s.from <- &p[0]
	}
	s.writes <- len(p)
	<-s.read
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// Watches with initial events count bytes before the first of them, and no more when they have sent the last.
func TestInitialEventsAreCounted(t *testing.T) {
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 2*initialBytes + initialBytes/2, User: -1, Address: -1})
	h, _, _ := largeHouse(t, 20, 64<<10, budget)
	read, writes := make(chan struct{}), make(chan int, 1000)
	var all sync.WaitGroup
	var clients []*late
	for range 2 {
		w := &late{head: http.Header{}, writes: writes, read: read}
		clients = append(clients, w)
		all.Go(func() {
			h.ServeHTTP(w, httptest.NewRequest("GET", base+"?watch=1&timeoutSeconds=3", http.NoBody))
		})
	}
	<-writes
	<-writes
	for _, query := range []string{"?watch=1", "?watch=1&resourceVersion=0", "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"} {
		w := h.ask("GET", base+query, "")
		wantStatus(t, w, 429, metav1.StatusReasonTooManyRequests, fmt.Sprintf("too many bytes in all: the limit is %d", budget.Bounds().All))
		if w.Header().Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
		}
	}
	if w := h.ask("GET", base+"?watch=1&timeoutSeconds=1&resourceVersion="+h.now(t), ""); w.Code != 200 {
		t.Errorf("a watch without initial events: %d %s", w.Code, w.Body)
	}
	close(read)
	until(t, "all initial events are sent, and no bytes are held by watches that wait", func() bool { return budget.Held() == 0 })
	all.Wait()
	for _, w := range clients {
		if events := strings.Count(w.text.String(), `"type":"ADDED"`); w.code != 200 || events != 20 {
			t.Errorf("%d, %d events", w.code, events)
		}
	}
}

// Large events that no cache shares are counted while they are sent. A watch without room for an event ends, and its client can
// continue at the last event that it received.
func TestLargeEventsAreCounted(t *testing.T) {
	const size = 300 << 10
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 2 * size, User: -1, Address: -1})
	var opts handlers.Options
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Budget, opts = budget, *o }})
	opts.Storage, opts.Subresources, opts.Budget = h.registry, nil, nil
	writer, err := handlers.New(opts) // this handler counts nothing
	must(t, err)
	h.make(t, "a")
	read, writes := make(chan struct{}), make(chan int, 1000)
	var all sync.WaitGroup
	var clients []*late
	for range 3 {
		w := &late{head: http.Header{}, writes: writes, read: read}
		clients = append(clients, w)
		target := base + "?watch=1&timeoutSeconds=5&resourceVersion=" + h.now(t)
		all.Go(func() { h.ServeHTTP(w, httptest.NewRequest("GET", target, http.NoBody)) })
		until(t, "the watch has begun", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.code != 0
		})
	}
	w := httptest.NewRecorder()
	body := fmt.Sprintf(`{"metadata":{"name":"large"},"spec":{"size":1,"data":%q}}`, strings.Repeat("x", size))
	if writer.ServeHTTP(w, httptest.NewRequest("POST", base, strings.NewReader(body))); w.Code != http.StatusCreated {
		t.Fatalf("POST: %d %s", w.Code, w.Body)
	}
	for range clients {
		<-writes
	}
	if held := budget.Held(); held < size || held > 2*size {
		t.Errorf("%d bytes are held", held)
	}
	close(read)
	all.Wait()
	shown, refused := 0, 0
	for _, w := range clients {
		var e struct {
			Type   string
			Object struct {
				Message string
				Code    int
			}
		}
		if err := json.NewDecoder(strings.NewReader(w.text.String())).Decode(&e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Type == "ADDED":
			shown++
		case e.Type == "ERROR" && e.Object.Code == 429 && strings.Contains(e.Object.Message, "too many bytes in all: the limit is 614400"):
			refused++
		default:
			t.Errorf("an event of the type %s: %v", e.Type, e.Object)
		}
	}
	if shown != 1 || refused != 2 {
		t.Errorf("%d watches have shown the event, %d have ended", shown, refused)
	}
	if held := budget.Held(); held != 0 {
		t.Errorf("%d bytes are held when all watches have ended", held)
	}
}

// A large event in a cache is made once for all watches of a form. It is counted once, until the last watch has sent it. No watch
// ends because of it.
func TestLargeEventsAreShared(t *testing.T) {
	const size, watches = 300 << 10, 5
	for accept, event := range map[string]func(object []byte) []byte{
		"application/json": func(object []byte) []byte {
			return slices.Concat([]byte(`{"type":"ADDED","object":`), bytes.TrimSuffix(object, []byte("\n")), []byte("}\n"))
		},
		"application/vnd.kubernetes.protobuf": func(object []byte) []byte { return codec.AppendWatchFrame(nil, "ADDED", object) },
	} {
		budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: size, User: -1, Address: -1})
		var opts handlers.Options
		h, _ := cachedMaps(t, 0, func(o *handlers.Options) { opts, o.Budget = *o, budget })
		writer, err := handlers.New(opts) // this handler counts nothing
		must(t, err)
		target := "/api/v1/namespaces/default/configmaps"
		read, writes, from := make(chan struct{}), make(chan int, 100), make(chan *byte, 100)
		var all sync.WaitGroup
		var clients []*late
		ctx, stop := context.WithCancel(t.Context())
		for range watches {
			w := &late{head: http.Header{}, writes: writes, from: from, read: read}
			clients = append(clients, w)
			r := httptest.NewRequestWithContext(ctx, "GET", target+"?watch=1&timeoutSeconds=60&resourceVersion="+h.now(t), http.NoBody)
			r.Header.Set("Accept", accept)
			all.Go(func() { h.ServeHTTP(w, r) })
			until(t, "the watch has begun", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.code != 0
			})
		}
		w := httptest.NewRecorder()
		body := fmt.Sprintf(`{"metadata":{"name":"large"},"data":{"text":%q}}`, strings.Repeat("x", size))
		if writer.ServeHTTP(w, httptest.NewRequest("POST", target, strings.NewReader(body))); w.Code != http.StatusCreated {
			t.Fatalf("POST: %d %s", w.Code, w.Body)
		}
		texts := map[*byte]bool{}
		for range clients {
			<-writes
			texts[<-from] = true
		}
		if held := budget.Held(); held != size || len(texts) != 1 {
			t.Errorf("%s: %d bytes are held; there are %d texts of one event", accept, held, len(texts))
		}
		wantStatus(t, h.ask("POST", target, body), 429, metav1.StatusReasonTooManyRequests, fmt.Sprintf("too many bytes in all: the limit is %d", size))
		close(read)
		object := httptest.NewRecorder()
		get := httptest.NewRequest("GET", target+"/large", http.NoBody)
		get.Header.Set("Accept", accept)
		writer.ServeHTTP(object, get)
		want := event(object.Body.Bytes())
		for _, w := range clients {
			until(t, "the watch has sent the event", func() bool {
				w.mu.Lock()
				defer w.mu.Unlock()
				return w.text.Len() >= len(want)
			})
			if w.text.String() != string(want) {
				t.Errorf("%s: the event has %d bytes and begins with %.100q; want %d, %.100q", accept, w.text.Len(), w.text.String(), len(want), want)
			}
		}
		until(t, "nothing is held any more", func() bool { return budget.Held() == 0 })
		stop()
		all.Wait()
	}
}

// A small event is not counted, even if it is in a large buffer of an earlier request.
func TestSmallEventsInLargeBuffers(t *testing.T) {
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 1 << 20, User: -1, Address: -1})
	var opts handlers.Options
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Budget, opts = budget, *o }})
	opts.Storage, opts.Subresources, opts.Budget = h.registry, nil, nil
	writer, err := handlers.New(opts) // this handler counts nothing
	must(t, err)
	post := func(name, data string) {
		t.Helper()
		w := httptest.NewRecorder()
		body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"size":1,"data":%q}}`, name, data)
		if writer.ServeHTTP(w, httptest.NewRequest("POST", base, strings.NewReader(body))); w.Code != http.StatusCreated {
			t.Fatalf("POST: %d %s", w.Code, w.Body)
		}
	}
	post("large", strings.Repeat("x", 500<<10))
	from := h.now(t)
	for range 8 { // these leave large buffers in the pool
		h.ask("GET", base+"/large", "")
	}
	rest, err := budget.Count(1 << 20)
	must(t, err)
	defer rest.Release()
	post("small", "x")
	w := h.ask("GET", base+"?watch=1&timeoutSeconds=1&resourceVersion="+from, "")
	if text := w.Body.String(); w.Code != 200 || !strings.Contains(text, `"type":"ADDED"`) || strings.Contains(text, `"type":"ERROR"`) {
		t.Errorf("%d %.300s", w.Code, text)
	}
}

// Different events of many watches whose clients do not read are bounded. A watch whose event is beyond the bound ends, and its
// client can continue at the last event that it received.
func TestSharedEventsAreBounded(t *testing.T) {
	const size, events = 300 << 10, 4
	budget := flowcontrol.NewBudget("bytes", flowcontrol.Bounds{All: 3 * size, User: -1, Address: -1})
	var opts handlers.Options
	h, _ := cachedMaps(t, 0, func(o *handlers.Options) { opts, o.Budget = *o, budget })
	writer, err := handlers.New(opts) // this handler counts nothing
	must(t, err)
	target := "/api/v1/namespaces/default/configmaps"
	read, writes := make(chan struct{}), make(chan int, 100)
	var all sync.WaitGroup
	var clients []*late
	for i := range events { // the client of each watch does not read the event of its own ConfigMap
		w := &late{head: http.Header{}, writes: writes, read: read}
		clients = append(clients, w)
		query := fmt.Sprintf("?watch=1&timeoutSeconds=4&resourceVersion=%s&fieldSelector=metadata.name%%3Dlarge%d", h.now(t), i)
		all.Go(func() { h.ServeHTTP(w, httptest.NewRequest("GET", target+query, http.NoBody)) })
		until(t, "the watch has begun", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.code != 0
		})
	}
	for i := range events {
		w := httptest.NewRecorder()
		body := fmt.Sprintf(`{"metadata":{"name":"large%d"},"data":{"text":%q}}`, i, strings.Repeat("x", size-2048))
		if writer.ServeHTTP(w, httptest.NewRequest("POST", target, strings.NewReader(body))); w.Code != http.StatusCreated {
			t.Fatalf("POST: %d %s", w.Code, w.Body)
		}
		<-writes
	}
	if held := budget.Held(); held < 2*size || held > 3*size {
		t.Errorf("%d bytes are held", held)
	}
	close(read)
	all.Wait()
	for i, w := range clients {
		text := w.text.String()
		if want := i < events-1; strings.HasPrefix(text, `{"type":"ADDED"`) != want || strings.Contains(text, `"code":429`) == want {
			t.Errorf("watch %d: %.300s", i, text)
		}
	}
	if held := budget.Held(); held != 0 {
		t.Errorf("%d bytes are held when all watches have ended", held)
	}
}
