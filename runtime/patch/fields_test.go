package patch_test

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/runtime/patch"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

type (
	boatSpec struct {
		Name  string            `json:"name,omitempty"`
		Size  int32             `json:"size,omitempty"`
		Crew  []boatSailor      `json:"crew,omitempty" listType:"map" listMapKey:"id"`
		Flags []string          `json:"flags,omitempty" listType:"set"`
		Stops []string          `json:"stops,omitempty"`
		Notes map[string]string `json:"notes,omitempty"`
		Paint map[string]string `json:"paint,omitempty" mapType:"atomic"`
	}
	boatSailor struct {
		ID   int64  `json:"id"`
		Rank string `json:"rank,omitempty"`
	}
	boatStatus struct {
		State string `json:"state,omitempty"`
	}
	boat = runtime.Resource[boatSpec, boatStatus]
	// The older version has the name of the boat in another field.
	oldBoatSpec struct {
		Title string            `json:"title,omitempty"`
		Size  int32             `json:"size,omitempty"`
		Crew  []boatSailor      `json:"crew,omitempty" listType:"map" listMapKey:"id"`
		Flags []string          `json:"flags,omitempty" listType:"set"`
		Stops []string          `json:"stops,omitempty"`
		Notes map[string]string `json:"notes,omitempty"`
		Paint map[string]string `json:"paint,omitempty" mapType:"atomic"`
	}
	oldBoat = runtime.Resource[oldBoatSpec, boatStatus]
)

var (
	boatKind    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}
	oldBoatKind = schema.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Boat"}
)

// boats has both versions of the kind. A boat of size 13 cannot be converted, and one of size 14 makes the conversion panic.
func boats(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, err := range []error{
		runtime.Register[*boat](s, boatKind, runtime.KindOptions[*boat]{Hub: true}),
		runtime.Register[*oldBoat](s, oldBoatKind, runtime.KindOptions[*oldBoat]{}),
		runtime.AddConversion(s,
			func(in *oldBoat, out *boat) error {
				out.Spec = boatSpec{in.Spec.Title, in.Spec.Size, in.Spec.Crew, in.Spec.Flags, in.Spec.Stops, in.Spec.Notes, in.Spec.Paint}
				out.Status = in.Status
				return refuseSize(in.Spec.Size)
			},
			func(in *boat, out *oldBoat) error {
				out.Spec = oldBoatSpec{in.Spec.Name, in.Spec.Size, in.Spec.Crew, in.Spec.Flags, in.Spec.Stops, in.Spec.Notes, in.Spec.Paint}
				out.Status = in.Status
				return refuseSize(in.Spec.Size)
			}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func refuseSize(size int32) error {
	switch size {
	case 13:
		return errors.New("an unlucky boat")
	case 14:
		panic("the boat sinks")
	}
	return nil
}

func fieldManager(t testing.TB, o patch.FieldManagerOptions) *patch.FieldManager {
	t.Helper()
	if o.Scheme == nil {
		o.Scheme = boats(t)
	}
	if o.Kind.Empty() {
		o.Kind = boatKind
	}
	f, err := patch.NewFieldManager(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// stored returns a boat as the storage returns it.
func stored(spec boatSpec, entries ...metav1.ManagedFieldsEntry) *boat {
	b := &boat{Spec: spec}
	b.Name, b.Namespace, b.UID, b.ManagedFields = "b", "default", "u", entries
	return b
}

// applied returns a configuration with the given JSON of a spec.
func applied(t testing.TB, spec string) map[string]any {
	t.Helper()
	return configuration(t, `{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"b"},"spec":`+spec+`}`)
}

func configuration(t testing.TB, text string) map[string]any {
	t.Helper()
	config := map[string]any{}
	if _, err := codec.Unmarshal([]byte(text), &config, codec.Ignore); err != nil {
		t.Fatal(err)
	}
	return config
}

// owners returns the entries as "manager operation version subresource fields", without times.
func owners(t testing.TB, obj any) string {
	t.Helper()
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	if err := managedfields.ValidateManagedFields(m.GetManagedFields()); err != nil {
		t.Error(err)
	}
	var lines []string
	for _, e := range m.GetManagedFields() {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Manager, e.Operation, e.APIVersion, e.Subresource))+" "+e.FieldsV1.GetRawString())
	}
	return strings.Join(lines, "\n")
}

func wantOwners(t *testing.T, obj any, lines ...string) {
	t.Helper()
	if got, want := owners(t, obj), strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// entry returns an entry that was made earlier.
func entry(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	at := metav1.Unix(1000, 0)
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "example.com/v1", Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(fields),
	}
}

const (
	apply  = metav1.ManagedFieldsOperationApply
	update = metav1.ManagedFieldsOperationUpdate
)

func mustApply(t testing.TB, f *patch.FieldManager, live runtime.Object, config map[string]any, manager string, force bool) *boat {
	t.Helper()
	obj, err := f.Apply(live, config, manager, force)
	if err != nil {
		t.Fatal(err)
	}
	return obj.(*boat)
}

func TestFieldManagerUpdate(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	b := stored(boatSpec{Name: "n", Crew: []boatSailor{{1, "mate"}}, Flags: []string{"red"}, Stops: []string{"a", "b"}, Paint: map[string]string{"hull": "blue"}})
	b.UID = ""
	b.Labels = map[string]string{"l": "1"}
	if err := f.Update(nil, b, "creator"); err != nil {
		t.Fatal(err)
	}
	const first = `creator Update example.com/v1 {"f:metadata":{"f:labels":{".":{},"f:l":{}}},"f:spec":{"f:crew":{".":{},"k:{\"id\":1}":{".":{},"f:id":{},"f:rank":{}}},"f:flags":{".":{},"v:\"red\"":{}},"f:name":{},"f:paint":{},"f:stops":{}}}`
	wantOwners(t, b, first)
	if at := b.ManagedFields[0].Time; at == nil || time.Since(at.Time).Abs() > time.Hour {
		t.Error(at)
	}

	b.UID = "u"
	next := b.DeepCopyObject().(*boat)
	next.ManagedFields = nil // like a client that does not have the field
	next.Spec.Size, next.Spec.Stops = 3, []string{"b"}
	if err := f.Update(b, next, "editor"); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, next,
		strings.Replace(first, `,"f:stops":{}`, "", 1),
		`editor Update example.com/v1 {"f:spec":{"f:size":{},"f:stops":{}}}`)

	gone := next.DeepCopyObject().(*boat)
	gone.Spec = boatSpec{Name: "n"}
	if err := f.Update(next, gone, "remover"); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, gone, `creator Update example.com/v1 {"f:metadata":{"f:labels":{".":{},"f:l":{}}},"f:spec":{"f:name":{}}}`)
}

