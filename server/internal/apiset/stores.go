package apiset

import (
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"go.uber.org/zap"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stores opens the registries of kinds that are stored in Backend. Backend, Policy, Metrics and Logger are needed.
type Stores struct {
	Backend storage.Backend // stays the caller's
	Policy  admission.Source
	// CollectsGarbage says whether a garbage collector looks after the objects; nil is no.
	CollectsGarbage func() bool
	Now             func() time.Time
	MaxObjectBytes  int
	CacheWindow     time.Duration
	CacheWait       time.Duration
	Forms           *storage.FormCache // what is made of all kinds' records; nil: nothing is kept
	Metrics         *metrics.Registry
	Logger          *zap.Logger
}

// store returns the registry of a stored resource, which the versions of a kind share in all its groups, and adds the
// subresources it serves.
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
	if reg.HasStatus() && registry.HasStatus(r.GoType) { // a version need not have the status its hub has
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
		if err := RegisterOnce[*autoscalingv1.Scale](r.scheme, autoscalingv1.SchemeGroupVersion.WithKind("Scale"), runtime.KindOptions[*autoscalingv1.Scale]{}); err != nil {
			return nil, err
		}
		subs["scale"] = handlers.Subresource{Kind: autoscalingv1.SchemeGroupVersion.WithKind("Scale"), Storage: view}
	}
	return reg, nil
}

func (s Stores) newRegistry(r *served) (*registry.Registry, error) {
	typed, err := codec.NewTyped(r.scheme, r.stored)
	if err != nil {
		return nil, err
	}
	store, err := storage.NewStore(s.Backend, storage.StoreOptions{
		Prefix:         "/registry/" + r.path(),
		Codec:          typed,
		Namespaced:     r.Namespaced,
		Fields:         r.Selectable,
		FieldPaths:     r.scheme.FieldPaths(r.gvk.GroupKind()),
		MaxObjectBytes: s.MaxObjectBytes,
		TTL:            r.TTL,
		Hooks:          s.Metrics.Store(r.gvr.GroupResource()),
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
		Scheme:     r.scheme,
		Kind:       r.gvk,
		Resource:   r.gvr.GroupResource(),
		Singular:   r.Singular,
		Namespaced: r.Namespaced,
		Storage:    objects,
		Strategy:   r.Strategy,
		Policy:     s.Policy,
		NoStatus:   r.NoStatus,
		Scale:      r.Scale,

		GarbageCollection: s.CollectsGarbage,
		Now:               s.Now,
	})
}
