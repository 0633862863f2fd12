package patch

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// FieldManagerOptions are the options of a FieldManager. Scheme and Kind are required.
type FieldManagerOptions struct {
	// Scheme has the kind.
	Scheme *runtime.Scheme
	// Models are the models of the kinds in Scheme. If it is nil, they are made from the Go types only.
	Models *Models
	// Kind is the kind in the version of the requests: the version that clients apply and that the entries name.
	Kind schema.GroupVersionKind
	// Subresource is the name of the subresource, "" for the object itself.
	Subresource string
	// Reset returns the paths, as JSON names, of the fields that requests of this subresource never change in a version of the
	// kind. Managers do not own these fields: for example "status" for the object itself, and every field except "status" for the
	// subresource status. If Reset is nil, there are no such fields.
	Reset func(k *runtime.Kind) [][]string
}

// FieldManager maintains metadata.managedFields, which records the managers of the fields of an object. It is for requests to one
// kind in one version and subresource: see https://kubernetes.io/docs/reference/using-api/server-side-apply/. Use
// [NewFieldManager] to make one. Its methods may be called concurrently, and do not keep their arguments.
//
// Objects are in the hub version of the kind, both live and the new state. The exception is the result of Apply for a kind whose
// versions differ (see runtime.Kind.VersionsDiffer). live is the stored object, nil if there is none. If the result has no
// managers, its managedFields are empty and not nil, as in a request that removes all entries. Nil managedFields mean that the
// request does not have the field.
type FieldManager struct {
	scheme      *runtime.Scheme
	models      *Models
	kind        *runtime.Kind
	hub         *runtime.Kind
	subresource string
	resets      func(k *runtime.Kind) [][]string // FieldManagerOptions.Reset
	// Both are made when they are first needed.
	reset   func() map[fieldpath.APIVersion]fieldpath.Filter
	manager func() (*managedfields.FieldManager, error)

	tracked atomic.Pointer[tracker] // handles most updates, by the last model of the kind
}

// NewFieldManager returns the field manager of a registered kind.
func NewFieldManager(o FieldManagerOptions) (*FieldManager, error) {
	kind := o.Scheme.Lookup(o.Kind)
	if kind == nil {
		return nil, fmt.Errorf("field manager: %s is not in the scheme", o.Kind)
	}
	hub, _ := o.Scheme.Hub(o.Kind.GroupKind())
	if o.Models == nil {
		o.Models = NewModels(o.Scheme)
	}
	f := &FieldManager{
		scheme: o.Scheme, models: o.Models, kind: kind, hub: o.Scheme.Lookup(hub), subresource: o.Subresource, resets: o.Reset,
		reset: sync.OnceValue(func() map[fieldpath.APIVersion]fieldpath.Filter { return resetFields(o) }),
	}
	f.manager = sync.OnceValues(func() (*managedfields.FieldManager, error) {
		m, err := managedfields.NewDefaultFieldManager(o.Models, convertor{o.Scheme}, o.Scheme, o.Scheme,
			o.Kind, f.result().GVK.GroupVersion(), o.Subresource, f.reset())
		if err != nil {
			return nil, fmt.Errorf("field manager of %s: %w", o.Kind, err)
		}
		return m, nil
	})
	return f, nil
}

// Show converts an object of the hub version to the version of the requests. The FieldManager does not change the result, so the
// result may be shared. A nil Show uses the scheme.
type Show func(obj runtime.Object) (runtime.Object, error)

// shownObject is an object of the hub version that is passed to apimachinery's field manager and converted by a Show.
type shownObject struct {
	runtime.Object
	kind    *runtime.Kind
	show    Show
	entries []metav1.ManagedFieldsEntry // original entries; apimachinery takes entries from the new state while it works
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (s *shownObject) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(s.Object)
	if err != nil {
		return nil
	}
	return m
}

// converted returns the object in the version of the requests, with its current entries.
func (s *shownObject) converted() (runtime.Object, error) {
	of, err := meta.Accessor(s.Object)
	if err != nil {
		return nil, err
	}
	entries := of.GetManagedFields()
	if entries == nil && s.entries != nil { // show converts the object with its original entries, so that its result can be shared
		of.SetManagedFields(s.entries)
		defer of.SetManagedFields(nil)
	}
	there, err := s.show(s.Object)
	if err != nil {
		return nil, err
	}
	there = there.DeepCopyObject()
	m, err := meta.Accessor(there)
	if err != nil {
		return nil, err
	}
	m.SetManagedFields(entries)
	there.GetObjectKind().SetGroupVersionKind(s.kind.GVK)
	return there, nil
}

