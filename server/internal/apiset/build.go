package apiset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server/internal/transport"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// served is one resource in one version, as it is served.
type served struct {
	Resource
	gvr     schema.GroupVersionResource
	gvk     schema.GroupVersionKind
	hub     schema.GroupVersionKind
	stored  schema.GroupVersionKind // the kind in the version that is stored
	scheme  *runtime.Scheme         // the group's own, or the server's
	models  *patch.Models           // of the scheme's kinds
	docs    *apischema.Docs
	handler *handlers.Resource
	subs    map[string]handlers.Subresource
	own     []schema.GroupVersionKind // the kinds that were registered for it, and go with it
	joined  bool                      // its conversion was added for it, and goes with it
	life    context.Context           // ends when the resource is withdrawn, or the server ends
	end     context.CancelFunc
	reg     *registry.Registry // of all versions of the kind; nil if it has a Storage of its own
	objects storage.Interface  // of a hub: where its objects are, below the cache; nil if it has a Storage of its own
	cache   *cacher.Cacher     // of a hub that has one; closed by the Set
	shown   []string           // the verbs that discovery shows, if not all of the handler; guarded by the set's mu
	cached  published
	// inFlight counts the requests to the kind in all its versions, so that the cache they read from is closed after the last of
	// them when the kind is served no longer, or otherwise.
	inFlight *transport.Count
	policy   admission.Source // decides about what a Storage of its own is asked in process
	// Guarded by the set's mu:
	by      *Change // that serves it when it is published, or withdraws it then; nil: none
	pending bool    // not published yet
	unread  bool    // pending, and not among the readers: another is read as long
}

// add makes all that is needed to serve groups beside those that are served, and returns it and its routes. With an error
// nothing is left of it. The caller holds mu.
func (s *Set) add(groups []Group) ([]*served, map[schema.GroupVersionResource]http.Handler, error) {
	added, err := s.describe(groups)
	if err == nil {
		err = s.checkVersions(added)
	}
	var routes map[schema.GroupVersionResource]http.Handler
	if err == nil {
		routes, err = s.routes(added)
	}
	if err != nil {
		s.forget(added)
		closeCaches(added)
		return nil, nil, err
	}
	return added, routes, nil
}

// routes makes the handlers of what is added.
func (s *Set) routes(added []*served) (map[schema.GroupVersionResource]http.Handler, error) {
	routes := map[schema.GroupVersionResource]http.Handler{}
	stores := map[schema.GroupResource]*registry.Registry{}
	inFlight := map[schema.GroupVersionKind]*transport.Count{}
	// The hubs first: they bring the strategy and the storage that the other versions share, perhaps of another group.
	for _, r := range slices.SortedStableFunc(slices.Values(added), hubFirst) {
		if _, ok := routes[r.gvr]; ok {
			return nil, fmt.Errorf("server: %s is served twice", r.gvr)
		}
		if inFlight[r.hub] == nil {
			inFlight[r.hub] = new(transport.Count)
		}
		r.inFlight = inFlight[r.hub]
		if err := s.build(r, stores); err != nil {
			return nil, fmt.Errorf("server: resource %s: %w", r.gvr, err)
		}
		routes[r.gvr] = s.counted(r)
	}
	return routes, nil
}

func (s *Set) isServed(gvr schema.GroupVersionResource) bool {
	return slices.ContainsFunc(s.served, func(r *served) bool { return r.gvr == gvr })
}

// describe registers the types and conversions of groups and lists their resources, in each group the hubs first. With an
// error it lists what was registered until then.
func (s *Set) describe(groups []Group) ([]*served, error) {
	lists := make([][]*served, len(groups))
	for i, g := range groups {
		var err error
		if lists[i], err = s.describeGroup(g); err != nil {
			return slices.Concat(lists...), fmt.Errorf("server: group %q: %w", g.Name, err)
		}
	}
	if err := s.join(groups, slices.Concat(lists...)); err != nil {
		return slices.Concat(lists...), err
	}
	for _, list := range lists {
		for _, r := range list {
			r.hub, _ = r.scheme.Hub(r.gvk.GroupKind())
		}
		slices.SortStableFunc(list, hubFirst)
	}
	return slices.Concat(lists...), nil
}

// join adds the conversions of groups, after the types of all: a hub may be in another group.
func (s *Set) join(groups []Group, added []*served) error {
	var apart []*served
	for _, r := range added {
		if !r.scheme.Converts(r.gvk) {
			apart = append(apart, r)
		}
	}
	defer func() {
		for _, r := range apart {
			r.joined = r.scheme.Converts(r.gvk)
		}
	}()
	for _, g := range groups {
		for _, c := range g.Conversions {
			if c == nil {
				return fmt.Errorf("server: group %q: a conversion is the zero Conversion; make it with server.Convert", g.Name)
			}
			if err := c(cmp.Or(g.Scheme, s.scheme)); err != nil {
				return fmt.Errorf("server: group %q: %w", g.Name, err)
			}
		}
	}
	return nil
}

