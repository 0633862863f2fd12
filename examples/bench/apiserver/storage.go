package main

import (
	"context"
	"unicode/utf8"

	"github.com/keelson-dev/keelson/examples/bench/internal/widget"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// newStorage returns the storages of the resource and its subresources, by path.
func newStorage(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (map[string]rest.Storage, error) {
	resource := schema.GroupResource{Group: widget.Group, Resource: widget.Resource}
	all := strategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator}
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &widget.Widget{} },
		NewListFunc:               func() runtime.Object { return &widget.WidgetList{} },
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: schema.GroupResource{Group: widget.Group, Resource: "widget"},
		CreateStrategy:            all,
		UpdateStrategy:            all,
		DeleteStrategy:            all,
		ResetFieldsStrategy:       all,
		TableConvertor:            rest.NewDefaultTableConvertor(resource),
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter}); err != nil {
		return nil, err
	}
	ofStatus := *store
	ofStatus.UpdateStrategy, ofStatus.ResetFieldsStrategy = statusStrategy{all}, statusStrategy{all}
	return map[string]rest.Storage{
		widget.Resource:             &widgets{store},
		widget.Resource + "/status": &status{&ofStatus},
		widget.Resource + "/scale":  &scale{store},
	}, nil
}

// widgets serves the resource.
type widgets struct{ *genericregistry.Store }

// ShortNames implements rest.ShortNamesProvider.
func (*widgets) ShortNames() []string { return []string{"wd"} }

// Categories implements rest.CategoriesProvider.
func (*widgets) Categories() []string { return []string{"all"} }

// status serves /status.
type status struct{ store *genericregistry.Store }

// New implements rest.Storage.
func (s *status) New() runtime.Object { return s.store.New() }

// Destroy implements rest.Storage. It does nothing, because the resource closes the store.
func (s *status) Destroy() {}

// Get implements rest.Getter.
func (s *status) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	return s.store.Get(ctx, name, o)
}

// Update implements rest.Updater.
func (s *status) Update(
	ctx context.Context, name string, info rest.UpdatedObjectInfo, onCreate rest.ValidateObjectFunc, onUpdate rest.ValidateObjectUpdateFunc,
	_ bool, o *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return s.store.Update(ctx, name, info, onCreate, onUpdate, false, o)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (s *status) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return s.store.GetResetFields()
}

// strategy is the strategy of widgets.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

func (strategy) NamespaceScoped() bool                                     { return true }
func (strategy) AllowCreateOnUpdate(context.Context) bool                  { return false }
func (strategy) AllowUnconditionalUpdate(context.Context) bool             { return true }
func (strategy) Canonicalize(runtime.Object)                               {}
func (strategy) WarningsOnCreate(context.Context, runtime.Object) []string { return nil }
func (strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string {
	return nil
}

// PrepareForCreate drops the status, which can only be written through /status.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	w := obj.(*widget.Widget)
	w.Status, w.Generation = widget.WidgetStatus{}, 1
}

// PrepareForUpdate keeps the status, and increments the generation.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	w, was := obj.(*widget.Widget), old.(*widget.Widget)
	w.Status = was.Status
	if w.Spec != was.Spec {
		w.Generation = was.Generation + 1
	}
}

// Validate checks the rules of the struct tags of widget.WidgetSpec.
func (strategy) Validate(_ context.Context, obj runtime.Object) (errs field.ErrorList) {
	w, spec := obj.(*widget.Widget), field.NewPath("spec")
	if w.Spec.Size < 0 {
		errs = append(errs, field.Invalid(spec.Child("size"), w.Spec.Size, "spec.size in body should be greater than or equal to 0"))
	}
	if w.Spec.Size > 1_000_000 {
		errs = append(errs, field.Invalid(spec.Child("size"), w.Spec.Size, "spec.size in body should be less than or equal to 1000000"))
	}
	if utf8.RuneCountInString(w.Spec.Color) > 32 {
		errs = append(errs, field.TooLong(spec.Child("color"), w.Spec.Color, 32))
	}
	return errs
}

// ValidateUpdate checks the same rules.
func (s strategy) ValidateUpdate(ctx context.Context, obj, _ runtime.Object) field.ErrorList {
	return s.Validate(ctx, obj)
}

// GetResetFields implements rest.ResetFieldsStrategy: a write of a widget does not make its manager own the status.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetting("status")
}

// statusStrategy is the strategy of /status.
type statusStrategy struct{ strategy }

// PrepareForUpdate keeps everything except the status.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	w, was := obj.(*widget.Widget), old.(*widget.Widget)
	managed, version := w.ManagedFields, w.ResourceVersion
	was.ObjectMeta.DeepCopyInto(&w.ObjectMeta)
	w.ManagedFields, w.ResourceVersion, w.Spec = managed, version, was.Spec
}

// ValidateUpdate checks nothing: a status has no rules.
func (statusStrategy) ValidateUpdate(_ context.Context, _, _ runtime.Object) field.ErrorList {
	return nil
}

// GetResetFields implements rest.ResetFieldsStrategy: a write of the status does not make its manager own other fields.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetting("metadata", "spec")
}

func resetting(fields ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range fields {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(groupVersion().String()): set}
}
