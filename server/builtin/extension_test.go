package builtin_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shared is a storage that several servers use. None of them closes it, and each must read its revision from it.
type shared struct{ storage.Backend }

func (shared) Close() error { return nil }

// installed is a server with the extension.
type installed struct {
	srv    *server.Server
	maps   *registry.Typed[*corev1.ConfigMap]
	spaces *registry.Typed[*corev1.Namespace]
	leases *registry.Typed[*coordinationv1.Lease]
	events *registry.Typed[*corev1.Event]
}

func newInstalled(t *testing.T, b storage.Backend, o builtin.Options) *installed {
	t.Helper()
	srv, err := server.New(server.Options{Storage: func(context.Context) (storage.Backend, error) { return b, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	if err := srv.Install(builtin.New(o)); err != nil {
		t.Fatal(err)
	}
	w := &installed{srv: srv}
	err = srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		w.maps = typed[*corev1.ConfigMap](t, h, "configmaps")
		w.spaces = typed[*corev1.Namespace](t, h, "namespaces")
		w.leases = typed[*coordinationv1.Lease](t, h, "leases.coordination.k8s.io")
		w.events = typed[*corev1.Event](t, h, "events")
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func typed[T interface {
	metav1.Object
	runtime.Object
}](t *testing.T, h *server.Host, resource string) *registry.Typed[T] {
	t.Helper()
	reg, err := h.Registry(schema.ParseGroupResource(resource))
	if err != nil {
		t.Fatal(err)
	}
	out, err := registry.For[T](reg, authn.System())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// collects fails the test unless a dependent is deleted with its owner, and content with its namespace.
func (w *installed) collects(ctx context.Context, t *testing.T) {
	t.Helper()
	if _, err := w.spaces.Create(ctx, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "attic"}}); err != nil {
		t.Fatal(err)
	}
	owner, err := w.maps.Create(ctx, "default", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}})
	if err != nil {
		t.Fatal(err)
	}
	refs := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	for _, m := range []*corev1.ConfigMap{
		{ObjectMeta: metav1.ObjectMeta{Name: "owned", Namespace: "default", OwnerReferences: refs}},
		{ObjectMeta: metav1.ObjectMeta{Name: "content", Namespace: "attic"}},
	} {
		if _, err := w.maps.Create(ctx, m.Namespace, m); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.maps.Delete(ctx, "default", "owner", nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.spaces.Delete(ctx, "", "attic", nil); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		_, owned := w.maps.Get(ctx, "default", "owned")
		_, content := w.maps.Get(ctx, "attic", "content")
		_, attic := w.spaces.Get(ctx, "", "attic")
		if apierrors.IsNotFound(owned) && apierrors.IsNotFound(content) && apierrors.IsNotFound(attic) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("not everything was collected")
}

func (w *installed) leader(ctx context.Context, t *testing.T) string {
	t.Helper()
	lease, err := w.leases.Get(ctx, metav1.NamespaceSystem, builtin.LeaseName)
	if apierrors.IsNotFound(err) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// One of two servers with one storage has the Lease and collects garbage. When it ends, the other one does.
func TestOneOfTwoServersLeads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		backend := memory.New(memory.Options{})
		defer func() { _ = backend.Close() }()
		a := newInstalled(t, shared{backend}, builtin.Options{Identity: "a"})
		ctx := t.Context()
		a.collects(ctx, t)
		b := newInstalled(t, shared{backend}, builtin.Options{Identity: "b"})
		time.Sleep(time.Minute)
		if got := b.leader(ctx, t); got != "a" {
			t.Errorf("%q leads, want a", got)
		}
		b.collects(ctx, t)
		if err := a.srv.Close(); err != nil {
			t.Error(err)
		}
		b.collects(ctx, t)
		if got := b.leader(ctx, t); got != "b" {
			t.Errorf("%q leads, want b", got)
		}
		if err := b.srv.Close(); err != nil {
			t.Error(err)
		}
	})
}

// An event reports an owner in another namespace.
func TestInvalidOwnersAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newInstalled(t, memory.New(memory.Options{}), builtin.Options{})
		defer func() { _ = w.srv.Close() }()
		ctx := t.Context()
		owner, err := w.maps.Create(ctx, "kube-system", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.maps.Create(ctx, "default", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		for range 600 {
			list, err := w.events.List(ctx, "default", registry.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if len(list) > 0 {
				if e := list[0]; e.Reason != "OwnerRefInvalidNamespace" || e.Type != "Warning" || e.InvolvedObject.Name != "owned" || e.InvolvedObject.Kind != "ConfigMap" {
					t.Errorf("%+v", e)
				}
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Error("no event")
	})
}

// A storage that belongs to one process needs no election.
func TestAStorageOfOneProcessNeedsNoLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newInstalled(t, memory.New(memory.Options{}), builtin.Options{})
		w.collects(t.Context(), t)
		if got := w.leader(t.Context(), t); got != "" {
			t.Errorf("%q leads", got)
		}
		_ = w.srv.Close()
	})
}

func TestMissingNamespacesMayBeAllowed(t *testing.T) {
	t.Parallel()
	for _, allow := range []bool{false, true} {
		w := newInstalled(t, memory.New(memory.Options{}), builtin.Options{AllowMissingNamespaces: allow})
		_, err := w.maps.Create(t.Context(), "nowhere", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		if allow && err != nil || !allow && (!apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "nowhere" not found`)) {
			t.Errorf("allowed %v: %v", allow, err)
		}
	}
}

func TestNoNamespaceAdmission(t *testing.T) {
	t.Parallel()
	w := newInstalled(t, memory.New(memory.Options{}), builtin.Options{NoNamespaceAdmission: true})
	if _, err := w.maps.Create(t.Context(), "nowhere", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}}); err != nil {
		t.Error(err)
	}
}

func TestTheExtensionIsInstalledOnce(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]server.Extension{
		"namespaces": builtin.New(builtin.Options{}),
		"secrets": server.ExtensionFunc(func(h *server.Host) error {
			return h.Serve(server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.Secret()}}}})
		}),
	} {
		srv, err := server.New(server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = srv.Close() }()
		if err := srv.Install(first); err != nil {
			t.Fatal(err)
		}
		err = srv.Install(builtin.New(builtin.Options{}))
		if err == nil || !strings.Contains(err.Error(), "is served already; install the extension once") {
			t.Errorf("%s are there: %v", name, err)
		}
	}
}

func TestNegativeEventTTLIsRefused(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	if err := srv.Install(builtin.New(builtin.Options{EventTTL: -1})); err == nil || !strings.Contains(err.Error(), "EventTTL") {
		t.Errorf("%v", err)
	}
}
