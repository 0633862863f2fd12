package registry

import (
	"fmt"
	"math"
	"strings"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// ScaleView serves the objects of a registry as the scale subresource, in autoscaling/v1 Scale. It implements Getter and Updater.
// All methods may be called concurrently.
type ScaleView struct {
	registry *Registry
	paths    Scale

	specReplicas, statusReplicas, selector fieldPath
}

// ScaleView returns the scale subresource. It returns an error if the kind's Go type does not have a path of s, or has a field of
// another type there than [Scale] requires.
func (r *Registry) ScaleView(s Scale) (*ScaleView, error) {
	v := &ScaleView{registry: r, paths: s}
	var err error
	if v.specReplicas, err = integerPath(r.kind.Type, s.SpecReplicas); err == nil {
		v.statusReplicas, err = integerPath(r.kind.Type, s.StatusReplicas)
	}
	if err == nil && s.LabelSelector != "" {
		v.selector, err = stringPath(r.kind.Type, s.LabelSelector)
	}
	if err != nil {
		return nil, fmt.Errorf("registry of %s: scale: %w", r.kind.GVK, err)
	}
	return v, nil
}

var scaleKind = runtime.ScaleKind()

// Get implements Getter.
func (v *ScaleView) Get(call *Call, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	at := storage.Read{}
	if opts != nil {
		var err error
		if at, err = ReadAt(opts.ResourceVersion); err != nil {
			return nil, err
		}
	}
	rec, err := v.registry.GetRecord(call, name, at)
	if err != nil {
		return nil, err
	}
	obj, err := v.decode(call, rec)
	if err != nil {
		return nil, err
	}
	if _, ok := v.specReplicas.integer(obj); !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", v.paths.SpecReplicas))
	}
	return v.scale(obj)
}

// decode returns the object of a record, in the version that has the paths.
func (v *ScaleView) decode(call *Call, rec storage.Record) (runtime.Object, error) {
	if !v.registry.converts() {
		return v.registry.Decode(rec)
	}
	objs, err := v.registry.DecodeRecords(call, []storage.Record{rec}, v.registry.version)
	if err != nil {
		return nil, err
	}
	return objs[0], nil
}

// shown returns an object of the hub in the version that has the paths.
func (v *ScaleView) shown(call *Call, obj runtime.Object) (runtime.Object, error) {
	if !v.registry.converts() {
		return obj, nil
	}
	return v.registry.scheme.ToVersionContext(call.Context, obj, v.registry.version)
}

// accept returns the metadata of an object, in the version that has the paths.
func (v *ScaleView) accept(obj runtime.Object) (metav1.Object, error) {
	if v.registry.converts() {
		return meta.Accessor(obj)
	}
	return v.registry.accept(obj)
}

// scale returns the Scale of an object. Replicas that are missing are 0.
func (v *ScaleView) scale(obj runtime.Object) (*runtime.Scale, error) {
	m, err := v.accept(obj)
	if err != nil {
		return nil, err
	}
	s := &runtime.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name:              m.GetName(),
			Namespace:         m.GetNamespace(),
			UID:               m.GetUID(),
			ResourceVersion:   m.GetResourceVersion(),
			CreationTimestamp: m.GetCreationTimestamp(),
		},
	}
	s.SetGroupVersionKind(scaleKind)
	s.Spec.Replicas, _ = v.specReplicas.integer(obj)
	s.Status.Replicas, _ = v.statusReplicas.integer(obj)
	s.Status.Selector = v.selector.text(obj)
	return s, nil
}

// Update implements Updater. It writes the replicas of the Scale to the object, with the rules of an update of the object itself.
// Of the Scale's metadata, only uid and resourceVersion are used, as preconditions, and managedFields. In the Scale that update
// receives, managedFields has an entry for each manager of the object's replicas. The entries in the Scale that update returns
// become the managers of the replicas. The entry that the object gets for a new manager is in the version of the request. For
// custom resources kube-apiserver answers the apply of a Scale with 500, and keeps no managers of replicas that are applied; for a
// Scale without an apiVersion it keeps the entry of the former manager, without a time.
func (v *ScaleView) Update(call *Call, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if opts == nil {
		opts = &metav1.UpdateOptions{}
	}
	if v.registry.converts() && call != nil {
		call.KeepsSent()
	}
	e := v.registry.main()
	e.subresource, e.kind = "scale", scaleKind
	e.subject = func(obj runtime.Object) (runtime.Object, error) {
		there, err := v.shown(call, obj)
		if err != nil {
			return nil, err
		}
		return v.scale(there)
	}
	e.change = func(call *Call, req *admission.Request, obj runtime.Object) (runtime.Object, error) {
		return v.rescale(call, name, obj, update, req)
	}
	e.creates = false
	rec, _, err := v.registry.update(call, name, nil, opts, e)
	if err != nil {
		return nil, false, err
	}
	obj, err := v.decode(call, rec)
	if err != nil {
		return nil, false, err
	}
	scale, err := v.scale(obj)
	return scale, false, err
}

