package registry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options says what a Registry serves. Scheme, Kind, Resource and Storage are required.
type Options struct {
	// Scheme knows Kind.
	Scheme *runtime.Scheme
	// Kind is the kind in its hub version: objects go in and come out as its Go type.
	Kind schema.GroupVersionKind
	// Resource is the group and the plural, as error messages name them.
	Resource schema.GroupResource
	// Singular is the resource's singular; "" is the kind in lower case.
	Singular string
	// Namespaced says that objects live in namespaces; the zero value is cluster-scoped.
	Namespaced bool
	// Storage holds the objects. The registry does not close it.
	Storage storage.Interface
	// Strategy is the kind's own rules; the zero value has none.
	Strategy Erased
	// Policy is asked for the policy of a call that has none: its plug-ins judge every write. nil accepts all. An
	// admission.Chain is one.
	Policy admission.Source
	// GarbageCollection is asked whether a garbage collector looks after the objects, so that DELETE with the policies
	// Orphan and Foreground leaves the collector's finalizers on them. Without one nobody would take those
	// finalizers away again: nil, as false, adds none.
	GarbageCollection func() bool
	// NoStatus says that a field status, if the kind has one, is an ordinary field: its users write it, and it
	// counts for the generation.
	NoStatus bool
	// Scale is what a ScaleView of the registry will be made of, if there is one: of a kind without a Go type, what objects
	// have at its paths is checked when they are written. nil: nothing is.
	Scale *Scale
	// Now is the clock of creation and deletion timestamps; nil is time.Now.
	Now func() time.Time
}

// Registry serves one stored resource. Make one with [New]. All methods may be called concurrently. It keeps
// nothing but its Options: two registries over one storage see the same objects.
//
// Methods take who asks, and in which namespace, from the [Call]. Their errors are apimachinery StatusErrors, but for the
// context's own and what strategies, admission and ObjectUpdate functions return.
type Registry struct {
	scheme     *runtime.Scheme
	kind       *runtime.Kind
	resource   schema.GroupResource
	singular   string
	namespaced bool
	store      storage.Interface
	strategy   Erased
	policy     admission.Source // may be nil
	gc         func() bool      // may be nil
	now        func() time.Time
	shape      shape
	noStatus   bool
	version    schema.GroupVersion // that shows the objects, where versions say different things of them; empty: the hub
	replicas   *replicaPaths       // shared by all registries of the objects
	scale      untypedScale
}

// New returns a registry. It refuses Options without a required field, a kind that is not registered or not the
// hub, a resource of another group, and a strategy for another Go type.
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
		singular:   o.Singular,
		namespaced: o.Namespaced,
		store:      o.Storage,
		strategy:   o.Strategy,
		policy:     o.Policy,
		gc:         o.GarbageCollection,
		now:        o.Now,
		shape:      shapeOf(kind.Type, !o.NoStatus),
		noStatus:   o.NoStatus,
		replicas:   &replicaPaths{},
	}
	var err error
	if r.scale, err = newUntypedScale(kind, o.Scale); err != nil {
		return nil, err
	}
	if kind.Untyped() { // as custom resources do, whose clients know that from kube-apiserver
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

// checkStrategy refuses a strategy that is not for a kind.
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

// Resource returns the group and plural.
func (r *Registry) Resource() schema.GroupResource { return r.resource }

// Singular returns the resource's singular.
func (r *Registry) Singular() string { return r.singular }

// Namespaced reports whether objects live in namespaces.
func (r *Registry) Namespaced() bool { return r.namespaced }

// ReturnsDeleted implements DeletedReturner with the strategy's ReturnDeleted.
func (r *Registry) ReturnsDeleted() bool { return r.strategy.returnDeleted }

// ResetFields implements FieldResetter: the status, and the strategy's ResetFields.
func (r *Registry) ResetFields(k *runtime.Kind) [][]string {
	var reset [][]string
	if shapeOf(k.Type, !r.noStatus).hasStatus() {
		reset = append(reset, []string{"status"})
	}
	return append(reset, resetPaths(k, r.strategy.resetFields)...)
}

// resetPaths returns where a version of the kind has fields of the hub.
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

// key is where the object called name is stored, in the namespace of the call.
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

// accept returns the metadata of an object that a caller handed in, or an error when it is not of the kind.
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

// timestamp is now as metadata has it: in UTC and whole seconds.
func (r *Registry) timestamp() metav1.Time {
	return metav1.NewTime(r.now().UTC().Truncate(time.Second))
}

func isDryRun(values []string) bool { return len(values) > 0 }
