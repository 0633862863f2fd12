package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/internal/lifecycle"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A failure whose text differs each time, for example by a port, changes the namespace each time. This must not cause an
// immediate repetition, nor fill the log.
func TestFailuresInOtherWordsAreTriedLessAndLess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int64
		refuse := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			if r.Operation == admission.Delete && r.Resource.Resource == "configmaps" {
				if n := refused.Add(1); n < 1000 {
					return fmt.Errorf("read tcp 127.0.0.1:%d: connection reset by peer", n)
				}
			}
			return nil
		})
		core, logs := observer.New(zapcore.WarnLevel)
		n, stop := unlistened(t, server.Options{Policy: server.Policy{Admission: admission.Chain{{Validator: refuse}}}}, zap.New(core))
		defer stop()
		n.makeNamespace("a")
		n.makeConfigMap("a", "c")
		n.deleteNamespace("a")
		time.Sleep(time.Minute)
		if tries, lines := refused.Load(), logs.Len(); tries < 8 || tries > 20 || lines != 1 {
			t.Errorf("%d attempts and %d lines of the log in a minute, want some, more and more seldom, and one", tries, lines)
		}
	})
}

// unlistened starts a server without a network, because a bubble does not support one. It deletes content until stop is called.
func unlistened(t *testing.T, o server.Options, log *zap.Logger) (n *node, stop func()) {
	t.Helper()
	o.Storage = memory.Open()
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	n = &node{t: t}
	err = srv.Install(server.ExtensionFunc(func(h *server.Host) (err error) {
		n.host = h
		n.life, err = install(h, lifecycle.Options{Logger: log})
		return err
	}))
	if err != nil {
		_ = srv.Close()
		t.Fatal(err)
	}
	n.namespaces = typedOf[*corev1.Namespace](t, n.host, "namespaces")
	n.configMaps = typedOf[*corev1.ConfigMap](t, n.host, "configmaps")
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() { _ = n.life.Run(ctx) })
	return n, func() { cancel(); work.Wait(); _ = srv.Close() }
}

// failure returns what the conditions of a namespace say about content that could not be deleted.
func (n *node) failure(namespace string) string {
	n.t.Helper()
	ns, err := n.namespaces.Get(n.t.Context(), "", namespace)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, c := range ns.Status.Conditions {
		if c.Type == corev1.NamespaceDeletionContentFailure && c.Status == corev1.ConditionTrue {
			return c.Message
		}
	}
	return ""
}

// A kind that hangs or panics is reported and holds the namespace, but does not delay other kinds.
func TestOneKindHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	h := holding{make(chan struct{}, 1), nil}
	p := &panicking{}
	p.on.Store(true)
	for name, c := range map[string]struct {
		served any
		want   string
	}{"hangs": {h, "list aisles: context deadline exceeded"}, "panics": {p, "panic: a mistake"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zapcore.ErrorLevel)
				n, stop := unlistened(t, server.Options{Groups: groups(server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
					server.Kind("Aisle", server.KindOptions[*runtime.Resource[toySpec, struct{}]]{Storage: c.served}), // it comes before ConfigMaps
				}}}})}, zap.New(core))
				defer stop()
				n.makeNamespace("a")
				n.makeConfigMap("a", "c")
				n.deleteNamespace("a")
				time.Sleep(listHangs + 5*time.Second)
				if _, err := n.configMaps.Get(t.Context(), "a", "c"); !apierrors.IsNotFound(err) {
					t.Errorf("the object of another kind: %v", err)
				}
				if got := n.failure("a"); !strings.HasSuffix(got, c.want) {
					t.Errorf("the failure is told as %q, want %q", got, c.want)
				}
				lines := logs.All()
				if name == "hangs" {
					if len(lines) > 0 {
						t.Errorf("the log has %v", lines)
					}
				} else if len(lines) == 0 || len(lines) > 2 || !strings.Contains(fmt.Sprint(lines[0].ContextMap()["stack"]), "panicking") {
					t.Errorf("the log has %v, want the panic and its stack, once in a minute", lines)
				}
			})
		})
	}
}

