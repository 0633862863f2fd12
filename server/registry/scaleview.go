package registry

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ScaleView is a registry's objects as the scale subresource shows them, in autoscaling/v1 Scale. It implements
// Getter and Updater; all methods may be called concurrently.
type ScaleView struct {
	registry *Registry
	paths    Scale

	specReplicas, statusReplicas, selector fieldPath
}

// ScaleView returns the scale subresource. It refuses paths that the kind's Go type does not have, or that lead
// to fields of another type than [Scale] says.
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

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// Get implements Getter.
func (v *ScaleView) Get(ctx context.Context, name string, opts *metav1.GetOptions) (runtime.Object, error) {
	at := storage.Read{}
	if opts != nil {
		var err error
		if at, err = ReadAt(opts.ResourceVersion); err != nil {
			return nil, err
		}
	}
	rec, err := v.registry.GetRecord(ctx, name, at)
	if err != nil {
		return nil, err
	}
	obj, err := v.registry.Decode(rec)
	if err != nil {
		return nil, err
	}
	if _, ok := v.specReplicas.integer(obj); !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", v.paths.SpecReplicas))
	}
	return v.scale(obj)
}

// scale makes the Scale of an object; replicas that are absent are 0.
func (v *ScaleView) scale(obj runtime.Object) (runtime.Object, error) {
	m, err := v.registry.accept(obj)
	if err != nil {
		return nil, err
	}
	s := &autoscalingv1.Scale{
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

// Update implements Updater: it writes the replicas of the Scale into the object, by the rules of an update of the
// object itself. Of the Scale's metadata only uid and resourceVersion count, as preconditions.
func (v *ScaleView) Update(ctx context.Context, name string, update ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if opts == nil {
		opts = &metav1.UpdateOptions{}
	}
	e := v.registry.main()
	e.subresource, e.kind, e.subject = "scale", scaleKind, v.scale
	e.mutates, e.creates = true, false
	rec, _, err := v.registry.update(ctx, name, func(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
		return v.rescale(ctx, name, obj, update, opts)
	}, opts, e)
	if err != nil {
		return nil, false, err
	}
	obj, err := v.registry.Decode(rec)
	if err != nil {
		return nil, false, err
	}
	scale, err := v.scale(obj)
	return scale, false, err
}

// rescale changes obj as update changes its Scale.
func (v *ScaleView) rescale(ctx context.Context, name string, obj runtime.Object, update ObjectUpdate, opts *metav1.UpdateOptions) (runtime.Object, error) {
	r := v.registry
	old, err := v.scale(obj)
	if err != nil {
		return nil, err
	}
	req := r.request(ctx, admission.Update, name, isDryRun(opts.DryRun))
	req.Kind, req.Subresource, req.Old, req.Options = scaleKind, "scale", old, opts
	if req.Object, err = update(ctx, old.DeepCopyObject()); err != nil {
		return nil, err
	}
	if err := r.refused(r.admission.Mutate(ctx, req), name); err != nil {
		return nil, err
	}
	scale, ok := req.Object.(*autoscalingv1.Scale)
	if !ok || scale == nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("wrong object passed to Scale update: %T", req.Object))
	}
	if scale.Spec.Replicas < 0 {
		return nil, apierrors.NewInvalid(scaleKind.GroupKind(), name, field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0"),
		})
	}
	m, err := r.accept(obj)
	if err != nil {
		return nil, err
	}
	// What the Scale leaves out is no precondition, also where an update of the object itself needs one.
	if scale.UID != "" {
		m.SetUID(scale.UID)
	}
	if scale.ResourceVersion != "" {
		m.SetResourceVersion(scale.ResourceVersion)
	}
	v.specReplicas.setInteger(obj, scale.Spec.Replicas)
	return obj, nil
}