func TestFieldManagerNoOpKeepsTimes(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	live := stored(boatSpec{Size: 1}, entry("a", apply, `{"f:spec":{"f:size":{}}}`))
	same := live.DeepCopyObject().(*boat)
	if err := f.Update(live, same, "other"); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(same.ManagedFields, live.ManagedFields) {
		t.Errorf("%v", same.ManagedFields)
	}
}

func TestFieldManagerApply(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	b := mustApply(t, f, nil, applied(t, `{"name":"n","size":1,"crew":[{"id":1,"rank":"mate"},{"id":2}],"flags":["red"]}`), "a", false)
	if b.Name != "b" || b.Spec.Name != "n" || len(b.Spec.Crew) != 2 || b.GroupVersionKind() != boatKind {
		t.Errorf("%+v", b)
	}
	const a = `a Apply example.com/v1 {"f:spec":{"f:crew":{"k:{\"id\":1}":{".":{},"f:id":{},"f:rank":{}},"k:{\"id\":2}":{".":{},"f:id":{}}},"f:flags":{"v:\"red\"":{}},"f:name":{},"f:size":{}}}`
	wantOwners(t, b, a)

	t.Run("conflict", func(t *testing.T) {
		obj, err := f.Apply(b, applied(t, `{"size":2,"crew":[{"id":1,"rank":"cook"}]}`), "c", false)
		if !apierrors.IsConflict(err) || obj != nil {
			t.Fatal(obj, err)
		}
		var status apierrors.APIStatus
		errors.As(err, &status)
		var fields []string
		for _, cause := range status.Status().Details.Causes {
			if cause.Type != metav1.CauseTypeFieldManagerConflict || !strings.Contains(cause.Message, `conflict with "a"`) {
				t.Error(cause)
			}
			fields = append(fields, cause.Field)
		}
		if want := []string{".spec.size", ".spec.crew[id=1].rank"}; !slices.Equal(fields, want) {
			t.Errorf("%v, want %v", fields, want)
		}
	})
	t.Run("force", func(t *testing.T) {
		forced := mustApply(t, f, b, applied(t, `{"size":2}`), "c", true)
		if forced.Spec.Size != 2 {
			t.Error(forced.Spec.Size)
		}
		wantOwners(t, forced, strings.Replace(a, `,"f:size":{}`, "", 1), `c Apply example.com/v1 {"f:spec":{"f:size":{}}}`)
	})
	t.Run("shared", func(t *testing.T) {
		shared := mustApply(t, f, b, applied(t, `{"size":1,"flags":["red","blue"]}`), "c", false)
		wantOwners(t, shared, a, `c Apply example.com/v1 {"f:spec":{"f:flags":{"v:\"blue\"":{},"v:\"red\"":{}},"f:size":{}}}`)
		// A field that both own remains when one manager gives it up; a field of only this manager is removed.
		left := mustApply(t, f, shared, applied(t, `{"name":"n"}`), "a", false)
		if want := (boatSpec{Name: "n", Size: 1, Flags: []string{"red", "blue"}}); !reflect.DeepEqual(left.Spec, want) {
			t.Errorf("%+v", left.Spec)
		}
		wantOwners(t, left, `a Apply example.com/v1 {"f:spec":{"f:name":{}}}`, `c Apply example.com/v1 {"f:spec":{"f:flags":{"v:\"blue\"":{},"v:\"red\"":{}},"f:size":{}}}`)
	})
	t.Run("nothing", func(t *testing.T) {
		none := mustApply(t, f, b, configuration(t, `{"apiVersion":"example.com/v1","kind":"Boat"}`), "a", false)
		if !reflect.DeepEqual(none.Spec, boatSpec{}) || none.ManagedFields == nil || len(none.ManagedFields) != 0 {
			t.Errorf("%+v", none)
		}
	})
}

