package patch

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"sync/atomic"

	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// FieldManagerOptions says whose fields a FieldManager keeps. Scheme and Kind are required.
type FieldManagerOptions struct {
	Scheme *runtime.Scheme
	// Models are those of Scheme; nil makes them, from nothing but the Go types.
	Models *Models
	// Kind is the kind in the version of the requests: what a client applies, and what the entries name.
	Kind schema.GroupVersionKind
	// Subresource is "" for the object itself.
	Subresource string
	// Reset returns the paths, of JSON names, of the fields that such requests never change in a version of the kind, so
	// that they own none of them ("status", and for the subresource status all the others). nil: none.
	Reset func(k *runtime.Kind) [][]string
}

// FieldManager keeps metadata.managedFields, which says who manages which fields of an object, for the requests to one
// kind in one version and subresource: see https://kubernetes.io/docs/reference/using-api/server-side-apply/. Make one
// with [NewFieldManager]. Its methods may be called concurrently, and keep nothing of their arguments.
//
// The objects are in the hub version of the kind, live and new state alike, but for what Apply returns of a kind
// whose versions differ (see runtime.Kind.VersionsDiffer). live is what is stored, nil if nothing is.
// Where the result is that nobody manages anything the entries are empty and not nil, as in a request that asks for that:
// nil entries mean that the request says nothing of them.
type FieldManager struct {
	scheme      *runtime.Scheme
	models      *Models
	kind        *runtime.Kind
	hub         *runtime.Kind
	subresource string
	// Both are made when something is first written.
	reset   func() map[fieldpath.APIVersion]fieldpath.Filter
	manager func() (*managedfields.FieldManager, error)

	tracked atomic.Pointer[tracker] // does most updates, for the model that the kind last had
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
		scheme: o.Scheme, models: o.Models, kind: kind, hub: o.Scheme.Lookup(hub), subresource: o.Subresource,
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

// Show returns what an object of the hub is in the version of the requests. The FieldManager does not change the result, which
// others may share. A nil Show has the scheme convert.
type Show func(obj runtime.Object) (runtime.Object, error)

// shownObject is an object of the hub for apimachinery's field manager, which has it converted by a Show.
type shownObject struct {
	runtime.Object
	kind    *runtime.Kind
	show    Show
	entries []metav1.ManagedFieldsEntry // those that it had at first; apimachinery takes them from the new state meanwhile
}

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (s *shownObject) GetObjectMeta() metav1.Object {
	m, err := meta.Accessor(s.Object)
	if err != nil {
		return nil
	}
	return m
}

// converted returns the object in the version of the requests, with the entries that it has now.
func (s *shownObject) converted() (runtime.Object, error) {
	of, err := meta.Accessor(s.Object)
	if err != nil {
		return nil, err
	}
	entries := of.GetManagedFields()
	if entries == nil && s.entries != nil { // shown as it was, which others have asked for
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

// of returns an object of the hub as one that is converted by the Show, if it has to be.
func (s Show) of(f *FieldManager, obj runtime.Object) runtime.Object {
	if _, err := meta.Accessor(obj); s == nil || f.kind == f.hub || err != nil {
		return obj
	}
	return &shownObject{obj, f.kind, s, entriesOf(obj)}
}

// resetFields makes the filters, by apiVersion, that take the reset fields out of what is owned.
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

// Update records in obj, in place, what manager changes in live by obj. An error says why that could not be found out;
// obj then has live's entries, and may be stored, unless the error is an [*EntriesError].
func (f *FieldManager) Update(live, obj runtime.Object, manager string) (err error) {
	return f.UpdateShown(live, obj, manager, nil)
}

// UpdateShown is Update, by objects that show converts. An [*EntriesError] says that obj must not be stored.
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
		if p := recover(); p != nil { // a type's own conversion or encoding
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

// checkWidth refuses to merge objects that are too wide for it, and for which there are too many entries.
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

// result is the version of what Apply returns. Of a kind without a Go type whose versions differ it is the one of the requests,
// which is what validation is to see: converted it may have more, or less.
func (f *FieldManager) result() *runtime.Kind {
	if f.kind.VersionsDiffer() {
		return f.kind
	}
	return f.hub
}

// Apply merges config, an object of the kind as decoded from JSON with whole numbers as int64, into live as manager's
// intent, and returns the new object: in the hub version, or that of the requests for a kind whose versions differ (see
// runtime.Kind.VersionsDiffer). Conflicts with other managers are an apimachinery StatusError (409) with a cause
// each, unless force takes the fields from them. A config that is not fit to be applied is one with the code 400, or an
// [*Error]; any other error is of live, such as entries that cannot be read.
func (f *FieldManager) Apply(live runtime.Object, config map[string]any, manager string, force bool) (obj runtime.Object, err error) {
	return f.ApplyShown(live, config, manager, force, nil)
}

// ApplyShown is Apply, to an object that show converts.
func (f *FieldManager) ApplyShown(live runtime.Object, config map[string]any, manager string, force bool, show Show) (obj runtime.Object, err error) {
	exists := live != nil
	live = f.begin(live)
	applied := &unstructured.Unstructured{Object: config}
	if err := checkApplied(applied); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			obj, err = nil, fmt.Errorf("applying to %s: %v", f.kind.GVK, p)
		}
	}()
	if applied.GroupVersionKind() == f.kind.GVK { // else refused soon
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
	if u, ok := obj.(*unstructured.Unstructured); ok { // it has what config has, be it null, which is for validation to judge, or 1.0
		if f.kind.VersionsDiffer() {
			keepNulls(u.Object, config)
		}
		if err := codec.Settle(nil, u); err != nil {
			return nil, &Error{Code: http.StatusBadRequest, Message: err.Error()}
		}
	}
	if obj, err = f.scheme.ToVersion(obj, f.result().GVK.GroupVersion()); err != nil { // an empty object stayed as it was
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

// checkLastApplied refuses to apply what has to be compared with a configuration, in live's annotation of kubectl, that is too wide.
func checkLastApplied(live runtime.Object, manager string) error {
	const kubectl, annotation = "kubectl", "kubectl.kubernetes.io/last-applied-configuration"
	m, err := meta.Accessor(live)
	if err != nil || manager != kubectl || textWidth([]byte(m.GetAnnotations()[annotation])) <= maxWidth {
		return nil //nolint:nilerr // apimachinery says so
	}
	return &Error{
		Code:    http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("the configuration in the annotation %s has too many fields to be compared one by one; apply as another field manager, or remove the annotation", annotation),
	}
}

// keepNulls gives an object the nulls of what was applied to it, metadata and lists aside. To find out who has what the result was
// converted to the versions of its managers, perhaps, which drops nulls that may not be.
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

// checkApplied refuses metadata which the accessors of untyped objects take for none.
func checkApplied(applied *unstructured.Unstructured) error {
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
	default:
		return &Error{Code: http.StatusBadRequest, Message: fmt.Sprintf("metadata must be an object, not %T", metadata)}
	}
	return nil
}

// explain blames the configuration for err, unless live cannot be merged with anything.
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

// begin gives a hub object its kind. For nil it makes an empty object in the version of the requests: one of the hub could
// have fields that are not empty in another version.
func (f *FieldManager) begin(obj runtime.Object) runtime.Object {
	kind := f.hub
	if obj == nil {
		kind = f.kind
		obj = kind.New()
	}
	if obj.GetObjectKind().GroupVersionKind() != kind.GVK { // two who share live do not both write
		obj.GetObjectKind().SetGroupVersionKind(kind.GVK)
	}
	return obj
}

// settle makes it known that an object without entries has none on purpose, and gives it times of its own.
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
	if u, ok := in.(*unstructured.Unstructured); ok && c.KindOf(u) == nil { // else it is as it should be
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

// tracker returns the tracker for the model that the kind has now, or nil if its objects need the library.
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
	if t.plan == nil || t.plan.goType != f.kind.Type { // none, or that of another kind of this name
		return nil
	}
	return t
}
