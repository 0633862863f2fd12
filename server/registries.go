package server

import (
	"errors"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/internal/apiset"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registries makes registries of the kinds that a server of the same Options stores, without the server: for a tool that
// asks what would become of an object, and for tests of a strategy, which package strategytest makes easy. Make one with
// NewRegistries. It owns nothing that would have to be closed; all methods may be called concurrently.
type Registries struct {
	opts    Options
	kinds   *apiset.Kinds
	metrics *metrics.Registry // nobody reads them
}

// NewRegistries registers the kinds and conversions of o.Groups, with the objections that New has to them. Of the other
// Options those count that say what becomes of an object: Scheme, which is the Registries' from then on,
// Policy.Admission, Limits.MaxObjectBytes and Now. Nothing is opened: not Storage, no file and no listener.
func NewRegistries(o Options) (*Registries, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	if _, err := newPolicy(o.Policy); err != nil {
		return nil, err
	}
	r := &Registries{opts: o, metrics: metrics.New(metrics.Options{Version: versionInfo(), Logger: o.Observe.Logger})}
	if r.kinds, err = apiset.Describe(o.Scheme, described(o.Groups)); err != nil {
		return nil, err
	}
	return r, r.tryAll()
}

// tryAll opens every kind once: what is wrong with one is told now, and what that registers is in the scheme.
func (r *Registries) tryAll() error {
	backend := memory.New(memory.Options{})
	var err error
	for _, kind := range r.kinds.Stored() {
		if err == nil {
			_, err = r.Open(backend, kind)
		}
	}
	return errors.Join(err, backend.Close())
}

// Scheme knows the kinds.
func (r *Registries) Scheme() *runtime.Scheme { return r.opts.Scheme }

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
	policy, err := newPolicy(r.opts.Policy)
	if err != nil {
		return nil, err
	}
	stores := apiset.Stores{
		Backend: b, Policy: policy, MaxObjectBytes: r.opts.Limits.MaxObjectBytes, Now: r.opts.Now, Metrics: r.metrics, Logger: r.opts.Observe.Logger,
	}
	policy.readers = r.kinds.Readers(stores)
	opened, err := r.kinds.Open(stores, kind)
	if err != nil {
		return nil, err
	}
	return &StoredKind{Registry: opened.Registry, Objects: opened.Objects, Status: opened.Status, Scale: opened.Scale}, nil
}

// NewScheme returns a scheme of the kinds and conversions of groups, without a server: for tests of the conversions with
// package roundtrip, for clients, for tools. It makes the objections to kinds and versions that New makes.
func NewScheme(groups ...Group) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if _, err := apiset.Describe(scheme, described(groups)); err != nil {
		return nil, err
	}
	return scheme, nil
}