// TestFieldManagerRefuses has configurations that cannot be applied to any stored object.
func TestFieldManagerRefuses(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	for _, live := range []runtime.Object{nil, stored(boatSpec{Size: 1, Crew: []boatSailor{{1, ""}, {1, ""}}}, entry("a", apply, `{"f:spec":{"f:size":{}}}`))} {
		for _, config := range []string{
			`{}`,
			`{"apiVersion":"example.com/v1"}`,
			`{"apiVersion":"example.com/v1beta1","kind":"Boat"}`,
			`{"apiVersion":"example.com/v1","kind":"Ship"}`,
			`{"apiVersion":1,"kind":"Boat"}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":[]}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":"x"}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"managedFields":[]}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"managedFields":[{}]}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"managedFields":5}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"labels":5}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"labels":{"a":5}}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":5}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"creationTimestamp":"yesterday"}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":[]}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"size":"x"}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"size":1.5}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"size":3000000000}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"unknown":1}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"crew":[{"id":1},{"id":1}]}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"crew":[null]}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"crew":[{"id":{}}]}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"crew":{"id":1}}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"flags":["a","a"]}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"flags":[null]}}`,
			`{"apiVersion":"example.com/v1","kind":"Boat","spec":{"flags":[[]]}}`,
		} {
			obj, err := f.Apply(live, configuration(t, config), "m", true)
			if code := codeOf(err); code != http.StatusBadRequest || obj != nil {
				t.Errorf("%s: %d %v %v", config, code, obj, err)
			}
		}
	}
}

func codeOf(err error) int {
	var status apierrors.APIStatus
	var own *patch.Error
	switch {
	case errors.As(err, &status):
		return int(status.Status().Code)
	case errors.As(err, &own):
		return own.Code
	}
	return 0
}

