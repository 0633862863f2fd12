package apiset

import (
	"context"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stores opens the registries of kinds that are stored in Backend. Backend, Policy, Metrics and Logger are required.
// server.Limits documents the bounds.
type Stores struct {
	Backend storage.Backend // belongs to the caller
	// Policy decides about changes.
	Policy admission.Source
	// CollectsGarbage reports whether a garbage collector handles the objects; nil is no.
	CollectsGarbage func() bool
	// Now is the clock of creation timestamps.
	Now            func() time.Time
	MaxObjectBytes int                // of an encoded object
	CacheWindow    time.Duration      // for which caches keep changes
	CacheWait      time.Duration      // for which requests wait until a cache is filled
	Forms          *storage.FormCache // encodings of the objects of all kinds; nil: none are kept
	// Metrics counts calls of the storage and events of caches.
	Metrics *metrics.Registry
	// Logger receives the reasons why caches are filled anew.
	Logger *zap.Logger
}

// store returns the registry of a stored resource, which all versions of a kind share, also in other groups. It adds the
// subresources of the registry to subs.
func (s Stores) store(r *served, stores map[schema.GroupResource]*registry.Registry, subs map[string]handlers.Subresource) (any, error) {
	at := schema.GroupResource{Group: r.hub.Group, Resource: r.Plural}
	reg := stores[at]
	if reg == nil {
		if r.gvk != r.hub {
			return nil, fmt.Errorf("its hub %s is not served with it; serve all versions of a kind in one call", r.hub)
		}
		var err error
		if reg, err = s.newRegistry(r); err != nil {
			return nil, err
		}
		stores[at] = reg
	}
	if r.gvr.Group != at.Group {
		reg = reg.As(r.gvr.GroupResource())
	}
	if r.Schema != nil {
		var err error
		if reg, err = reg.In(r.gvk.GroupVersion(), !r.NoStatus, r.Scale); err != nil {
			return nil, err
		}
	}
	r.reg = reg
	if reg.HasStatus() && registry.HasStatus(r.GoType) { // a version may have no status although its hub has one
		view, err := reg.Status()
		if err != nil {
			return nil, err
		}
		subs["status"] = handlers.Subresource{Kind: r.gvk, Storage: view}
	}
	if r.Scale != nil {
		view, err := reg.ScaleView(*r.Scale)
		if err != nil {
			return nil, err
		}
		if err := RegisterOnce[*runtime.Scale](r.scheme, runtime.ScaleKind(), runtime.KindOptions[*runtime.Scale]{}); err != nil {
			return nil, err
		}
		subs["scale"] = handlers.Subresource{Kind: runtime.ScaleKind(), Storage: view}
	}
	return reg, nil
}

// timed returns hooks that add the time of each request to the backend to the request.Latency of the request of a client.
func timed(h storage.Hooks) storage.Hooks {
	next := h.Requested
	h.Requested = func(ctx context.Context, operation storage.Operation, took time.Duration, err error) {
		request.LatencyFrom(ctx).Add(request.Storing, took)
		next(ctx, operation, took, err)
	}
	return h
}

func (s Stores) newRegistry(r *served) (*registry.Registry, error) {
	typed, err := codec.NewTyped(r.scheme, r.stored)
	if err != nil {
		return nil, err
	}
	prefix := "/registry/" + r.path()
	store, err := storage.NewStore(s.Backend, storage.StoreOptions{
		Prefix:         prefix,
		Codec:          typed,
		Namespaced:     r.Namespaced,
		Fields:         r.Selectable,
		FieldPaths:     r.scheme.FieldPaths(r.gvk.GroupKind()),
		MaxObjectBytes: s.MaxObjectBytes,
		TTL:            r.TTL,
		Hooks:          timed(s.Metrics.Store(r.gvr.GroupResource())),
	})
	if err != nil {
		return nil, err
	}
	r.objects = store
	objects, err := s.cached(r, store)
	if err != nil {
		return nil, err
	}
	return registry.New(registry.Options{
		Scheme:      r.scheme,
		Kind:        r.gvk,
		Resource:    r.gvr.GroupResource(),
		Singular:    r.Singular,
		Namespaced:  r.Namespaced,
		Storage:     objects,
		StoragePath: prefix,
		Strategy:    r.Strategy,
		Policy:      s.Policy,
		NoStatus:    r.NoStatus,
		Scale:       r.Scale,
		Models:      r.models,

		GarbageCollection: s.CollectsGarbage,
		Now:               s.Now,
	})
}
