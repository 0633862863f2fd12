package main

import (
	"context"
	"fmt"

	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// scale serves /scale.
type scale struct{ store *genericregistry.Store }

// New implements rest.Storage.
func (s *scale) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage. It does nothing, because the resource closes the store.
func (s *scale) Destroy() {}

// GroupVersionKind implements rest.GroupVersionKindProvider: a scale has another group.
func (s *scale) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return autoscalingv1.SchemeGroupVersion.WithKind("Scale")
}

// Get implements rest.Getter.
func (s *scale) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return scaleOf(obj.(*widget.Widget)), nil
}

// Update implements rest.Updater.
func (s *scale) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc, onUpdate rest.ValidateObjectUpdateFunc,
	_ bool, o *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	judge := func(ctx context.Context, obj, old runtime.Object) error {
		return onUpdate(ctx, scaleOf(obj.(*widget.Widget)), scaleOf(old.(*widget.Widget)))
	}
	obj, _, err := s.store.Update(ctx, name, scaled{info}, onCreate, judge, false, o)
	if err != nil {
		return nil, false, err
	}
	return scaleOf(obj.(*widget.Widget)), false, nil
}

func scaleOf(w *widget.Widget) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.Name, Namespace: w.Namespace, UID: w.UID, ResourceVersion: w.ResourceVersion, CreationTimestamp: w.CreationTimestamp,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: w.Spec.Replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: w.Status.Replicas, Selector: w.Status.Selector},
	}
}

// scaled turns a change of a scale into a change of the widget and of the owner of the changed field.
type scaled struct{ rest.UpdatedObjectInfo }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (s scaled) UpdatedObject(ctx context.Context, old runtime.Object) (runtime.Object, error) {
	w := old.DeepCopyObject().(*widget.Widget)
	owners := managedfields.NewScaleHandler(w.ManagedFields, groupVersion(), managedfields.ResourcePathMappings{
		groupVersion().String(): fieldpath.MakePathOrDie("spec", "replicas"),
	})
	before := scaleOf(w)
	var err error
	if before.ManagedFields, err = owners.ToSubresource(); err != nil {
		return nil, err
	}
	obj, err := s.UpdatedObjectInfo.UpdatedObject(ctx, before)
	if err != nil {
		return nil, err
	}
	after, ok := obj.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("expected a Scale, got a %T", obj))
	}
	w.Spec.Replicas = after.Spec.Replicas
	if after.ResourceVersion != "" { // a precondition
		w.ResourceVersion = after.ResourceVersion
	}
	w.ManagedFields, err = owners.ToParent(after.ManagedFields)
	return w, err
}