// describeGroup registers a group's types and lists its resources; with an error, those that were registered until then.
func (s *Set) describeGroup(g Group) ([]*served, error) {
	if g.Name != "" && len(validation.IsDNS1123Subdomain(g.Name)) > 0 {
		return nil, errors.New("the name must be a DNS name such as example.com, or empty for the core group")
	}
	scheme, models := s.scheme, s.models
	if g.Scheme != nil {
		scheme, models = g.Scheme, patch.NewModels(g.Scheme)
	}
	var out []*served
	for _, v := range g.Versions {
		gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
		if len(validation.IsDNS1035Label(v.Name)) > 0 {
			return out, fmt.Errorf("version %q: a version's name is letters, digits and '-', such as v1 or v1beta1", v.Name)
		}
		docs := &apischema.Docs{}
		if v.Docs != nil {
			var err error
			if docs, err = apischema.ParseDocs(v.Docs); err != nil {
				return out, fmt.Errorf("version %s: Docs: %w", v.Name, err)
			}
		}
		for _, r := range v.Resources {
			if err := r.check(gv); err != nil {
				return out, err
			}
			one := &served{Resource: r, gvr: gv.WithResource(r.Plural), gvk: gv.WithKind(r.Kind), docs: docs, scheme: scheme, models: models}
			if s.isServed(one.gvr) { // said before the kind is: that it is known would be no help
				return out, fmt.Errorf("%s %w", one.gvr.GroupResource(), ErrServed)
			}
			known := scheme.Lookup(one.gvk) != nil
			if err := r.Register(scheme, one.gvk); err != nil {
				return out, err
			}
			if !known {
				one.own = append(one.own, one.gvk)
			}
			if d, ok := r.Table.(Described); ok {
				one.Table = d.DescribedBy(docs)
			}
			out = append(out, one)
			if scheme.Lookup(one.gvk).Untyped() {
				continue // there is nothing that could be wrong
			}
			if err := apischema.Check(apischema.Kind{GVK: one.gvk, Type: r.GoType, Docs: docs}); err != nil {
				return out, fmt.Errorf("resource %s in %s: %w", r.Plural, gv, err)
			}
		}
	}
	return out, checkHubs(out)
}

// hubFirst orders versions: hubs before others.
func hubFirst(a, b *served) int {
	spoke := func(r *served) int {
		if r.gvk == r.hub {
			return 0
		}
		return 1
	}
	return cmp.Compare(spoke(a), spoke(b))
}

// build makes the handler of one resource, and its registry when this is the hub.
func (s *Set) build(r *served, stores map[schema.GroupResource]*registry.Registry) error {
	var err error
	r.life, r.end = context.WithCancel(s.opts.Life)
	r.policy = s.opts.Policy
	r.models.SetDocs(r.gvk, r.docs)
	opts := handlers.Options{
		Scheme:            r.scheme,
		Resource:          r.gvr,
		Kind:              r.gvk,
		Namespaced:        r.Namespaced,
		Storage:           r.Custom,
		Admission:         s.opts.Policy,
		Verbs:             r.Verbs,
		Models:            r.models,
		Table:             r.Table,
		Formats:           s.opts.Formats,
		Forms:             s.opts.Forms,
		MaxBodyBytes:      s.opts.MaxBodyBytes,
		MinRequestTimeout: s.opts.MinWatchTimeout,
		Warnings:          r.warnings(),
		Authorizer:        s.opts.Authorizer,
		Stop:              r.life.Done(),
		Subresources:      map[string]handlers.Subresource{},
		Hooks:             s.opts.Metrics.Handlers(r.gvr),
	}
	if r.Custom == nil {
		if opts.Storage, err = s.store(r, stores, opts.Subresources); err != nil {
			return err
		}
	}
	for name, sub := range r.Subresources {
		if _, ok := opts.Subresources[name]; ok {
			return fmt.Errorf("subresource %q is served by the library; set NoStatus or remove Scale to serve another", name)
		}
		kind := sub.Kind
		if sub.Register != nil {
			known := r.scheme.Lookup(r.gvr.GroupVersion().WithKind(sub.KindName)) != nil
			if kind, err = sub.Register(r.scheme, r.gvr.GroupVersion()); err != nil {
				return fmt.Errorf("subresource %q: %w", name, err)
			}
			if !known {
				r.own = append(r.own, kind)
			}
		}
		if kind.Empty() {
			kind = r.gvk
		}
		if o, ok := sub.Storage.(registry.Opener); ok {
			reg := registryOf(r)
			if reg == nil {
				return fmt.Errorf("subresource %q: its Storage asks for the registry of the resource, which has a Storage of its own", name)
			}
			if err := o.Open(reg); err != nil {
				return fmt.Errorf("subresource %q: %w", name, err)
			}
		}
		opts.Subresources[name] = handlers.Subresource{Kind: kind, Storage: sub.Storage, Admission: s.opts.Policy}
	}
	r.subs = opts.Subresources
	r.handler, err = handlers.New(opts)
	return err
}

// store returns the registry of a stored resource, which the versions of a kind share in all its groups, and adds the
// subresources it serves.
func (s *Set) store(r *served, stores map[schema.GroupResource]*registry.Registry, subs map[string]handlers.Subresource) (any, error) {
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

func (s *Set) newRegistry(r *served) (*registry.Registry, error) {
	typed, err := codec.NewTyped(r.scheme, r.stored)
	if err != nil {
		return nil, err
	}
	store, err := storage.NewStore(s.opts.Backend, storage.StoreOptions{
		Prefix:         "/registry/" + r.path(),
		Codec:          typed,
		Namespaced:     r.Namespaced,
		Fields:         r.Selectable,
		FieldPaths:     r.scheme.FieldPaths(r.gvk.GroupKind()),
		MaxObjectBytes: s.opts.MaxObjectBytes,
		TTL:            r.TTL,
		Hooks:          s.opts.Metrics.Store(r.gvr.GroupResource()),
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
		Policy:     s.opts.Policy,
		NoStatus:   r.NoStatus,
		Scale:      r.Scale,

		GarbageCollection: s.opts.CollectsGarbage,
		Now:               s.opts.Now,
	})
}
