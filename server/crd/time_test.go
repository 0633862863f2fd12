package crd_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/crd"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inside is a server without a network, because a bubble does not support one.
type inside struct {
	t    *testing.T
	srv  *server.Server
	host *server.Host
	crds *registry.Typed[*apiextensionsv1.CustomResourceDefinition]
}

func newInside(t *testing.T, o server.Options) *inside {
	t.Helper()
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	in := &inside{t: t, srv: srv}
	for _, part := range []server.Extension{crd.New(crd.Options{}), server.ExtensionFunc(func(h *server.Host) error { in.host = h; return nil })} {
		if err := srv.Install(part); err != nil {
			t.Fatal(err)
		}
	}
	in.crds = typedOf[*apiextensionsv1.CustomResourceDefinition](in, schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"})
	return in
}

func typedOf[T interface {
	metav1.Object
	runtime.Object
}](in *inside, resource schema.GroupResource) *registry.Typed[T] {
	in.t.Helper()
	reg, err := in.host.Registry(resource)
	if err != nil {
		in.t.Fatal(err)
	}
	out, err := registry.For[T](reg, authn.System())
	if err != nil {
		in.t.Fatal(err)
	}
	return out
}

func (in *inside) health(path string) int {
	in.t.Helper()
	answer := httptest.NewRecorder()
	ask := httptest.NewRequestWithContext(in.t.Context(), http.MethodGet, path, nil)
	ask.Header.Set("Authorization", "Bearer "+in.srv.Credentials().Token)
	in.srv.Handler().ServeHTTP(answer, ask)
	return answer.Code
}

func (in *inside) terminating(name string) string {
	in.t.Helper()
	d, err := in.crds.Get(in.t.Context(), "", name)
	if apierrors.IsNotFound(err) {
		return "gone"
	}
	if err != nil {
		in.t.Fatal(err)
	}
	return conditionText(d, apiextensionsv1.Terminating)
}

// Objects that are held for long are reported once, and the definition is removed when they are gone.
func TestObjectsThatAreHeldForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := newInside(t, server.Options{Storage: memory.Open()})
		defer func() { _ = in.srv.Close() }()
		ctx := t.Context()
		if _, err := in.crds.Create(ctx, "", definitionOf("widgets", "Widget")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		widgets := typedOf[*unstructured.Unstructured](in, schema.GroupResource{Group: "example.com", Resource: "widgets"})
		u := &unstructured.Unstructured{}
		u.SetName("one")
		u.SetFinalizers([]string{"example.com/hold"})
		if _, err := widgets.Create(ctx, "default", u); err != nil {
			t.Fatal(err)
		}
		if _, _, err := in.crds.Delete(ctx, "", "widgets.example.com", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if got, want := in.terminating("widgets.example.com"), "True InstanceDeletionInProgress: CustomResource deletion is in progress"; got != want {
			t.Errorf("Terminating is %q, want %q", got, want)
		}
		time.Sleep(time.Minute)
		const late = "True InstanceDeletionCheck: could not confirm zero CustomResources remaining: context deadline exceeded"
		if got := in.terminating("widgets.example.com"); got != late {
			t.Errorf("Terminating is %q, want %q", got, late)
		}
		before, err := in.crds.Get(ctx, "", "widgets.example.com")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if after, err := in.crds.Get(ctx, "", "widgets.example.com"); err != nil || after.ResourceVersion != before.ResourceVersion {
			t.Errorf("the definition is written while nothing changes: %v", err)
		}
		_, err = widgets.Change(ctx, "default", "one", func(u *unstructured.Unstructured) error { u.SetFinalizers(nil); return nil })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := in.terminating("widgets.example.com"); got != "gone" {
			t.Errorf("Terminating is %q", got)
		}
	})
}

// A status that cannot be written is tried again at growing intervals.
func TestAStatusThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Int64
		var good atomic.Bool
		in := newInside(t, server.Options{Storage: memory.Open(), Policy: server.Policy{
			Admission: admission.Chain{{Validator: &obstinate{func(r *admission.Request) error {
				if r.Operation == admission.Update && !good.Load() {
					refused.Add(1)
					if refused.Load()%2 == 0 {
						panic("a mistake")
					}
					return errors.New("not now")
				}
				return nil
			}}}},
		}})
		defer func() { _ = in.srv.Close() }()
		if _, err := in.crds.Create(t.Context(), "", definitionOf("widgets", "Widget")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if tries := refused.Load(); tries < 8 || tries > 20 {
			t.Errorf("%d attempts in a minute, want some, more and more seldom", tries)
		}
		good.Store(true)
		time.Sleep(15 * time.Second)
		d, err := in.crds.Get(t.Context(), "", "widgets.example.com")
		if err != nil || !isTrue(apiextensionsv1.Established)(d) {
			t.Errorf("the definition is not established: %v", err)
		}
	})
}

// mute is a storage whose lists of definitions fail until speaks is set.
type mute struct {
	storage.Backend
	speaks atomic.Bool
}

func (m *mute) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if !m.speaks.Load() && strings.Contains(r.From, "customresourcedefinitions") {
		return storage.RangeResult{}, storage.ErrUnavailable
	}
	return m.Backend.Range(ctx, r)
}

// A server is not ready before it serves the stored definitions.
func TestReadiness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Options{})
		defer func() { _ = b.Close() }()
		open := func(b storage.Backend) storage.Opener {
			return func(context.Context) (storage.Backend, error) { return b, nil }
		}
		first := newInside(t, server.Options{Storage: open(sharedStorage{b})})
		if _, err := first.crds.Create(t.Context(), "", definitionOf("widgets", "Widget")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := first.srv.Close(); err != nil {
			t.Fatal(err)
		}
		m := &mute{Backend: sharedStorage{b}}
		second := newInside(t, server.Options{Storage: open(m)})
		defer func() { _ = second.srv.Close() }()
		if code := second.health("/readyz/customresourcedefinitions"); code != http.StatusInternalServerError {
			t.Errorf("a server that knows no definitions answers %d", code)
		}
		m.speaks.Store(true)
		time.Sleep(15 * time.Second)
		if code := second.health("/readyz/customresourcedefinitions"); code != http.StatusOK {
			t.Errorf("a server that serves what is defined answers %d", code)
		}
		typedOf[*unstructured.Unstructured](second, schema.GroupResource{Group: "example.com", Resource: "widgets"})
	})
}

// If one of two servers serves a kind that the other one does not have, they disagree on the names of a definition. They write
// its status at growing intervals.
func TestServersThatDisagree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := memory.New(memory.Options{})
		defer func() { _ = b.Close() }()
		o := server.Options{Storage: func(context.Context) (storage.Backend, error) { return sharedStorage{b}, nil }}
		one, other := newInside(t, o), newInside(t, o)
		defer func() { _, _ = one.srv.Close(), other.srv.Close() }()
		if err := one.srv.Install(tools()); err != nil {
			t.Fatal(err)
		}
		before, err := one.crds.Create(t.Context(), "", definitionOf("hammers", "Tool"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		after, err := one.crds.Get(t.Context(), "", before.Name)
		if err != nil {
			t.Fatal(err)
		}
		if !hasReason(apiextensionsv1.NamesAccepted, "ListKindConflict")(after) {
			t.Errorf("the definition is %s", text(t, after))
		}
		from, _ := strconv.Atoi(before.ResourceVersion)
		to, _ := strconv.Atoi(after.ResourceVersion)
		if writes := to - from; writes > 40 {
			t.Errorf("%d writes in a minute", writes)
		}
	})
}
