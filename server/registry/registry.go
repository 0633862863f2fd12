package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options describes what a Registry serves. Scheme, Kind, Resource and Storage are required.
type Options struct {
	// Scheme has Kind and the other versions of the kind.
	Scheme *runtime.Scheme
	// Kind is the kind in its hub version. The registry accepts and returns objects of the kind's Go type.
	Kind schema.GroupVersionKind
	// Resource is the group and the plural name of the resource, for error messages.
	Resource schema.GroupResource
	// Singular is the singular name of the resource; "" is the kind in lower case.
	Singular string
	// Namespaced says that objects are in namespaces; the zero value is cluster-scoped.
	Namespaced bool
	// Storage stores the objects. The registry does not close it.
	Storage storage.Interface
	// StoragePath is the path of the objects in the storage, for error messages; "" is /registry/<group>/<plural name>, or
	// /registry/<plural name> for the core group.
	StoragePath string
	// Strategy has the rules of the kind; the zero value has none.
	Strategy Erased
	// Policy returns the policy of a call that has none. The plug-ins of the policy review every write. nil accepts all. An
	// admission.Chain is a Source.
	Policy admission.Source
	// GarbageCollection reports whether a garbage collector works on the objects. If it does, a DELETE with the policy Orphan or
	// Foreground adds the finalizer of that policy to the object, which the collector removes. nil is false: no finalizers are
	// added, because nothing would remove them.
	GarbageCollection func() bool
	// NoStatus says that the field status of the kind, if there is one, is an ordinary field: users write it, and a change of it
	// increases the generation.
	NoStatus bool
	// Scale is the Scale of the registry's ScaleView, if there is one. If the kind has no Go type, each write checks the values
	// at the paths of Scale. nil checks nothing.
	Scale *Scale
	// Models are the models of the kinds in Scheme, by which fields get managers: see Typed.As. nil makes the models from the Go
	// types alone.
	Models *patch.Models
	// Now is the clock for creation and deletion timestamps; nil is time.Now.
	Now func() time.Time
}

// Registry serves one stored resource. Make one with [New]. All methods may be called concurrently. A Registry has no state
// except its Options: two registries over the same storage have the same objects.
//
// Methods take the user and the namespace from the [Call]. Errors are StatusErrors of apimachinery, except errors of the context
// and errors that strategies, admission and ObjectUpdate functions return.
//
// # Writes
//
// A write does these steps in this order:
//
//   - Fields that only the server sets are cleared.
//   - Mutating admission.
//   - Defaults.
//   - Strategy.Permit, for a call of a client.
//   - Fields that the endpoint does not change, such as the status in an update of the object, get their old values.
//   - For a new object, its name, uid and times.
//   - Prepare functions of the strategy.
//   - Validation of metadata, of struct tags (package constraint) and by the strategy.
//   - Warnings.
//   - Canonicalize.
//   - Validating admission, which gets copies of the objects; they are made only if a plug-in handles the request.
//   - Storage.
//
// If another write has changed the object in the meantime, an update repeats all steps. Therefore the functions that it calls
// must work when they are called again. A request with a resourceVersion is never applied to an object with another
// resourceVersion: it ends with 409 Conflict.
//
// A dry run is answered as the write would be. kube-apiserver answers it with the metadata.selfLink of the request, too, which it
// does not store.
//
// # Field management
//
// The handlers compute metadata.managedFields, in the update functions that they pass. If an object comes without entries, the
// registry keeps the stored ones. If mutating admission makes the entries invalid, the registry restores them. If the only change
// of an update is new times in the entries, the registry restores the old times. A new object that is too large with its entries
// is stored without them, except one that an apply creates.
type Registry struct {
	scheme     *runtime.Scheme
	kind       *runtime.Kind
	resource   schema.GroupResource
	singular   string
	namespaced bool
	store      storage.Interface
	path       string // of the objects in the storage
	strategy   Erased
	policy     admission.Source // may be nil
	gc         func() bool      // may be nil
	now        func() time.Time
	shape      shape
	noStatus   bool
	models     *patch.Models       // may be nil
	version    schema.GroupVersion // the version of the objects, for kinds whose versions have different rules; empty is the hub
	replicas   *replicaPaths       // shared by all registries of the same objects
	scale      untypedScale
}

// New returns a registry. It returns an error in these cases:
//
//   - Scheme, Storage or Resource is missing.
//   - Kind is not registered in Scheme, or is not the hub version.
//   - Resource is of another group than Kind.
//   - Strategy is for another Go type, or a path of its ResetFields does not exist.
//   - Kind has no Go type, and a path of Scale is invalid.
func New(o Options) (*Registry, error) {
	r, err := newRegistry(o)
	if err != nil {
		return nil, fmt.Errorf("registry of %s: %w", o.Kind, err)
	}
	return r, nil
}

