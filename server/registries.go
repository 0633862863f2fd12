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

// Registries makes the registries of the kinds that a server with the same Options would store, without the server. It is for
// tools that compute what the server would do with an object, and for tests of a strategy: see package strategytest. Make one
// with NewRegistries. A Registries need not be closed. All methods may be called concurrently.
type Registries struct {
	opts    Options
	kinds   *apiset.Kinds
	metrics *metrics.Registry // required, and never read
}

// NewRegistries registers the kinds and conversions of o.Groups, with the checks that New makes. Of the other Options it uses
// only those that decide what is stored: Scheme, which belongs to the Registries from then on, Policy.Admission,
// Limits.MaxObjectBytes and Now. Observe.Logger receives what the registries log. NewRegistries opens no Storage, no file and no
// listener.
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

// tryAll opens every kind once. So errors of a kind are reported now, and everything that opening registers is in the scheme.
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

// Scheme returns the scheme, which has the kinds.
func (r *Registries) Scheme() *runtime.Scheme { return r.opts.Scheme }

// StoredKind is a kind in a backend, as one of its versions serves it.
type StoredKind struct {
	// Registry writes and reads objects by the rules of the kind.
	Registry *registry.Registry
	// Objects is the storage of Registry. Writes to it do not follow the rules of the kind.
	Objects storage.Interface
	// Status is the subresource status; nil if the version does not have it.
	Status *registry.StatusView
	// Scale is the subresource scale; nil if the version does not have it.
	Scale *registry.ScaleView
}

// Open makes the registry of a kind in the backend b. kind may be of any version. The caller closes b. Errors of the registry
// name the resource in the group of kind. Open returns an error if kind is not one of Options.Groups, or has a Storage of its
// own. There is no cache and no garbage collector, and subresources of the program are not opened. Strategies and admission read
// other kinds from the same backend.
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

// NewScheme returns a scheme with the kinds and conversions of groups, without a server. It is for tests of the conversions with
// package roundtrip, for clients and for tools. It makes the checks of kinds and versions that New makes.
func NewScheme(groups ...Group) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if _, err := apiset.Describe(scheme, described(groups)); err != nil {
		return nil, err
	}
	return scheme, nil
}
