package lifecycle_test

import (
	"context"
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
	"github.com/keelson-dev/keelson/server/builtin/lifecycle"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A failure that is told in other words each time, such as with the port of a connection, changes the namespace each time:
// that must not be a reason to try again at once, nor fill the log.
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
		srv, err := server.New(server.Options{Storage: memory.Open(), Admission: admission.Chain{Validators: []admission.Validator{refuse}}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		n := &node{t: t}
		err = srv.Install(server.ExtensionFunc(func(h *server.Host) (err error) {
			n.host = h
			n.life, err = install(h, lifecycle.Options{Logger: zap.New(core)})
			return err
		}))
		if err != nil {
			t.Fatal(err)
		}
		n.namespaces = typedOf[*corev1.Namespace](t, n.host, "namespaces")
		n.configMaps = typedOf[*corev1.ConfigMap](t, n.host, "configmaps")
		ctx, cancel := context.WithCancel(t.Context())
		var work sync.WaitGroup
		work.Go(func() { _ = n.life.Run(ctx) })
		n.makeNamespace("a")
		n.makeConfigMap("a", "c")
		n.deleteNamespace("a")
		time.Sleep(time.Minute)
		if tries, lines := refused.Load(), logs.Len(); tries < 8 || tries > 20 || lines != 1 {
			t.Errorf("%d attempts and %d lines of the log in a minute, want some, more and more seldom, and one", tries, lines)
		}
		cancel()
		work.Wait()
	})
}

// holding is a kind of which a list waits.
type holding struct{ asked, goOn chan struct{} }

func (h holding) List(ctx context.Context, _ *metav1.ListOptions) (runtime.Object, error) {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	select {
	case <-h.goOn:
	case <-ctx.Done():
	}
	return &runtime.List[runtime.Resource[toySpec, struct{}]]{}, nil
}

func (holding) Delete(context.Context, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return nil, false, nil
}

// blind shows no change of a namespace any more, once it is told so.
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

// Whoever lets a namespace go by hand, and makes it again, keeps what is in the new one, though the content of the old one is
// being deleted, by a server that does not see it yet.
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
