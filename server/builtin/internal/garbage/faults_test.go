package garbage_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/internal/garbage"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nameless is a kind whose objects have no uid, or panics.
type nameless struct{ panics *atomic.Bool }

func (n nameless) Get(_ *registry.Call, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if n.panics.Load() {
		panic("a mistake")
	}
	return &Late{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, nil
}

func (n nameless) List(*registry.Call, *metav1.ListOptions) (runtime.Object, error) {
	if n.panics.Load() {
		panic("a mistake")
	}
	return &runtime.List[Late]{}, nil
}

func (n nameless) Watch(*registry.Call, *metav1.ListOptions) (registry.ObjectWatch, error) {
	panic("a mistake")
}

// An owner without a uid, such as a computed object, counts as existing. A kind that panics does not stop other kinds.
func TestOwnersWithoutUIDAreNotAbsent(t *testing.T) {
	t.Parallel()
	for _, panics := range []bool{false, true} {
		t.Run(fmt.Sprintf("panics=%v", panics), func(t *testing.T) {
			t.Parallel()
			on := &atomic.Bool{}
			on.Store(panics)
			h := newHouse(t, nil, kinds(), server.Group{Name: "computed.io", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
				server.Kind("Late", server.KindOptions[*Late]{Storage: nameless{on}}),
			}}}})
			h.pod("default", "p", nil, metav1.OwnerReference{APIVersion: "computed.io/v1", Kind: "Late", Name: "x", UID: "x"})
			top := h.set("default", "top")
			h.pod("default", "q", nil, ref("v1", "Set", top, true))
			h.delete("sets", "default", "top", metav1.DeletePropagationBackground)
			h.gone("pods", "default", "q")
			h.settled()
			if h.get("pods", "default", "p") == nil {
				t.Error("an owner of which nobody can say what it is was taken for absent")
			}
		})
	}
}

// Many objects that fail for the same reason are not logged one by one, nor in one long line. One of the failures is a panic of a
// plug-in.
func TestFailuresDoNotFloodTheLog(t *testing.T) {
	t.Parallel()
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			var refused atomic.Int64
			var calm atomic.Bool
			refuse := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
				if calm.Load() || r.Resource.Resource != "pods" || r.Operation == admission.Create {
					return nil
				}
				if refused.Add(1)%2 == 0 {
					panic("a mistake")
				}
				return errors.New("not now")
			})
			core, logs := observer.New(zapcore.WarnLevel)
			h := &house{t: t, Server: servertest.Start(t, server.Options{
				Groups: []server.Group{kinds()}, Policy: server.Policy{Admission: admission.Chain{{Validator: refuse}}},
			})}
			check(t, h.Install(server.ExtensionFunc(func(host *server.Host) error {
				h.host = host
				collector, err := garbage.New(garbage.Options{Catalogue: host.Catalogue(), Logger: zap.New(core)})
				if err != nil {
					return err
				}
				host.Go(func(ctx context.Context) { _ = collector.Run(ctx) })
				return host.CollectGarbage()
			})))
			const many = 30
			top := h.set("default", "top")
			for i := range many {
				h.pod("default", fmt.Sprint("p", i), nil, ref("v1", "Set", top, true))
			}
			h.delete("sets", "default", "top", policy)
			errs := 0
			h.eventually("each has failed often", func() bool { return refused.Load() > 7*many })
			if n := logs.Len(); n > 3 {
				t.Errorf("%d lines of the log for %d objects", n, many)
			}
			for _, e := range logs.All() {
				if e.Level == zapcore.ErrorLevel { // of a panic, once
					if stack, _ := e.ContextMap()["stack"].(string); !strings.Contains(stack, "faults_test.go") {
						t.Errorf("the stack of a panic is not logged: %v", e.ContextMap())
					}
					errs++
					continue
				}
				if text := fmt.Sprint(e.ContextMap()); len(text) > 700 {
					t.Errorf("a line of %d bytes: %.300s", len(text), text)
				}
			}
			if errs != 1 {
				t.Errorf("panics were logged %d times", errs)
			}
			calm.Store(true)
			if policy == metav1.DeletePropagationOrphan {
				h.gone("sets", "default", "top")
				return
			}
			for i := range many {
				h.gone("pods", "default", fmt.Sprint("p", i))
			}
		})
	}
}
