package handlers

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
	"github.com/keelson-dev/keelson/server/registry"
)

// New returns the handler of a resource. It returns an error in these cases:
//
//   - Scheme, Resource, Kind or Storage is missing.
//   - Kind is of another group or version than Resource.
//   - The storage of the resource or of a subresource has none of the capabilities of package registry.
//   - Verbs is empty but not nil, or has a verb that Storage does not implement.
//   - A format in Formats is not one of package codec.
//   - A kind is not in Scheme, and its objects could be created or updated.
//   - Shown is set for a kind that has a Go type or is not in Scheme, or for a Storage that is no registry.RecordChooser.
//   - Admission is set for a storage that is, or embeds, a registry.View with ViewOptions.Admitted.
func New(o Options) (*Resource, error) {
	switch {
	case o.Scheme == nil:
		return nil, errors.New("handlers: Scheme is required")
	case o.Resource.Version == "" || o.Resource.Resource == "" || o.Kind.Kind == "":
		return nil, errors.New("handlers: Resource and Kind are required")
	case o.Kind.GroupVersion() != o.Resource.GroupVersion():
		return nil, fmt.Errorf("handlers: kind %s is not of the group and version of %s", o.Kind, o.Resource)
	}
	if k := o.Scheme.Lookup(o.Kind); len(o.Shown) > 0 && (k == nil || !k.Untyped()) {
		return nil, fmt.Errorf("handlers: Shown is for kinds without a Go type, unlike %s", o.Kind)
	}
	if _, chooses := registry.As[registry.RecordChooser](o.Storage); len(o.Shown) > 0 && !chooses {
		return nil, fmt.Errorf("handlers: Shown: the storage of %s, a %T, is no registry.RecordChooser: it would list and delete the objects that a selector does not match", o.Kind, o.Storage)
	}
	if o.Models == nil {
		o.Models = patch.NewModels(o.Scheme)
	}
	r := &Resource{
		scheme:     o.Scheme,
		models:     o.Models,
		gvr:        o.Resource,
		owner:      o.Kind,
		namespaced: o.Namespaced,
		formats:    o.Formats,
		maxBody:    o.MaxBodyBytes,
		budget:     o.Budget,
		most:       most(o.Budget),
		selectors:  o.Selectors,
		bodyLimits: codec.BodyLimits{
			Bytes: max(cmp.Or(o.MaxDecodedBytes, DefaultMaxDecodedBytes), 0),
			Items: max(cmp.Or(o.MaxMetadataItems, DefaultMaxMetadataItems), 0),
		},
		patchBounds: o.Patches,
		minTimeout:  o.MinRequestTimeout,
		write:       o.WriteTimeout,
		deprecated:  o.Deprecated,
		stop:        stopper{stop: o.Stop},
		hooks:       o.Hooks,
		authorizer:  o.Authorizer,
		subs:        make(map[string]*endpoint, len(o.Subresources)),
	}
	if len(r.formats) == 0 {
		r.formats = []codec.Format{codec.JSON(), codec.YAML(), codec.Protobuf()}
	}
	if r.maxBody == 0 {
		r.maxBody = DefaultMaxBodyBytes
	}
	if r.minTimeout <= 0 {
		r.minTimeout = DefaultMinRequestTimeout
	}
	if r.write == 0 {
		r.write = DefaultWriteTimeout
	}
	r.writeLimit.Limit = r.write
	r.making = make(chan struct{}, goruntime.GOMAXPROCS(0))
	if o.Table == nil {
		o.Table, _ = registry.As[registry.Tabler](o.Storage)
	}
	var err error
	of := wire.Objects{Scheme: o.Scheme, Shown: o.Shown, Kept: o.Forms, Seed: new(maphash.MakeSeed()), Columns: o.Table}
	if r.main, err = newEndpoint(r, "", Subresource{o.Kind, o.Storage, o.Admission}, of, slices.Clone(o.Verbs)); err != nil {
		return nil, err
	}
	for name, sub := range o.Subresources {
		if sub.Kind.Empty() {
			sub.Kind = o.Kind
		}
		columns, ok := registry.As[registry.Tabler](sub.Storage)
		if !ok && sub.Kind == o.Kind {
			columns = o.Table
		}
		of.Columns = columns
		_, of.NoTable = registry.As[registry.Untabled](sub.Storage)
		if r.subs[name], err = newEndpoint(r, name, sub, of, nil); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// newEndpoint returns the endpoint of the subresource sub or, if sub is "", of the resource. of has the fields that the Objects
// of all endpoints of the resource share. only has the verbs that may be served; nil is all.
func newEndpoint(r *Resource, sub string, o Subresource, of wire.Objects, only []string) (*endpoint, error) {
	of.Kind, of.Path = o.Kind, pathOf(r.gvr.Resource, sub)
	of.Records, _ = registry.As[registry.Records](o.Storage)
	e := &endpoint{Resource: r, Objects: wire.NewObjects(of), sub: sub, only: only}
	var err error
	if e.forms, err = wire.NewForms(e.Objects, r.formats); err != nil {
		return nil, fmt.Errorf("handlers: Formats: %w", err)
	}
	e.discover(o.Storage)
	if e.policy = o.Admission; o.Admission != nil {
		e.guard(o.Admission)
	}
	e.listVerbs()
	if err := e.checkVerbs(o.Storage); err != nil {
		return nil, err
	}
	if v, ok := registry.As[interface{ Admitted() bool }](o.Storage); ok && e.Records != nil && v.Admitted() {
		return nil, fmt.Errorf("handlers: storage %T of %s is, or embeds, a View with ViewOptions.Admitted, and admission would not judge its changes; make the View without Admitted, or keep it in a field of an Updater that calls it", o.Storage, e.Path)
	}
	if e.Known == nil && (e.canCreate() || e.canUpdate()) {
		return nil, fmt.Errorf("handlers: kind %s of %s is not in the scheme, and its bodies could not be decoded; register it", e.Kind, e.Path)
	}
	if err := e.manageFields(o.Storage); err != nil {
		return nil, err
	}
	e.patches = e.patchTypes()
	e.marks = sync.OnceValues(e.newBookmarks)
	return e, nil
}

// checkVerbs returns an error if an endpoint has no verb, or if its storage is not capable of one of the verbs in only.
func (e *endpoint) checkVerbs(storage any) error {
	all := *e
	all.only, all.verbs = nil, nil
	all.listVerbs()
	if len(all.verbs) == 0 {
		some := "Getter, Lister"
		if e.sub != "" {
			some = "Getter, Creater, Updater, Connecter"
		}
		return fmt.Errorf("handlers: storage %T of %s has none of the capabilities of package registry that it could be served with; implement %s or another of them", storage, e.Path, some)
	}
	for _, verb := range e.only {
		if !slices.Contains(e.verbs, verb) {
			return fmt.Errorf("handlers: Verbs of %s: there is no verb %q, or its storage, a %T, is not capable of it; want some of %s", e.Path, verb, storage, strings.Join(all.verbs, ", "))
		}
	}
	if len(e.verbs) == 0 {
		return fmt.Errorf("handlers: Verbs of %s is empty, but not nil: nothing would be served; want some of %s, or nil for all", e.Path, strings.Join(all.verbs, ", "))
	}
	return nil
}

// discover finds the capabilities of storage. All record interfaces are used only if storage implements Records, which decodes
// the records that they return.
func (e *endpoint) discover(storage any) {
	if e.Records != nil {
		if e.Known != nil && e.Known.ConvertsAll() {
			e.many, _ = registry.As[registry.ManyRecords](storage)
		}
		e.recordLister, _ = registry.As[registry.RecordLister](storage)
		e.recordWatcher, _ = registry.As[registry.RecordWatcher](storage)
		e.recordWriter, _ = registry.As[registry.RecordWriter](storage)
		e.recordUpdater, _ = registry.As[registry.RecordUpdater](storage)
		e.recordDeleter, _ = registry.As[registry.RecordDeleter](storage)
	}
	e.getter, _ = registry.As[registry.Getter](storage)
	e.lister, _ = registry.As[registry.Lister](storage)
	e.watcher, _ = registry.As[registry.Watcher](storage)
	e.creater, _ = registry.As[registry.Creater](storage)
	e.updater, _ = registry.As[registry.Updater](storage)
	e.deleter, _ = registry.As[registry.Deleter](storage)
	e.collectionDeleter, _ = registry.As[registry.CollectionDeleter](storage)
	e.connecter, _ = registry.As[registry.Connecter](storage)
	_, e.identifying = registry.As[registry.Identifying](storage)
}

// guard makes every method that can change something call admission first, and validate objects by their struct tags.
func (e *endpoint) guard(by admission.Source) {
	g := registry.Gate{Admission: by, Scheme: e.scheme, Kind: e.Kind, Resource: e.gvr, Subresource: e.sub, SentKind: e.Kind, SentResource: e.gvr}
	if hub, ok := e.scheme.Hub(e.Kind.GroupKind()); ok {
		g.Kind = hub
	}
	if hub, ok := e.scheme.Hub(e.owner.GroupKind()); ok {
		g.Resource = hub.GroupVersion().WithResource(e.gvr.Resource)
	}
	e.creater, e.updater, e.deleter = g.Creater(e.creater), g.Updater(e.updater), g.Deleter(e.deleter)
	e.collectionDeleter, e.connecter = g.CollectionDeleter(e.collectionDeleter), g.Connecter(e.connecter)
}
