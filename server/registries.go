package server

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registries makes registries of the kinds that a server of the same Options stores, without the server: for a tool that
// asks what would become of an object, and for tests of a strategy, which package strategytest makes easy. Make one with
// NewRegistries. It owns nothing that would have to be closed; all methods may be called concurrently.
type Registries struct {
	opts    Options
	scheme  *runtime.Scheme
	metrics *metrics.Registry // nobody reads them
	kinds   []*served
}

// NewRegistries registers the kinds and conversions of o.Groups, with the objections that New has to them. Of the other
// Options those count that say what becomes of an object: Scheme, which is the Registries' from then on,
// Policy.Admission, Limits.MaxObjectBytes and Now. Nothing is opened: not Storage, no file and no listener.
func NewRegistries(o Options) (*Registries, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	r := &Registries{opts: o, scheme: o.Scheme, metrics: metrics.New(metrics.Options{Version: versionInfo(), Logger: o.Observe.Logger})}
	if _, err := newPolicy(o.Policy); err != nil {
		return nil, err
	}
	s := &Server{scheme: r.scheme}
	if r.kinds, err = s.describe(o.Groups); err != nil {
		return nil, err
	}
	if err := s.checkVersions(r.kinds); err != nil {
		return nil, err
	}
	if err := r.tryAll(); err != nil {
		return nil, err
	}
	return r, nil
}

// tryAll opens every kind once: what is wrong with one is told now, and what that registers is in the scheme.
func (r *Registries) tryAll() error {
	backend := memory.New(memory.Options{})
	var err error
	for _, k := range r.kinds {
		if k.custom == nil && err == nil {
			_, err = r.Open(backend, k.gvk)
		}
	}
	return errors.Join(err, backend.Close())
}

// Scheme knows the kinds.
func (r *Registries) Scheme() *runtime.Scheme { return r.scheme }

// StoredKind is a kind over a backend, as one of its versions serves it.
type StoredKind struct {
	// Registry writes and reads by the rules of the kind.
	Registry *registry.Registry
	// Objects is what Registry stores in. What is written to it directly passes none of the kind's rules.
	Objects storage.Interface
	// Status and Scale are the subresources; nil where the version has none.
	Status *registry.StatusView
	Scale  *registry.ScaleView
}

// Open makes the registry of a kind over a backend, which stays the caller's. kind is of any version; errors of the
// registry name the resource of its group. A kind that is in no group, or has a Storage of its own, is an error. There is
// no cache, no garbage collector, and subresources of the program's own are not opened. What strategies and admission read of
// other kinds is in the same backend.
func (r *Registries) Open(b storage.Backend, kind schema.GroupVersionKind) (*StoredKind, error) {
	asked := r.kind(kind)
	switch {
	case asked == nil:
		return nil, fmt.Errorf("server: %s is no kind of the Groups", kind)
	case asked.custom != nil:
		return nil, fmt.Errorf("server: registry of %s: %w", kind, errNoRegistry)
	}
	s := &Server{opts: r.opts, scheme: r.scheme, metrics: r.metrics, backend: b}
	var err error
	if s.policy, err = newPolicy(r.opts.Policy); err != nil {
		return nil, err
	}
	s.policy.readers = &backendReaders{of: r, server: s}
	stores := map[schema.GroupResource]*registry.Registry{}
	out := &StoredKind{}
	for _, gvk := range slices.Compact([]schema.GroupVersionKind{asked.hub, kind}) {
		k := r.kind(gvk)
		if k == nil {
			return nil, fmt.Errorf("server: %s: its hub %s is no kind of the Groups; a kind needs all its versions", kind, gvk)
		}
		one := *k
		one.noCache = true
		subs := map[string]handlers.Subresource{}
		if _, err := s.store(&one, stores, subs); err != nil {
			return nil, fmt.Errorf("server: resource %s: %w", one.gvr, err)
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

func (r *Registries) kind(gvk schema.GroupVersionKind) *served {
	if i := slices.IndexFunc(r.kinds, func(k *served) bool { return k.gvk == gvk }); i >= 0 {
		return r.kinds[i]
	}
	return nil
}

// backendReaders implements runtime.Readers for the kinds of Registries over one backend, past any cache.
type backendReaders struct {
	of     *Registries
	server *Server // by which Open makes registries

	mu   sync.Mutex                                                 // guards read
	read map[schema.GroupVersionKind]runtime.Reader[runtime.Object] // by hub
}

// KindOf implements runtime.Readers.
func (b *backendReaders) KindOf(t reflect.Type) (schema.GroupVersionKind, bool) {
	if t == reflect.TypeFor[unstructured.Unstructured]() { // of any kind
		return schema.GroupVersionKind{}, false
	}
	if i := slices.IndexFunc(b.of.kinds, func(k *served) bool { return k.goType == t }); i >= 0 {
		return b.of.kinds[i].hub, true
	}
	return schema.GroupVersionKind{}, false
}

// Reader implements runtime.Readers.
func (b *backendReaders) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	k := b.of.kind(kind)
	if k == nil {
		return brokenReader{fmt.Errorf("reader of %s: it is no kind of the Groups: %w", kind, runtime.ErrNotReady)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if read := b.read[k.hub]; read != nil {
		return read
	}
	if b.read == nil {
		b.read = map[schema.GroupVersionKind]runtime.Reader[runtime.Object]{}
	}
	read, err := b.open(k.hub)
	if err != nil {
		read = brokenReader{fmt.Errorf("reader of %s: %w", kind, err)}
	}
	b.read[k.hub] = read
	return read
}

// open makes the reader of a hub.
func (b *backendReaders) open(hub schema.GroupVersionKind) (runtime.Reader[runtime.Object], error) {
	k := b.of.kind(hub)
	if k == nil {
		return nil, fmt.Errorf("its hub %s is no kind of the Groups", hub)
	}
	one := *k
	one.noCache, one.policy = true, b.server.policy
	if one.custom == nil {
		if _, err := b.server.store(&one, map[schema.GroupResource]*registry.Registry{}, map[string]handlers.Subresource{}); err != nil {
			return nil, err
		}
	}
	return one.newReader(), nil
}

// NewScheme returns a scheme of the kinds and conversions of groups, without a server: for tests of the conversions with
// package roundtrip, for clients, for tools. It makes the objections to kinds and versions that New makes.
func NewScheme(groups ...Group) (*runtime.Scheme, error) {
	s := &Server{scheme: runtime.NewScheme()}
	added, err := s.describe(groups)
	if err != nil {
		return nil, err
	}
	if err := s.checkVersions(added); err != nil {
		return nil, err
	}
	return s.scheme, nil
}