func newRegistry(o Options) (*Registry, error) {
	switch {
	case o.Scheme == nil:
		return nil, errors.New("a Scheme is required")
	case o.Storage == nil:
		return nil, errors.New("a Storage is required")
	case o.Resource.Resource == "":
		return nil, errors.New("a Resource is required")
	case o.Resource.Group != o.Kind.Group:
		return nil, fmt.Errorf("resource %s is of another group", o.Resource)
	}
	kind := o.Scheme.Lookup(o.Kind)
	if kind == nil {
		return nil, errors.New("the kind is not registered in the scheme")
	}
	if hub, _ := o.Scheme.Hub(o.Kind.GroupKind()); hub != o.Kind {
		return nil, fmt.Errorf("the kind's hub is %s", hub)
	}
	if err := checkStrategy(kind, o.Strategy); err != nil {
		return nil, err
	}
	r := &Registry{
		scheme:     o.Scheme,
		kind:       kind,
		resource:   o.Resource,
		path:       cmp.Or(o.StoragePath, path.Join("/registry", o.Resource.Group, o.Resource.Resource)),
		singular:   o.Singular,
		namespaced: o.Namespaced,
		store:      o.Storage,
		strategy:   o.Strategy,
		policy:     o.Policy,
		gc:         o.GarbageCollection,
		now:        o.Now,
		shape:      shapeOf(kind.Type, !o.NoStatus),
		noStatus:   o.NoStatus,
		models:     o.Models,
		replicas:   &replicaPaths{},
	}
	var err error
	if r.scale, err = newUntypedScale(kind, o.Scale); err != nil {
		return nil, err
	}
	if kind.Untyped() { // as for custom resources in kube-apiserver
		r.strategy.requireResourceVersion = true
	}
	if r.singular == "" {
		r.singular = strings.ToLower(o.Kind.Kind)
	}
	if r.now == nil {
		r.now = time.Now
	}
	return r, nil
}

// checkStrategy returns an error if a strategy is not for the kind.
func checkStrategy(kind *runtime.Kind, s Erased) error {
	if want := reflect.PointerTo(kind.Type); s.object != nil && !want.AssignableTo(s.object) {
		return fmt.Errorf("the strategy is for %v, the kind is %v", s.object, want)
	}
	for _, path := range s.resetFields {
		if name, _, _ := strings.Cut(path, "."); name == "metadata" || !hasPath(kind.Type, "."+path) {
			return fmt.Errorf("ResetFields %q: %v has no such field; write a dotted path of JSON names outside of metadata, such as \"spec.color\"", path, kind.Type)
		}
	}
	return nil
}

// Kind returns the kind, in its hub version.
func (r *Registry) Kind() schema.GroupVersionKind { return r.kind.GVK }

// Resource returns the group and plural name of the resource.
func (r *Registry) Resource() schema.GroupResource { return r.resource }

// Singular returns the singular name of the resource.
func (r *Registry) Singular() string { return r.singular }

// Namespaced reports whether objects are in namespaces.
func (r *Registry) Namespaced() bool { return r.namespaced }

// ReturnsDeleted implements DeletedReturner. It returns ReturnDeleted of the strategy.
func (r *Registry) ReturnsDeleted() bool { return r.strategy.returnDeleted }

// ResetFields implements FieldResetter. It returns the status and the ResetFields of the strategy.
func (r *Registry) ResetFields(k *runtime.Kind) [][]string {
	var reset [][]string
	if shapeOf(k.Type, !r.noStatus).hasStatus() {
		reset = append(reset, []string{"status"})
	}
	return append(reset, resetPaths(k, r.strategy.resetFields)...)
}

// resetPaths returns the paths of fields of the hub in a version of the kind.
func resetPaths(k *runtime.Kind, fields []string) [][]string {
	var reset [][]string
	for _, path := range fields {
		for here, hub := range k.Renamed {
			if hub == path {
				path = here
				break
			}
		}
		reset = append(reset, strings.Split(path, "."))
	}
	return reset
}

// Decode implements Records.
func (r *Registry) Decode(rec storage.Record) (runtime.Object, error) {
	obj, err := r.store.Decode(rec)
	return obj, r.status(err, rec.Key[strings.LastIndexByte(rec.Key, '/')+1:])
}

// DecodeRecords implements ManyRecords.
func (r *Registry) DecodeRecords(ctx context.Context, records []storage.Record, gv schema.GroupVersion) ([]runtime.Object, error) {
	if many, ok := r.store.(storage.ManyDecoder); ok {
		if objs, err := many.DecodeAll(ctx, records, gv); !errors.Is(err, storage.ErrUnsupported) {
			return objs, r.status(err, "")
		}
	}
	objs := make([]runtime.Object, len(records))
	for i, rec := range records {
		var err error
		if objs[i], err = r.Decode(rec); err != nil {
			return nil, err
		}
	}
	return r.scheme.ToVersions(ctx, objs, gv)
}

// key returns the storage key of an object, in the namespace of the call.
func (r *Registry) key(call *Call, name string) (string, error) {
	if name == "" {
		return "", apierrors.NewBadRequest("Name parameter required.")
	}
	if msgs := content.IsPathSegmentName(name); len(msgs) > 0 {
		return "", apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, strings.Join(msgs, ";")))
	}
	if !r.namespaced {
		return name, nil
	}
	ns := call.Namespace
	if ns == "" {
		return "", apierrors.NewBadRequest("Namespace parameter required.")
	}
	if msgs := content.IsPathSegmentName(ns); len(msgs) > 0 {
		return "", apierrors.NewBadRequest(fmt.Sprintf("Namespace parameter invalid: %q: %s", ns, strings.Join(msgs, ";")))
	}
	return ns + "/" + name, nil
}

// accept returns the metadata of an object from a caller. It returns an error if the object is not of the kind.
func (r *Registry) accept(obj runtime.Object) (metav1.Object, error) {
	if obj == nil || reflect.TypeOf(obj) != reflect.PointerTo(r.kind.Type) || reflect.ValueOf(obj).IsNil() {
		return nil, apierrors.NewInternalError(fmt.Errorf("got a %T for %s", obj, r.kind.GVK))
	}
	if err := r.acceptKind(obj); err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return m, nil
}

// timestamp returns the current time as metadata has it: in UTC and whole seconds.
func (r *Registry) timestamp() metav1.Time {
	return metav1.NewTime(r.now().UTC().Truncate(time.Second))
}

func isDryRun(values []string) bool { return len(values) > 0 }