// TestFieldManagerBrokenEntries has stored entries that cannot be decoded. Updates start with new entries; an apply is refused,
// and the error is not a fault of the client.
func TestFieldManagerBrokenEntries(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	for name, e := range map[string]metav1.ManagedFieldsEntry{
		"no fields":   {Manager: "a", Operation: update, APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"x":{}}`)},
		"no JSON":     {Manager: "a", Operation: update, APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{`)},
		"no object":   {Manager: "a", Operation: update, APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`[]`)},
		"a bad key":   {Manager: "a", Operation: update, APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"k:{":{}}`)},
		"a bad index": {Manager: "a", Operation: update, APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"i:x":{}}`)},
		"operation":   {Manager: "a", Operation: "Delete", APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{}`)},
		"type":        {Manager: "a", Operation: update, APIVersion: "example.com/v1", FieldsType: "FieldsV9", FieldsV1: metav1.NewFieldsV1(`{}`)},
		"no version":  {Manager: "a", Operation: update, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			live := stored(boatSpec{Size: 1}, e)
			next := stored(boatSpec{Size: 2})
			if err := f.Update(live, next, "m"); err != nil {
				t.Error(err)
			}
			if next.ManagedFields == nil || len(next.ManagedFields) != 0 {
				t.Errorf("%v", next.ManagedFields)
			}
			obj, err := f.Apply(live, applied(t, `{"size":3}`), "m", true)
			if err == nil || codeOf(err) != 0 || obj != nil || !strings.Contains(err.Error(), "managed fields") {
				t.Errorf("%v %v", obj, err)
			}
			// The entries of the request are broken, and the stored entries are kept.
			fine := stored(boatSpec{Size: 1}, entry("a", apply, `{"f:spec":{"f:size":{}}}`))
			next = stored(boatSpec{Size: 2}, e)
			if err := f.Update(fine, next, "m"); err != nil {
				t.Error(err)
			}
			wantOwners(t, next, `m Update example.com/v1 {"f:spec":{"f:size":{}}}`)
		})
	}
}

// TestFieldManagerForeignEntries has entries that can be decoded, of versions that are not served or that are invalid.
func TestFieldManagerForeignEntries(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	for version, stays := range map[string]bool{"example.com/v9": false, "other.example.com/v1": false, "v1": false, "a/b/c": true} {
		foreign := entry("f", update, `{"f:spec":{"f:size":{}}}`)
		foreign.APIVersion = version
		live := stored(boatSpec{Size: 1}, foreign, entry("a", apply, `{"f:spec":{"f:name":{}}}`))
		next := stored(boatSpec{Size: 2})
		err := f.Update(live, next, "m")
		if stays != (err != nil) {
			t.Errorf("%s: %v", version, err)
		}
		if err := managedfields.ValidateManagedFields(next.ManagedFields); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if got := strings.Contains(owners(t, next), "f Update"); got != stays {
			t.Errorf("%s: %s", version, owners(t, next))
		}
		if obj, err := f.Apply(live, applied(t, `{"stops":["a"]}`), "b", false); stays != (err != nil) || stays && obj != nil {
			t.Errorf("%s: %v", version, err)
		}
	}
}

func TestFieldManagerReset(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{"empty": {}, "an empty entry": {{}}} {
		live := stored(boatSpec{Size: 1}, entry("a", apply, `{"f:spec":{"f:size":{}}}`))
		next := stored(boatSpec{Size: 2})
		next.ManagedFields = entries
		if err := f.Update(live, next, "m"); err != nil {
			t.Fatal(err)
		}
		if next.ManagedFields == nil || len(next.ManagedFields) != 0 {
			t.Errorf("%s: %v", name, next.ManagedFields)
		}
		// After that there are no entries until a client applies; then all other fields belong to one manager.
		after := stored(boatSpec{Size: 3}, next.ManagedFields...)
		if err := f.Update(next, after, "m"); err != nil || len(after.ManagedFields) != 0 {
			t.Errorf("%s: %v %v", name, err, after.ManagedFields)
		}
		first := mustApply(t, f, after, applied(t, `{"name":"n"}`), "a", false)
		wantOwners(t, first, `a Apply example.com/v1 {"f:spec":{"f:name":{}}}`, `before-first-apply Update example.com/v1 {"f:spec":{"f:size":{}}}`)
	}
}

func TestFieldManagerCap(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	live := stored(boatSpec{})
	live.UID = ""
	if err := f.Update(nil, live, "creator"); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		live.UID = "u"
		next := live.DeepCopyObject().(*boat)
		if next.Spec.Notes == nil {
			next.Spec.Notes = map[string]string{}
		}
		next.Spec.Notes[fmt.Sprint(i)] = "x"
		if i == 0 {
			next.UID, live.UID = "", "" // a new object without fields has no managers
		}
		if err := f.Update(live, next, fmt.Sprintf("m%02d", i)); err != nil {
			t.Fatal(err)
		}
		live = next
		for j := range live.ManagedFields {
			at := metav1.Unix(int64(1000+j), 0)
			live.ManagedFields[j].Time = &at
		}
	}
	if len(live.ManagedFields) != 10 || !strings.HasPrefix(owners(t, live), `ancient-changes Update example.com/v1 {"f:spec":{"f:notes":{".":{},"f:0":{},"f:1":{},"f:2":{}}}}`+"\nm03 ") {
		t.Errorf("%d entries\n%s", len(live.ManagedFields), owners(t, live))
	}
}

func TestFieldManagerKubectl(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	const last = "kubectl.kubernetes.io/last-applied-configuration"
	live := stored(boatSpec{Size: 1, Name: "n"}, entry("kubectl-client-side-apply", update, `{"f:metadata":{"f:annotations":{".":{},"f:`+last+`":{}}},"f:spec":{"f:name":{},"f:size":{}}}`))
	live.Annotations = map[string]string{last: `{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"b"},"spec":{"size":1,"name":"other"}}`}
	b := mustApply(t, f, live, applied(t, `{"size":2}`), "kubectl", false)
	if b.Spec.Size != 2 || !strings.Contains(b.Annotations[last], `"size":2`) {
		t.Errorf("%+v", b)
	}
	if _, err := f.Apply(live, applied(t, `{"name":"m"}`), "kubectl", false); !apierrors.IsConflict(err) {
		t.Errorf("the name was changed by another: %v", err)
	}
	if _, err := f.Apply(live, applied(t, `{"size":2}`), "me", false); !apierrors.IsConflict(err) {
		t.Error(err)
	}
	for _, text := range []string{"{", "null", "[]", `{"apiVersion":"example.com/v1"}`, `{"apiVersion":"example.com/v1","kind":"Boat","metadata":5}`, `{"apiVersion":"example.com/v1","kind":"Boat","spec":{"crew":[{}]}}`, `{"kind":"BoatList","apiVersion":"example.com/v1","items":[]}`} {
		live.Annotations[last] = text
		if _, err := f.Apply(live, applied(t, `{"size":2}`), "kubectl", false); !apierrors.IsConflict(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestFieldManagerSubresource(t *testing.T) {
	reset := func(k *runtime.Kind) [][]string { return [][]string{{"metadata"}, {"spec"}} }
	f := fieldManager(t, patch.FieldManagerOptions{Subresource: "status", Reset: reset})
	live := stored(boatSpec{Size: 1}, entry("a", apply, `{"f:spec":{"f:size":{}}}`))
	next := live.DeepCopyObject().(*boat)
	next.Spec.Size, next.Status.State, next.Labels = 2, "afloat", map[string]string{"l": "1"}
	next.ManagedFields = []metav1.ManagedFieldsEntry{} // a subresource cannot set them
	if err := f.Update(live, next, "m"); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, next, `a Apply example.com/v1 {"f:spec":{"f:size":{}}}`, `m Update example.com/v1 status {"f:status":{"f:state":{}}}`)
	b := mustApply(t, f, live, configuration(t, `{"apiVersion":"example.com/v1","kind":"Boat","spec":{"size":5},"status":{"state":"afloat"}}`), "a", true)
	wantOwners(t, b, `a Apply example.com/v1 {"f:spec":{"f:size":{}}}`, `a Apply example.com/v1 status {"f:status":{"f:state":{}}}`)

	main := fieldManager(t, patch.FieldManagerOptions{Reset: func(k *runtime.Kind) [][]string { return [][]string{{"status"}} }})
	b = mustApply(t, main, nil, configuration(t, `{"apiVersion":"example.com/v1","kind":"Boat","spec":{"size":5},"status":{"state":"afloat"}}`), "a", true)
	wantOwners(t, b, `a Apply example.com/v1 {"f:spec":{"f:size":{}}}`)
}

// TestFieldManagerVersions applies and updates in an older version an object that is managed in another version.
func TestFieldManagerVersions(t *testing.T) {
	s := boats(t)
	models := patch.NewModels(s)
	old := fieldManager(t, patch.FieldManagerOptions{Scheme: s, Models: models, Kind: oldBoatKind})
	young := fieldManager(t, patch.FieldManagerOptions{Scheme: s, Models: models})
	b := mustApply(t, old, nil, configuration(t, `{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"b"},"spec":{"title":"t","flags":["red"]}}`), "a", false)
	if b.Spec.Name != "t" || b.GroupVersionKind() != boatKind {
		t.Errorf("%+v", b)
	}
	const a = `a Apply example.com/v1beta1 {"f:spec":{"f:flags":{"v:\"red\"":{}},"f:title":{}}}`
	wantOwners(t, b, a)
	if _, err := young.Apply(b, applied(t, `{"name":"u"}`), "c", false); !apierrors.IsConflict(err) || !strings.HasSuffix(err.Error(), `conflict with "a": .spec.title`) {
		t.Errorf("one field, in two versions: %v", err)
	}
	forced := mustApply(t, young, b, applied(t, `{"name":"u"}`), "c", true)
	wantOwners(t, forced, `a Apply example.com/v1beta1 {"f:spec":{"f:flags":{"v:\"red\"":{}}}}`, `c Apply example.com/v1 {"f:spec":{"f:name":{}}}`)
	// The same manager in another version: the intents are one.
	moved := mustApply(t, young, b, applied(t, `{"flags":["blue"]}`), "a", false)
	if moved.Spec.Name != "" || !slices.Equal(moved.Spec.Flags, []string{"blue"}) {
		t.Errorf("%+v", moved.Spec)
	}
	wantOwners(t, moved, `a Apply example.com/v1 {"f:spec":{"f:flags":{"v:\"blue\"":{}}}}`)

	next := b.DeepCopyObject().(*boat)
	next.UID, b.UID = "u", "u"
	next.Spec.Size = 4
	if err := old.Update(b, next, "m"); err != nil {
		t.Fatal(err)
	}
	wantOwners(t, next, a, `m Update example.com/v1beta1 {"f:spec":{"f:size":{}}}`)
}

// TestFieldManagerConversionFails checks that a failing conversion does not fail an update, but fails an apply, and that the
// panic of a conversion does not reach the caller.
func TestFieldManagerConversionFails(t *testing.T) {
	old := fieldManager(t, patch.FieldManagerOptions{Kind: oldBoatKind})
	for _, size := range []int32{13, 14} {
		entries := entry("a", apply, `{"f:spec":{"f:title":{}}}`)
		entries.APIVersion = "example.com/v1beta1"
		fine, bad := stored(boatSpec{Size: 1}, entries), stored(boatSpec{Size: size}, entries)
		next := bad.DeepCopyObject().(*boat)
		next.ManagedFields = nil
		if err := old.Update(fine, next, "m"); err == nil || !reflect.DeepEqual(next.ManagedFields, fine.ManagedFields) || next.Spec.Size != size {
			t.Errorf("%v %v", err, next)
		}
		next = fine.DeepCopyObject().(*boat)
		next.ManagedFields = nil
		if err := old.Update(bad, next, "m"); err == nil || !reflect.DeepEqual(next.ManagedFields, bad.ManagedFields) {
			t.Errorf("%v %v", err, next)
		}
		config := `{"apiVersion":"example.com/v1beta1","kind":"Boat","metadata":{"name":"b"},"spec":{"size":%d}}`
		if obj, err := old.Apply(bad, configuration(t, fmt.Sprintf(config, 2)), "m", true); err == nil || obj != nil || codeOf(err) != 0 {
			t.Errorf("%v %v", obj, err)
		}
		if obj, err := old.Apply(fine, configuration(t, fmt.Sprintf(config, size)), "m", true); err == nil || obj != nil || codeOf(err) != http.StatusBadRequest {
			t.Errorf("%v %v", obj, err)
		}
	}
}

// TestFieldManagerKeepsInputs checks that arguments are not changed, except for the kind and the entries of an updated object,
// and that results share nothing with them.
func TestFieldManagerKeepsInputs(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	for _, manager := range []string{"m", "kubectl"} {
		live := stored(boatSpec{Size: 1, Crew: []boatSailor{{1, "mate"}}, Notes: map[string]string{"a": "b"}, Stops: []string{"x"}}, entry("a", apply, `{"f:spec":{"f:size":{}}}`))
		live.SetGroupVersionKind(boatKind)
		live.Labels = map[string]string{"l": "1"}
		live.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": `{"apiVersion":"example.com/v1","kind":"Boat","spec":{"size":1}}`}
		config := configuration(t, `{"apiVersion":"example.com/v1","kind":"Boat","metadata":{"name":"b","labels":{"k":"v"}},"spec":{"size":2,"stops":["y"],"notes":{"c":"d"},"crew":[{"id":2}]}}`)
		liveWas, configWas := live.DeepCopyObject(), runtime.DeepCopy(config)
		b := mustApply(t, f, live, config, manager, true)
		empty := mustApply(t, f, live, configuration(t, `{"apiVersion":"example.com/v1","kind":"Boat"}`), manager, true)
		for _, out := range []*boat{b, empty} {
			out.Labels["l"], out.Spec.Notes["a"], out.Spec.Stops[0], out.Spec.Crew[0].Rank = "changed", "changed", "changed", "changed"
			for i := range out.ManagedFields {
				out.ManagedFields[i].FieldsV1.SetRawString("x")
				out.ManagedFields[i].Time.Time = time.Unix(5, 0)
			}
		}
		if !reflect.DeepEqual(live, liveWas) {
			t.Errorf("%s: live\n%+v\nwas\n%+v", manager, live, liveWas)
		}
		if !reflect.DeepEqual(config, configWas) {
			t.Errorf("%s: the configuration\n%+v\nwas\n%+v", manager, config, configWas)
		}
		next := live.DeepCopyObject().(*boat)
		next.Spec.Size = 7
		if err := f.Update(live, next, manager); err != nil {
			t.Fatal(err)
		}
		for i := range next.ManagedFields {
			next.ManagedFields[i].FieldsV1.SetRawString("x")
			next.ManagedFields[i].Time.Time = time.Unix(6, 0)
		}
		if !reflect.DeepEqual(live, liveWas) {
			t.Errorf("%s: live after an update\n%+v\nwas\n%+v", manager, live, liveWas)
		}
	}
}

func TestFieldManagerConcurrently(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	old := fieldManager(t, patch.FieldManagerOptions{Kind: oldBoatKind})
	live := stored(boatSpec{Size: 1, Crew: []boatSailor{{1, ""}}}, entry("a", apply, `{"f:spec":{"f:size":{}}}`))
	live.SetGroupVersionKind(boatKind)
	config := applied(t, `{"size":2,"crew":[{"id":2}]}`)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				b, err := f.Apply(live, config, fmt.Sprint("m", i), true)
				if err != nil || b.(*boat).Spec.Size != 2 {
					t.Error(b, err)
				}
				next := stored(boatSpec{Size: int32(i)})
				for _, m := range []*patch.FieldManager{f, old} {
					if err := m.Update(live, next, "u"); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestNewFieldManagerRefuses(t *testing.T) {
	if f, err := patch.NewFieldManager(patch.FieldManagerOptions{Scheme: boats(t), Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ship"}}); err == nil || f != nil {
		t.Error(f, err)
	}
}

// TestFieldManagerBounds checks that an object with very many members is no longer tracked, and cannot be applied.
func TestFieldManagerBounds(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{})
	live := stored(boatSpec{Size: 1}, entry("a", apply, `{"f:spec":{"f:size":{}}}`))
	notes, items := map[string]string{}, map[string]any{}
	for i := range 3 * patch.MaxMembers {
		notes[fmt.Sprint(i)], items[fmt.Sprint(i)] = "", ""
	}
	next := stored(boatSpec{Notes: notes})
	if err := f.Update(live, next, "m"); codeOf(err) != http.StatusRequestEntityTooLarge {
		t.Errorf("updated: %v", err)
	}
	config := applied(t, `{}`)
	config["spec"] = map[string]any{"notes": items}
	if obj, err := f.Apply(live, config, "m", true); codeOf(err) != http.StatusRequestEntityTooLarge || obj != nil {
		t.Errorf("applied: %v", err)
	}
	config["spec"] = map[string]any{"paint": items} // is atomic
	if _, err := f.Apply(live, config, "m", true); err != nil {
		t.Errorf("an atomic map: %v", err)
	}
}
