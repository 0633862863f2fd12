package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// flaky is a backend whose calls return an error while down is set.
type flaky struct {
	storage.Backend
	down  atomic.Bool
	asked atomic.Int32
}

var errCut = fmt.Errorf("etcd at 10.0.0.1:2379: %w: connection refused", storage.ErrUnavailable)

func (f *flaky) err() error {
	if f.down.Load() {
		return errCut
	}
	return nil
}

func (f *flaky) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if err := f.err(); err != nil {
		return storage.GetResult{}, err
	}
	return f.Backend.Get(ctx, key, at)
}

func (f *flaky) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if err := f.err(); err != nil {
		return storage.RangeResult{}, err
	}
	return f.Backend.Range(ctx, r)
}

func (f *flaky) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if err := f.err(); err != nil {
		return storage.CommitResult{}, err
	}
	return f.Backend.Commit(ctx, c)
}

// Ready implements storage.Readier.
func (f *flaky) Ready(context.Context) error {
	f.asked.Add(1)
	return f.err()
}

// If calls of the storage fail, the answer is a 503 with the cause. For a change it says that the change may have been made.
// There is no Retry-After, since clients would then repeat the request by themselves.
func TestAnUnavailableStorageIsServiceUnavailable(t *testing.T) {
	t.Parallel()
	store := &flaky{Backend: memory.New(memory.Options{})}
	opts := wireOptions()
	opts.Storage = storage.Opened(store)
	srv := servertest.Start(t, opts)
	w := &wire{Server: srv, client: srv.Client()}
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	store.down.Store(true)
	for _, c := range []struct {
		method, path, body string
		change             bool
	}{
		{"GET", widgetList + "/a", "", false},
		{"GET", widgetList, "", false},
		{"GET", widgetList + "?watch=1", "", false},
		{"POST", widgetList, `{"metadata":{"name":"b"}}`, true},
		{"PUT", widgetList + "/a", `{"metadata":{"name":"a"},"spec":{"size":9}}`, true},
		{"PATCH", widgetList + "/a", `{"spec":{"size":9}}`, true},
		{"DELETE", widgetList + "/a", "", true},
		{"DELETE", widgetList + "/a" + unsafely, "", true},
		{"DELETE", widgetList, "", false}, // the list before the first deletion fails
	} {
		var header []string
		if c.method == "PATCH" {
			header = []string{"Content-Type", mergePatch}
		}
		a := w.ask(t, c.method, c.path, c.body, header...)
		s := a.status(t)
		if a.code != 503 || s.Reason != "ServiceUnavailable" || !strings.Contains(s.Message, errCut.Error()) || a.header.Get("Retry-After") != "" {
			t.Errorf("%s %s: %d, Retry-After %q, %s", c.method, c.path, a.code, a.header.Get("Retry-After"), a.body)
		}
		if mentioned := strings.Contains(s.Message, "may have been made"); mentioned != c.change {
			t.Errorf("%s: %q", c.method, s.Message)
		}
	}
	store.down.Store(false)
	w.ask(t, "GET", widgetList+"/a", "").want(t, 200)
}

// A storage that is a Healther and a Readier has both health checks.
func TestStorageReadiness(t *testing.T) {
	t.Parallel()
	store := &flaky{Backend: memory.New(memory.Options{})}
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(store)})
	c := srv.Client()
	code, body := call(t, c, "GET", srv.URL+"/readyz?verbose", "")
	wantCode(t, 200, code, body)
	if !strings.Contains(body, "[+]storage ok\n[+]storage-readiness ok\n[+]cache-readiness ok\n") {
		t.Errorf("readyz: %s", body)
	}
	store.down.Store(true)
	for path, want := range map[string]int{
		"/readyz": 500, "/readyz/storage-readiness": 500, "/readyz?exclude=storage-readiness": 200, "/livez": 200, "/healthz": 200, "/livez/storage-readiness": 404,
	} {
		code, body := call(t, c, "GET", srv.URL+path, "")
		wantCode(t, want, code, body)
		if path == "/readyz/storage-readiness" && !strings.Contains(body, errCut.Error()) {
			t.Errorf("%s: %s", path, body)
		}
	}
	plain := servertest.New(t)
	code, body = call(t, plain.Client(), "GET", plain.URL+"/readyz/storage-readiness", "")
	wantCode(t, 404, code, body)
}