// of returns an object of the hub version as a shownObject, if it has to be converted.
func (s Show) of(f *FieldManager, obj runtime.Object) runtime.Object {
	if _, err := meta.Accessor(obj); s == nil || f.kind == f.hub || err != nil {
		return obj
	}
	return &shownObject{obj, f.kind, s, entriesOf(obj)}
}

// resetFields returns the filters, by apiVersion, that remove the reset fields from the owned fields.
func resetFields(o FieldManagerOptions) map[fieldpath.APIVersion]fieldpath.Filter {
	if o.Reset == nil {
		return nil
	}
	sets := map[fieldpath.APIVersion]*fieldpath.Set{}
	for _, kind := range o.Scheme.Versions(o.Kind.GroupKind()) {
		set := fieldpath.NewSet()
		for _, names := range o.Reset(kind) {
			path := fieldpath.Path{}
			for _, name := range names {
				path = append(path, fieldpath.PathElement{FieldName: &name})
			}
			set.Insert(path)
		}
		sets[fieldpath.APIVersion(kind.GVK.GroupVersion().String())] = set
	}
	return fieldpath.NewExcludeFilterSetMap(sets)
}

// Update records in obj, in place, that manager has made the changes between live and obj. An error is the reason why this was
// not possible; obj then has the entries of live, and may be stored, unless the error is an [*EntriesError].
func (f *FieldManager) Update(live, obj runtime.Object, manager string) (err error) {
	return f.UpdateShown(live, obj, manager, nil)
}

// UpdateShown is like Update, with objects that show converts. If the error is an [*EntriesError], obj must not be stored.
func (f *FieldManager) UpdateShown(live, obj runtime.Object, manager string, show Show) (err error) {
	if live != nil {
		live = f.begin(live)
	}
	f.begin(obj)
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil { // the conversion or encoding of a type panicked
			err = fmt.Errorf("%v", p)
		}
		if err == nil {
			err = checkKept(m.GetManagedFields())
		}
		if err != nil {
			m.SetManagedFields(entriesOf(live))
			return
		}
		settle(m)
	}()
	if f.subresource == "" {
		if err := checkSent(obj, live); err != nil {
			return err
		}
		if err := f.checkVersions(m.GetManagedFields(), entriesOf(live)); err != nil {
			return err
		}
	}
	if t := f.tracker(); t != nil && t.update(live, obj, manager) {
		return nil
	}
	was := show.of(f, live)
	if live == nil {
		live = f.begin(nil)
		was = live
	}
	entries := m.GetManagedFields()
	if len(entries) == 0 || f.subresource != "" {
		entries = entriesOf(live)
	}
	if err := f.checkWidth(entries, live, obj); err != nil {
		return err
	}
	managed, err := f.manager()
	if err == nil {
		_, err = managed.Update(was, show.of(f, obj), manager)
	}
	return err
}

// checkWidth returns an error if there are too many entries, or if the objects are too wide to be merged.
func (f *FieldManager) checkWidth(entries []metav1.ManagedFieldsEntry, objects ...runtime.Object) error {
	if err := checkKept(entries); err != nil {
		return err
	}
	conversions := conversionsFor(entries, f.kind.GVK.GroupVersion().String())
	for _, obj := range objects {
		if err := f.models.checkWidth(obj, conversions); err != nil {
			return err
		}
	}
	return nil
}

// result returns the kind in the version of the result of Apply. For a kind without a Go type whose versions differ, this is the
// version of the requests: validation must see the object as applied, and a conversion could add or remove fields.
func (f *FieldManager) result() *runtime.Kind {
	if f.kind.VersionsDiffer() {
		return f.kind
	}
	return f.hub
}

// Apply merges config into live as the intent of manager, and returns the new object. config is an object of the kind, decoded
// from JSON with whole numbers as int64. The result is in the hub version, or in the version of the requests for a kind whose
// versions differ (see runtime.Kind.VersionsDiffer).
//
// Conflicts with other managers are an apimachinery StatusError (409) with one cause for each conflict, unless force takes the
// fields from these managers. A config that cannot be applied is a StatusError with code 400 or 422, or an [*Error]. Any other error is
// about live, such as entries that cannot be read.
func (f *FieldManager) Apply(live runtime.Object, config map[string]any, manager string, force bool) (obj runtime.Object, err error) {
	return f.ApplyShown(live, config, manager, force, nil)
}

