package lifecycle_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/internal/lifecycle"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// waitTime is the timeout of every wait.
const waitTime = 30 * time.Second

type gadget = runtime.Resource[gadgetSpec, struct{}]

type gadgetSpec struct {
	Size int `json:"size,omitempty"`
}

// backend is a storage in memory for several servers. It can be slow and broken.
type backend struct {
	*memory.Backend
	lag    time.Duration                           // delay of events in watches
	broken *atomic.Pointer[func(key string) error] // called with every key; its error is returned
	before *atomic.Pointer[func(c storage.Commit)] // called before every commit
}

func newBackend(t *testing.T) backend {
	t.Helper()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { _ = b.Close() })
	return backend{
		Backend: b, broken: &atomic.Pointer[func(string) error]{}, before: &atomic.Pointer[func(storage.Commit)]{},
	}
}

// Close leaves the storage to the other servers.
func (backend) Close() error { return nil }

func (b backend) fails(key string) error {
	if f := b.broken.Load(); f != nil {
		return (*f)(key)
	}
	return nil
}

func (b backend) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if err := b.fails(key); err != nil {
		return storage.GetResult{}, err
	}
	return b.Backend.Get(ctx, key, at)
}

func (b backend) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if err := b.fails(r.From); err != nil {
		return storage.RangeResult{}, err
	}
	return b.Backend.Range(ctx, r)
}

func (b backend) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if err := b.fails(c.Key); err != nil {
		return storage.CommitResult{}, err
	}
	if f := b.before.Load(); f != nil {
		(*f)(c)
	}
	return b.Backend.Commit(ctx, c)
}

func (b backend) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	if err := b.fails(w.Prefix); err != nil {
		return nil, err
	}
	feed, err := b.Backend.Watch(ctx, w)
	if err != nil || b.lag == 0 {
		return feed, err
	}
	return lateFeed{feed, b.lag}, nil
}

// lateFeed is a feed with delayed events.
type lateFeed struct {
	storage.Feed
	lag time.Duration
}

func (f lateFeed) Next(ctx context.Context) (storage.Changes, error) {
	changes, err := f.Feed.Next(ctx)
	if err == nil && len(changes.Changes) > 0 {
		select {
		case <-time.After(f.lag):
		case <-ctx.Done():
		}
	}
	return changes, err
}

// node is a server with namespaces.
type node struct {
	t          *testing.T
	srv        *servertest.Server
	host       *server.Host
	life       *lifecycle.Lifecycle
	namespaces *registry.Typed[*corev1.Namespace]
	configMaps *registry.Typed[*corev1.ConfigMap]
	client     *http.Client
}

func groups(more ...server.Group) []server.Group {
	return append([]server.Group{
		{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Gadget", server.KindOptions[*gadget]{})}}}},
	}, more...)
}

// start runs a server with namespaces, ConfigMaps, Leases and gadgets. It deletes content only after run is called.
func start(t *testing.T, b storage.Backend, opts lifecycle.Options, more ...server.Group) *node {
	t.Helper()
	return startWith(t, server.Options{}, b, opts, more...)
}

func startWith(t *testing.T, o server.Options, b storage.Backend, opts lifecycle.Options, more ...server.Group) *node {
	t.Helper()
	o.Storage, o.Groups = storage.Opened(b), groups(more...)
	srv := servertest.Start(t, o)
	n := &node{t: t, srv: srv, client: srv.Client()}
	t.Cleanup(n.client.CloseIdleConnections)
	err := srv.Install(server.ExtensionFunc(func(h *server.Host) (err error) {
		n.host = h
		n.life, err = install(h, opts)
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	n.namespaces = typedOf[*corev1.Namespace](t, n.host, "namespaces")
	n.configMaps = typedOf[*corev1.ConfigMap](t, n.host, "configmaps")
	return n
}

func install(h *server.Host, opts lifecycle.Options) (*lifecycle.Lifecycle, error) {
	finalizer := &lifecycle.Finalizer{}
	err := h.Serve(
		server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.Namespace(finalizer), builtin.ConfigMap()}}}},
		server.Group{Name: "coordination.k8s.io", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.Lease()}}}},
	)
	if err != nil {
		return nil, err
	}
	return lifecycle.Install(h, finalizer, opts)
}

func typedOf[T runtime.Object](t *testing.T, h *server.Host, resource string) *registry.Typed[T] {
	t.Helper()
	r, err := h.Registry(schema.GroupResource{Resource: resource})
	if err != nil {
		t.Fatal(err)
	}
	typed, err := registry.For[T](r, authn.System())
	if err != nil {
		t.Fatal(err)
	}
	return typed
}

// run deletes content until the returned function is called, or the test ends.
func (n *node) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		if err := n.life.Run(ctx); !errors.Is(err, context.Canceled) {
			n.t.Errorf("Run: %v", err)
		}
	})
	stop = func() { cancel(); work.Wait() }
	n.t.Cleanup(stop)
	return stop
}

func (n *node) makeNamespace(name string) *corev1.Namespace {
	n.t.Helper()
	ns, err := n.namespaces.Create(n.t.Context(), "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err != nil {
		n.t.Fatal(err)
	}
	return ns
}

func (n *node) makeConfigMap(namespace, name string, finalizers ...string) {
	n.t.Helper()
	_, err := n.configMaps.Create(n.t.Context(), namespace, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: finalizers}})
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) deleteNamespace(name string) {
	n.t.Helper()
	if _, _, err := n.namespaces.Delete(n.t.Context(), "", name, nil); err != nil {
		n.t.Fatal(err)
	}
}

// waitGone waits until a namespace is gone.
func (n *node) waitGone(name string) {
	n.t.Helper()
	n.wait("namespace "+name+" is gone", func() bool {
		_, err := n.namespaces.Get(n.t.Context(), "", name)
		return apierrors.IsNotFound(err)
	})
}

// wait waits until so returns true.
func (n *node) wait(what string, so func() bool) {
	n.t.Helper()
	for end := time.Now().Add(waitTime); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("after %v it is not so that %s", waitTime, what)
		}
	}
}

// stays checks several times that so returns true. It may miss a late change.
func (n *node) stays(what string, so func() bool) {
	n.t.Helper()
	for range 50 {
		if !so() {
			n.t.Fatalf("it is not so that %s", what)
		}
		time.Sleep(4 * time.Millisecond)
	}
}

// content lists the objects in a namespace, of all kinds.
func (n *node) content(namespace string) []string {
	n.t.Helper()
	var out []string
	for _, k := range n.host.Catalogue().Kinds() {
		if !k.Namespaced {
			continue
		}
		objects, err := k.Objects.List(n.t.Context(), namespace)
		if err != nil {
			n.t.Fatal(err)
		}
		for _, m := range objects {
			out = append(out, k.Resource.Resource+"/"+m.Name)
		}
	}
	return out
}

// ask makes a request and returns the code and the body of the answer.
func (n *node) ask(method, path, contentType, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(n.t.Context(), method, n.srv.URL+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", contentType)
	resp, err := n.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// must sends a request that must be answered with the code.
func (n *node) must(code int, method, path, body string) string {
	n.t.Helper()
	contentType := "application/json"
	if method == http.MethodPatch {
		contentType = "application/apply-patch+yaml"
	}
	got, text, err := n.ask(method, path, contentType, body)
	if err != nil || got != code {
		n.t.Fatalf("%s %s: %d %s %v, want %d", method, path, got, text, err, code)
	}
	return text
}