// noReplicas is the value of the replicas that an update receives for an untyped object without replicas. The update must replace
// it. kube-apiserver uses the same number for patches of custom resources.
const noReplicas = math.MinInt32

// rescale returns obj changed as update changes its Scale. It calls the mutators for req.
func (v *ScaleView) rescale(call *Call, name string, obj runtime.Object, update ObjectUpdate, req *admission.Request) (runtime.Object, error) {
	r := v.registry
	obj, err := v.shown(call, obj)
	if err != nil {
		return nil, r.status(err, name)
	}
	old, err := v.scale(obj)
	if err != nil {
		return nil, err
	}
	managers, err := v.managers(call, obj)
	if err != nil {
		return nil, err
	}
	old.SetManagedFields(managers.ofScale())
	shown := runtime.DeepCopy(old)
	if _, there := v.specReplicas.integer(obj); !there && r.scale.checks() {
		shown.Spec.Replicas = noReplicas
	}
	changed, err := update(call, shown)
	if err != nil {
		return nil, err
	}
	if s, ok := changed.(*runtime.Scale); ok && s != nil && s.Spec.Replicas == noReplicas {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", v.paths.SpecReplicas))
	}
	req.Show(changed, old, false)
	if err := r.refused(call.Policy.Plugins.Mutate(call, req), name); err != nil {
		return nil, err
	}
	changed = req.Object()
	scale, ok := changed.(*runtime.Scale)
	if !ok || scale == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("wrong object passed to Scale update: %T", changed))
	}
	if scale.Spec.Replicas < 0 && !r.scale.checks() { // otherwise the check of the object reports it
		return nil, excerpt.Invalid(scaleKind.GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0"),
		})
	}
	m, err := v.accept(obj)
	if err != nil {
		return nil, err
	}
	// A missing uid or resourceVersion is no precondition, even if an update of the object itself needs one.
	if scale.UID != "" {
		m.SetUID(scale.UID)
	}
	if scale.ResourceVersion != "" {
		m.SetResourceVersion(scale.ResourceVersion)
	}
	if err := v.specReplicas.setInteger(obj, scale.Spec.Replicas); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q cannot be set: %w", v.paths.SpecReplicas, err))
	}
	m.SetManagedFields(managers.ofObject(scale))
	if !r.converts() {
		return obj, nil
	}
	hub, err := r.scheme.ToVersionContext(call.Context, obj, r.kind.GVK.GroupVersion())
	if err != nil {
		return nil, r.status(err, name)
	}
	call.KeepSent(obj, hub)
	return hub, nil
}

// replicaManagers are the managers of an object's replicas.
type replicaManagers struct {
	object  []metav1.ManagedFieldsEntry
	handler *managedfields.ScaleHandler
}

// managers returns the managers of the replicas of obj, which may be in any version.
func (v *ScaleView) managers(call *Call, obj runtime.Object) (*replicaManagers, error) {
	r := v.registry
	m, err := v.accept(obj)
	if err != nil {
		return nil, err
	}
	paths := managedfields.ResourcePathMappings{} // nil for a version without a path of the replicas
	for _, kind := range r.scheme.Versions(r.kind.GVK.GroupKind()) {
		paths[kind.GVK.GroupVersion().String()] = pathOf(r.replicas.in(kind, v.paths.SpecReplicas))
	}
	gv := r.kind.GVK.GroupVersion()
	if call.APIVersion != "" { // also for another group than the hub's
		if asked := (schema.GroupVersion{Group: call.APIGroup, Version: call.APIVersion}); paths[asked.String()] != nil {
			gv = asked
		}
	}
	entries := m.GetManagedFields()
	return &replicaManagers{entries, managedfields.NewScaleHandler(entries, gv, paths)}, nil
}

// pathOf returns a path of a Scale in the form of managed fields. It returns nil for "".
func pathOf(path string) fieldpath.Path {
	if path == "" {
		return nil
	}
	var out fieldpath.Path
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		out = append(out, fieldpath.PathElement{FieldName: &name})
	}
	return out
}

// ofScale returns the entries of the Scale. It returns none if they cannot be read.
func (s *replicaManagers) ofScale() []metav1.ManagedFieldsEntry {
	entries, err := s.handler.ToSubresource()
	if err != nil {
		return nil
	}
	return entries
}

// ofObject returns the entries of the object after the change to scale. The list is not nil if no entry is left, since an update
// without managedFields keeps those that are stored.
func (s *replicaManagers) ofObject(scale *runtime.Scale) []metav1.ManagedFieldsEntry {
	entries, err := s.handler.ToParent(scale.GetManagedFields())
	switch {
	case err != nil:
		return s.object
	case entries == nil:
		return []metav1.ManagedFieldsEntry{}
	}
	return entries
}