// hung is a backend whose health check does not return until the backend is closed.
type hung struct {
	storage.Backend
	asked   atomic.Int32
	waiting chan struct{}
	begin   sync.Once
}

// Health implements storage.Healther. The first call, when the server starts, succeeds.
func (h *hung) Health(ctx context.Context) error {
	if h.asked.Add(1) == 1 {
		return nil
	}
	h.begin.Do(func() { close(h.waiting) })
	<-ctx.Done()
	return errors.New("hung: " + ctx.Err().Error())
}

// Any number of health checks make one call at a time of a storage that does not return, and the server can end.
func TestHealthOfAHungStorage(t *testing.T) {
	t.Parallel()
	store := &hung{Backend: memory.New(memory.Options{}), waiting: make(chan struct{})}
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(store)})
	c := srv.Anonymous()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if code, body := call(t, c, "GET", srv.URL+"/livez", ""); code != 500 {
				t.Errorf("%d %s", code, body)
			}
		})
	}
	<-store.waiting
	all.Wait()
	if n := store.asked.Load(); n > 1+20/2 {
		t.Errorf("the storage was asked %d times", n)
	}
}

// deaf is a backend whose health check does not return until the backend is closed, even if its context ends.
type deaf struct {
	storage.Backend
	asked   atomic.Int32
	waiting chan struct{}
	closed  chan struct{}
	begin   sync.Once
	end     sync.Once
}

// Health implements storage.Healther. The first answer, when the server begins, is good.
func (d *deaf) Health(context.Context) error {
	if d.asked.Add(1) > 1 {
		d.begin.Do(func() { close(d.waiting) })
		<-d.closed
	}
	return nil
}

func (d *deaf) Close() error {
	d.end.Do(func() { close(d.closed) })
	return d.Backend.Close()
}

// The server ends although the health check of the storage does not return: closing the storage ends the check.
func TestCloseOfADeafStorage(t *testing.T) {
	t.Parallel()
	store := &deaf{Backend: memory.New(memory.Options{}), waiting: make(chan struct{}), closed: make(chan struct{})}
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(store)})
	code, body := call(t, srv.Anonymous(), "GET", srv.URL+"/livez", "")
	wantCode(t, 500, code, body)
	<-store.waiting
	_ = srv.Close()
	select {
	case <-store.closed:
	default:
		t.Error("the storage is open")
	}
}

// dying is a backend whose feeds end with err when life does.
type dying struct {
	storage.Backend
	err  error
	life context.Context
}

func (d *dying) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	f, err := d.Backend.Watch(ctx, w)
	return &dyingFeed{Feed: f, d: d}, err
}

type dyingFeed struct {
	storage.Feed
	d *dying
}

func (f *dyingFeed) Next(ctx context.Context) (storage.Changes, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.d.life, cancel)() // stops cancel
	got, err := f.Feed.Next(ctx)
	if f.d.life.Err() != nil {
		return storage.Changes{}, f.d.err
	}
	return got, err
}

// A watch without a cache ends with an ERROR event with the cause when its storage is lost. Events from before are sent first.
func TestAnUnavailableStorageEndsWatches(t *testing.T) {
	t.Parallel()
	life, end := context.WithCancel(context.Background())
	defer end()
	store := &dying{Backend: memory.New(memory.Options{}), err: errCut, life: life}
	w := newWire(t, uncached, func(o *server.Options) { o.Storage = storage.Opened(store) })
	s := w.watch(t, widgetList+"?watch=1")
	w.make(t, widgetList, `{"metadata":{"name":"a"}}`)
	s.want("ADDED a")
	end()
	e := s.next()
	var status metav1.Status
	if err := json.Unmarshal(e.Object, &status); err != nil || e.Type != "ERROR" || status.Kind != "Status" ||
		status.Code != 503 || status.Reason != metav1.StatusReasonServiceUnavailable || !strings.Contains(status.Message, errCut.Error()) {
		t.Errorf("%s", e.text)
	}
	s.end()
}
