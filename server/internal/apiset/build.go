package apiset

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/handlers"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served is one resource in one version, as it is served.
type served struct {
	Resource
	gvr     schema.GroupVersionResource
	gvk     schema.GroupVersionKind
	hub     schema.GroupVersionKind
	stored  schema.GroupVersionKind // the kind in the version in which objects are stored
	scheme  *runtime.Scheme         // the scheme of the group, or of the server
	models  *patch.Models           // models of the scheme's kinds
	docs    *apischema.Docs
	handler *handlers.Resource
	subs    map[string]handlers.Subresource
	own     []schema.GroupVersionKind // kinds that were registered for the resource, and are unregistered with it
	joined  bool                      // its conversion was added for the resource, and is removed with it
	life    context.Context           // ends when the resource is withdrawn or the server ends
	end     context.CancelFunc
	reg     *registry.Registry // the registry of all versions of the kind; nil if the resource has a Storage of its own
	objects storage.Interface  // of a hub: the storage below the cache; nil if the resource has a Storage of its own
	cache   *cacher.Cacher     // of a hub: the cache, or nil; closed by the Set
	shown   []string           // verbs that discovery shows, if not all of the handler; guarded by the set's mu
	cached  published
	// inFlight counts the requests to the kind in all its versions. When the kind is withdrawn or replaced, the cache is closed
	// after the last of these requests, since they read from it.
	inFlight *transport.Count
	policy   admission.Source // decides about calls in the process to a Storage of its own
	// The following fields are guarded by the set's mu.
	by      *Change // the Change that adds or withdraws the resource when it is published; nil: none
	pending bool    // the resource is not published yet
	unread  bool    // pending, and not in the readers: the readers still use the resource that it replaces
}

// add makes everything that is needed to serve groups beside the resources that are served, and returns the resources and their
// routes. If it returns an error, nothing is left of them. The caller holds mu.
func (s *Set) add(groups []Group) ([]*served, map[schema.GroupVersionResource]http.Handler, error) {
	added, err := describer{s.scheme, s.models, s.served}.kinds(groups)
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

// routes makes the handlers of added resources.
func (s *Set) routes(added []*served) (map[schema.GroupVersionResource]http.Handler, error) {
	routes := map[schema.GroupVersionResource]http.Handler{}
	stores := map[schema.GroupResource]*registry.Registry{}
	inFlight := map[schema.GroupVersionKind]*transport.Count{}
	// The hubs come first: they have the strategy and the storage that the other versions share, perhaps of another group.
	for _, r := range slices.SortedStableFunc(slices.Values(added), hubFirst) {
		if _, ok := routes[r.gvr]; ok {
			return nil, fmt.Errorf("server: %s is served twice: list it once", r.gvr)
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

// build makes the handler of one resource, and the registry if the resource is the hub.
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
		Shown:             r.Shown,
		Verbs:             r.Verbs,
		Models:            r.models,
		Table:             r.Table,
		Formats:           s.opts.Formats,
		Forms:             s.opts.Forms,
		MaxBodyBytes:      s.opts.MaxBodyBytes,
		Budget:            s.opts.Bytes,
		MaxDecodedBytes:   s.opts.MaxDecodedBytes,
		MaxMetadataItems:  s.opts.MaxMetadataItems,
		Patches:           s.opts.Patches,
		MinRequestTimeout: s.opts.MinWatchTimeout,
		WriteTimeout:      s.opts.WriteTimeout,
		Selectors:         s.opts.Selectors,
		Deprecated:        r.Deprecated,
		Authorizer:        s.opts.Authorizer,
		Stop:              r.life.Done(),
		Subresources:      map[string]handlers.Subresource{},
		Hooks:             s.opts.Metrics.Handlers(r.gvr),
	}
	opts.Hooks.Untracked = s.opts.Untracked
	if r.Custom == nil {
		if opts.Storage, err = s.opts.store(r, stores, opts.Subresources); err != nil {
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
		if o, ok := registry.As[registry.Opener](sub.Storage); ok {
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