// ApplyShown is like Apply, with a live object that show converts.
func (f *FieldManager) ApplyShown(live runtime.Object, config map[string]any, manager string, force bool, show Show) (obj runtime.Object, err error) {
	exists := live != nil
	live = f.begin(live)
	applied := &unstructured.Unstructured{Object: config}
	defer func() {
		if p := recover(); p != nil {
			obj, err = nil, fmt.Errorf("applying to %s: %v", f.kind.GVK, p)
		}
	}()
	if applied.GroupVersionKind() == f.kind.GVK { // otherwise the library refuses it
		if err := f.checkApplied(applied); err != nil {
			return nil, err
		}
		if err := f.checkWidth(entriesOf(live), live, applied); err != nil {
			return nil, err
		}
		if err := checkLastApplied(live, manager); err != nil {
			return nil, err
		}
	}
	managed, err := f.manager()
	if err != nil {
		return nil, err
	}
	was := live
	if exists {
		was = show.of(f, live)
	}
	if obj, err = managed.Apply(was, applied, manager, force); err != nil {
		return nil, f.explain(live, err)
	}
	if u, ok := obj.(*unstructured.Unstructured); ok { // u may have values of config that validation has to check, such as nulls or 1.0
		if f.kind.VersionsDiffer() {
			keepNulls(u.Object, config)
		}
		f.dropResetNulls(u.Object)
		if err := settleApplied(u, exists); err != nil {
			return nil, err
		}
	}
	if obj, err = f.scheme.ToVersion(obj, f.result().GVK.GroupVersion()); err != nil { // an empty object was not converted
		return nil, f.explain(live, err)
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := checkKept(m.GetManagedFields()); err != nil {
		return nil, err
	}
	settle(m)
	return obj, nil
}

// checkLastApplied returns an error if live's annotation of kubectl has a configuration that is too wide to be compared.
func checkLastApplied(live runtime.Object, manager string) error {
	const kubectl, annotation = "kubectl", "kubectl.kubernetes.io/last-applied-configuration"
	m, err := meta.Accessor(live)
	if err != nil || manager != kubectl || textWidth([]byte(m.GetAnnotations()[annotation])) <= maxWidth {
		return nil //nolint:nilerr // apimachinery reports the error
	}
	return &Error{
		Code:    http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("the configuration in the annotation %s has too many fields to be compared one by one; apply as another field manager, or remove the annotation", annotation),
	}
}

// settleApplied is codec.Settle for the result of an apply. Fields of the metadata that the server sets in any case may be of any
// type: the value in the configuration has no effect.
func settleApplied(u *unstructured.Unstructured, exists bool) error {
	if codec.Settle(nil, u) == nil {
		return nil
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	delete(metadata, "creationTimestamp")
	delete(metadata, "generation")
	if !exists {
		delete(metadata, "deletionTimestamp")
		delete(metadata, "deletionGracePeriodSeconds")
	}
	err := codec.Settle(nil, u)
	if err == nil {
		return nil
	}
	return excerpt.Invalid(u.GroupVersionKind().GroupKind(), u.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata"), metadata, err.Error())})
}

// dropResetNulls removes nulls that requests of the subresource cannot set, such as a status of null, so that they are not judged.
func (f *FieldManager) dropResetNulls(object map[string]any) {
	if f.resets == nil {
		return
	}
	for _, path := range f.resets(f.kind) {
		if len(path) == 1 && object[path[0]] == nil {
			delete(object, path[0])
		}
	}
}

// keepNulls copies the nulls of config into object, except in metadata and lists. apimachinery may have converted the object to
// the versions of other managers, and the conversion drops nulls that are not allowed.
func keepNulls(object, config map[string]any) {
	for name, want := range config {
		have, there := object[name]
		switch want := want.(type) {
		case nil:
			if !there {
				object[name] = nil
			}
		case map[string]any:
			if have, ok := have.(map[string]any); ok && name != "metadata" {
				keepNulls(have, want)
			}
		}
	}
}

// checkApplied returns an error for metadata that the accessors of untyped objects would ignore. In an object without a Go type it
// replaces a creationTimestamp that is no time by null: the server sets the time in any case, and the object could not be converted
// to other versions.
func (f *FieldManager) checkApplied(applied *unstructured.Unstructured) error {
	switch metadata := applied.Object["metadata"].(type) {
	case nil:
	case map[string]any:
		entries, given := metadata["managedFields"]
		if entries != nil {
			return apierrors.NewBadRequest("metadata.managedFields must be nil")
		}
		if given {
			delete(metadata, "managedFields")
		}
		if created, ok := metadata["creationTimestamp"]; ok && f.kind.Untyped() && !isTime(created) {
			metadata["creationTimestamp"] = nil
		}
	default:
		return &Error{Code: http.StatusBadRequest, Message: fmt.Sprintf("metadata must be an object, not %T", metadata)}
	}
	return nil
}

// isTime reports whether a JSON value is a time as metadata has it.
func isTime(v any) bool {
	text, ok := v.(string)
	_, err := time.Parse(time.RFC3339, text)
	return ok && err == nil
}

// explain returns err as an error of the configuration, unless live cannot be merged.
func (f *FieldManager) explain(live runtime.Object, err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) || managedfields.ValidateManagedFields(entriesOf(live)) != nil {
		return err
	}
	shown, bad := convertor{f.scheme}.ConvertToVersion(live, f.kind.GVK.GroupVersion())
	if bad == nil {
		_, bad = f.models.ObjectToTyped(shown, typed.AllowDuplicates)
	}
	var unmergeable *Error
	switch {
	case errors.As(bad, &unmergeable):
		return &Error{Code: unmergeable.Code, Message: unmergeable.Message}
	case bad != nil:
		return err
	}
	return &Error{Code: http.StatusBadRequest, Message: err.Error()}
}

// begin sets the kind of a hub object. If obj is nil, begin returns an empty object in the version of the requests, because an
// empty object of the hub version could have fields in another version.
func (f *FieldManager) begin(obj runtime.Object) runtime.Object {
	kind := f.hub
	if obj == nil {
		kind = f.kind
		obj = kind.New()
	}
	if obj.GetObjectKind().GroupVersionKind() != kind.GVK { // concurrent callers may share live, so it is written only if necessary
		obj.GetObjectKind().SetGroupVersionKind(kind.GVK)
	}
	return obj
}

// settle makes the entries of an object without managers empty and not nil, and copies the times of the entries.
func settle(m metav1.Object) {
	entries := m.GetManagedFields()
	if len(entries) == 0 {
		m.SetManagedFields([]metav1.ManagedFieldsEntry{})
	}
	for i, e := range entries {
		entries[i].Time = e.Time.DeepCopy()
	}
}

func (f *FieldManager) newTracker(known *model) *tracker {
	t := &tracker{
		model: known, plan: known.plan(), apiVersion: f.kind.GVK.GroupVersion().String(), subresource: f.subresource,
		stripped: fieldpath.NewSet(
			fieldpath.MakePathOrDie("apiVersion"), fieldpath.MakePathOrDie("kind"), fieldpath.MakePathOrDie("metadata"),
			fieldpath.MakePathOrDie("metadata", "name"), fieldpath.MakePathOrDie("metadata", "namespace"),
			fieldpath.MakePathOrDie("metadata", "creationTimestamp"), fieldpath.MakePathOrDie("metadata", "selfLink"),
			fieldpath.MakePathOrDie("metadata", "uid"), fieldpath.MakePathOrDie("metadata", "clusterName"),
			fieldpath.MakePathOrDie("metadata", "generation"), fieldpath.MakePathOrDie("metadata", "managedFields"),
			fieldpath.MakePathOrDie("metadata", "resourceVersion"),
		),
		nothing: reflect.ValueOf(f.begin(nil)),
	}
	t.filter = f.reset()[fieldpath.APIVersion(t.apiVersion)]
	t.forget()
	return t
}

// ConvertToVersion implements apimachinery's ObjectConvertor.
func (c convertor) ConvertToVersion(in runtime.Object, target apiruntime.GroupVersioner) (runtime.Object, error) {
	if s, ok := in.(*shownObject); ok {
		if gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{s.kind.GVK}); ok && gvk == s.kind.GVK {
			return s.converted()
		}
		in = s.Object
	}
	if u, ok := in.(*unstructured.Unstructured); ok && c.KindOf(u) == nil { // otherwise its kind is untyped
		var err error
		if in, err = c.decode(u); err != nil {
			return nil, err
		}
	}
	if k := c.KindOf(in); k != nil && in.GetObjectKind().GroupVersionKind() == k.GVK {
		if gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{k.GVK}); ok && gvk == k.GVK {
			return in, nil
		}
	}
	return c.Scheme.ConvertToVersion(in, target)
}

// tracker returns the tracker for the current model of the kind, or nil if the library must handle its objects.
func (f *FieldManager) tracker() *tracker {
	if f.kind != f.hub || f.kind.Untyped() {
		return nil
	}
	known, err := f.models.of(f.kind.GVK)
	if err != nil {
		return nil
	}
	t := f.tracked.Load()
	if t == nil || t.model != known {
		t = f.newTracker(known)
		f.tracked.Store(t)
	}
	if t.plan == nil || t.plan.goType != f.kind.Type { // no plan, or the plan of another kind with this name
		return nil
	}
	return t
}