// A lasting failure to create system namespaces is logged once as a warning.
func TestSystemNamespacesThatCannotBeMadeAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refuse := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			if r.Operation == admission.Create && r.Resource.Resource == "namespaces" {
				return errors.New("not now")
			}
			return nil
		})
		core, logs := observer.New(zapcore.WarnLevel)
		_, stop := unlistened(t, server.Options{Policy: server.Policy{Admission: admission.Chain{{Validator: refuse}}}}, zap.New(core))
		defer stop()
		time.Sleep(time.Minute)
		if lines := logs.All(); len(lines) != 2 { // that of Install, and a later one
			t.Errorf("the log has %v", lines)
		}
	})
}

// listHangs is the timeout of a list.
const listHangs = time.Minute

// A kind that panics does not stop the sweep of other kinds.
func TestAKindThatPanicsDoesNotEndASweep(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	p := &panicking{}
	n, other := start(t, b, lifecycle.Options{}), start(t, b, lifecycle.Options{}, server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Aisle", server.KindOptions[*runtime.Resource[toySpec, struct{}]]{Storage: p}), // it comes before ConfigMaps
	}}}})
	p.on.Store(true)
	n.run()
	n.makeNamespace("a")
	land := other.createLate(b)
	n.deleteNamespace("a")
	n.waitGone("a")
	n.makeNamespace("b")
	n.deleteNamespace("b")
	n.waitGone("b")
	other.wait("the other server has seen that a is gone", func() bool { return p.asked.Load() > 0 }) // it sweeps b
	land()
	n.wait("what came late is deleted", func() bool {
		_, err := n.configMaps.Get(t.Context(), "a", "late")
		return apierrors.IsNotFound(err)
	})
}

// holding is a kind whose list waits for goOn.
type holding struct{ asked, goOn chan struct{} }

func (h holding) List(call *registry.Call, _ *metav1.ListOptions) (runtime.Object, error) {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	select {
	case <-h.goOn:
	case <-call.Done():
	}
	return &runtime.List[runtime.Resource[toySpec, struct{}]]{}, nil
}

func (holding) Delete(*registry.Call, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return nil, false, nil
}

// blind is a storage whose watches hide changes of namespaces when that is switched on.
type blind struct {
	backend
	now *atomic.Bool
}

func (b blind) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	feed, err := b.backend.Watch(ctx, w)
	if err != nil || !strings.Contains(w.Prefix, "/namespaces") {
		return feed, err
	}
	return blindFeed{feed, b.now}, nil
}

type blindFeed struct {
	storage.Feed
	now *atomic.Bool
}

func (f blindFeed) Next(ctx context.Context) (storage.Changes, error) {
	changes, err := f.Feed.Next(ctx)
	if f.now.Load() {
		<-ctx.Done()
		return storage.Changes{}, ctx.Err()
	}
	return changes, err
}

// If a client removes the finalizer of a namespace and creates the namespace again, the objects in the new one are kept, although
// a server that does not see the change yet is deleting the content of the old one.
func TestContentOfTheNextNamespaceStays(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	here := start(t, b, lifecycle.Options{})
	old := here.makeNamespace("a")
	here.deleteNamespace("a")
	h := holding{make(chan struct{}, 1), make(chan struct{})}
	var late atomic.Bool
	there := start(t, blind{b, &late}, lifecycle.Options{}, server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Aisle", server.KindOptions[*runtime.Resource[toySpec, struct{}]]{Storage: h}), // it comes before ConfigMaps
	}}}})
	there.run()
	<-h.asked
	late.Store(true)
	body := `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a","uid":"` + string(old.UID) + `"},"spec":{"finalizers":[]}}`
	here.must(http.StatusOK, http.MethodPut, "/api/v1/namespaces/a/finalize", body)
	here.makeNamespace("a")
	here.makeConfigMap("a", "c")
	close(h.goOn)
	here.stays("the object is there", func() bool {
		_, err := here.configMaps.Get(t.Context(), "a", "c")
		return err == nil
	})
}
