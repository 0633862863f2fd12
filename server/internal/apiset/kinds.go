package apiset

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are the kinds of groups, without a server: registered in a scheme, and checked as Exchange checks them. All methods may
// be called concurrently.
type Kinds struct {
	all []*served
}

// Describe registers the kinds and conversions of groups in a scheme, and returns them.
func Describe(scheme *runtime.Scheme, groups []Group) (*Kinds, error) {
	all, err := describer{scheme: scheme, models: patch.NewModels(scheme)}.kinds(groups)
	if err != nil {
		return nil, err
	}
	return &Kinds{all}, nil
}

// Stored returns the kinds that are stored in a backend, in all their versions.
func (k *Kinds) Stored() []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, r := range k.all {
		if r.Custom == nil {
			out = append(out, r.gvk)
		}
	}
	return out
}

// Opened is a kind in a backend, as one of its versions serves it.
type Opened struct {
	// Registry writes and reads objects by the rules of the kind.
	Registry *registry.Registry
	Objects  storage.Interface    // the storage of Registry
	Status   *registry.StatusView // nil if the version has no /status
	Scale    *registry.ScaleView  // nil if the version has no /scale
}

// Open makes the registry of a kind, of any version, in s.Backend, without a cache.
func (k *Kinds) Open(s Stores, kind schema.GroupVersionKind) (*Opened, error) {
	asked := k.kind(kind)
	switch {
	case asked == nil:
		return nil, fmt.Errorf("server: %s is no kind of the Groups", kind)
	case asked.Custom != nil:
		return nil, fmt.Errorf("server: registry of %s: %w", kind, errNoRegistry)
	}
	stores := map[schema.GroupResource]*registry.Registry{}
	out := &Opened{}
	for _, gvk := range slices.Compact([]schema.GroupVersionKind{asked.hub, kind}) {
		r := k.kind(gvk)
		if r == nil {
			return nil, fmt.Errorf("server: %s: its hub %s is no kind of the Groups; a kind needs all its versions", kind, gvk)
		}
		one, subs, err := s.openOne(r, stores)
		if err != nil {
			return nil, fmt.Errorf("server: resource %s: %w", r.gvr, err)
		}
		out.Registry = one.reg
		if gvk == asked.hub {
			out.Objects = one.objects
		}
		out.Status, _ = subs["status"].Storage.(*registry.StatusView)
		out.Scale, _ = subs["scale"].Storage.(*registry.ScaleView)
	}
	return out, nil
}

// openOne returns r with a registry, and its subresources.
func (s Stores) openOne(r *served, stores map[schema.GroupResource]*registry.Registry) (*served, map[string]handlers.Subresource, error) {
	one := *r
	one.NoCache, one.policy = true, s.Policy
	subs := map[string]handlers.Subresource{}
	_, err := s.store(&one, stores, subs)
	return &one, subs, err
}

func (k *Kinds) kind(gvk schema.GroupVersionKind) *served {
	if i := slices.IndexFunc(k.all, func(r *served) bool { return r.gvk == gvk }); i >= 0 {
		return k.all[i]
	}
	return nil
}

// Readers returns readers of the kinds in s.Backend, without a cache.
func (k *Kinds) Readers(s Stores) runtime.Readers {
	return &backendReaders{of: k, stores: s, read: map[schema.GroupVersionKind]runtime.Reader[runtime.Object]{}}
}

// backendReaders implements runtime.Readers for Kinds over one backend.
type backendReaders struct {
	of     *Kinds
	stores Stores

	mu   sync.Mutex                                                 // guards read
	read map[schema.GroupVersionKind]runtime.Reader[runtime.Object] // keys are hubs
}

// KindOf implements runtime.Readers.
func (b *backendReaders) KindOf(t reflect.Type) (schema.GroupVersionKind, bool) {
	if t == reflect.TypeFor[unstructured.Unstructured]() { // the type of every kind without a Go type
		return schema.GroupVersionKind{}, false
	}
	if i := slices.IndexFunc(b.of.all, func(r *served) bool { return r.GoType == t }); i >= 0 {
		return b.of.all[i].hub, true
	}
	return schema.GroupVersionKind{}, false
}

// Reader implements runtime.Readers.
func (b *backendReaders) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	r := b.of.kind(kind)
	if r == nil {
		return brokenReader{fmt.Errorf("reader of %s: it is no kind of the Groups: %w", kind, runtime.ErrNotReady)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if read := b.read[r.hub]; read != nil {
		return read
	}
	read, err := b.open(r.hub)
	if err != nil {
		read = brokenReader{fmt.Errorf("reader of %s: %w", kind, err)}
	}
	b.read[r.hub] = read
	return read
}

// open makes the reader of a hub.
func (b *backendReaders) open(hub schema.GroupVersionKind) (runtime.Reader[runtime.Object], error) {
	r := b.of.kind(hub)
	switch {
	case r == nil:
		return nil, fmt.Errorf("its hub %s is no kind of the Groups", hub)
	case r.Custom != nil:
		one := *r
		one.policy = b.stores.Policy
		return one.newReader(), nil
	}
	one, _, err := b.stores.openOne(r, map[schema.GroupResource]*registry.Registry{})
	if err != nil {
		return nil, err
	}
	return one.newReader(), nil
}
