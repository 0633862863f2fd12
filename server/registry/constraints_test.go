package registry_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// RuledSpec is the spec of the hub, with rules of its own.
type RuledSpec struct {
	Size     int32    `json:"size" minimum:"1" maximum:"10"`
	Replicas int32    `json:"replicas" maximum:"5"`
	Color    string   `json:"color,omitempty" default:"red"`
	Owner    string   `json:"owner,omitempty" immutable:"true"`
	Names    []string `json:"names,omitempty"`
}

type RuledStatus struct {
	Phase    string `json:"phase,omitempty" required:"true" enum:"Up,Down"`
	Replicas int32  `json:"replicas,omitempty" maximum:"5"`
}

type Ruled = runtime.Resource[RuledSpec, RuledStatus]

// OldRuledSpec is the spec of an older version. It has stricter rules for colors, and the same message about the size.
type OldRuledSpec struct {
	Size  int32  `json:"size" minimum:"1" maximum:"10"`
	Color string `json:"color,omitempty" enum:"red,green,broken"`
}

type OldRuled = runtime.Resource[OldRuledSpec, struct{}]

var (
	ruledKind = schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Ruled"}
	oldKind   = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Ruled"}
)

type ruledFixture struct {
	t     *testing.T
	reg   *registry.Registry
	typed *registry.Typed[*Ruled]
	store *storage.Store
}

func setupRuled(t *testing.T, s registry.Strategy[*Ruled]) *ruledFixture {
	t.Helper()
	backend := memory.New(memory.Options{})
	t.Cleanup(func() { must(t, backend.Close()) })
	scheme := runtime.NewScheme()
	must(t, runtime.Register[*Ruled](scheme, ruledKind, runtime.KindOptions[*Ruled]{}))
	must(t, runtime.Register[*OldRuled](scheme, oldKind, runtime.KindOptions[*OldRuled]{}))
	must(t, runtime.AddConversion(scheme, func(in *OldRuled, out *Ruled) error {
		out.Spec.Size, out.Spec.Color = in.Spec.Size, in.Spec.Color
		return nil
	}, func(in *Ruled, out *OldRuled) error {
		if in.Spec.Color == "broken" {
			return errors.New("no such color")
		}
		out.Spec.Size, out.Spec.Color = in.Spec.Size, in.Spec.Color
		return nil
	}))
	f := &ruledFixture{t: t}
	encoder, err := codec.NewTyped(scheme, ruledKind)
	must(t, err)
	f.store, err = storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/example.com/ruleds", Codec: encoder, ReadWait: time.Millisecond})
	must(t, err)
	f.reg, err = registry.New(registry.Options{
		Scheme: scheme, Kind: ruledKind, Resource: schema.GroupResource{Group: "example.com", Resource: "ruleds"},
		Storage: f.store, Strategy: registry.Erase(s),
	})
	must(t, err)
	f.typed, err = registry.For[*Ruled](f.reg, authn.System())
	must(t, err)
	return f
}

func newRuled(change func(*Ruled)) *Ruled {
	o := &Ruled{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: RuledSpec{Size: 1}}
	if change != nil {
		change(o)
	}
	return o
}

// put stores an object as it is, like an object that was stored before there were rules.
func (f *ruledFixture) put(change func(*Ruled)) *Ruled {
	f.t.Helper()
	obj := newRuled(change)
	obj.UID, obj.Generation, obj.CreationTimestamp = "u", 1, metav1.NewTime(start)
	_, err := f.store.Create(f.t.Context(), "a", obj, storage.WriteOptions{})
	must(f.t, err)
	stored, err := f.typed.Get(f.t.Context(), "", "a")
	must(f.t, err)
	return stored
}

// TestConstraintsOnCreate tests that the errors of metadata, tags and strategy are reported together.
func TestConstraintsOnCreate(t *testing.T) {
	f := setupRuled(t, registry.Strategy[*Ruled]{Validate: func(_ *registry.Call, obj *Ruled) field.ErrorList {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "names"), "not today")}
	}})
	_, err := f.typed.Create(t.Context(), "", newRuled(func(o *Ruled) { o.Name, o.Spec.Size = "A", 0 }))
	status := wantStatus(t, err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Ruled.example.com "A" is invalid: [metadata.name: Invalid value: "A": ...`)
	var causes []string
	for _, c := range status.Details.Causes {
		causes = append(causes, c.Field+" "+string(c.Type))
	}
	equal(t, "causes", strings.Join(causes, ", "), "metadata.name FieldValueInvalid, spec.size FieldValueInvalid, spec.names FieldValueForbidden")
	if !strings.Contains(status.Message, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1") {
		t.Errorf("got %s", status.Message)
	}
}

// TestConstraintsPass tests that a missing status is no error on create, and that defaults are stored.
func TestConstraintsPass(t *testing.T) {
	f := setupRuled(t, registry.Strategy[*Ruled]{})
	got, err := f.typed.Create(t.Context(), "", newRuled(func(o *Ruled) { o.Status.Replicas = 7 }))
	must(t, err)
	equal(t, "color", got.Spec.Color, "red")
	equal(t, "status", got.Status, RuledStatus{})
}

// TestConstraintsOnUpdate tests each endpoint, and that values that the update does not change are no errors.
func TestConstraintsOnUpdate(t *testing.T) {
	size := "spec.size: Invalid value: 20: spec.size in body should be less than or equal to 10"
	bad := func(o *Ruled) { o.Spec.Size, o.Spec.Owner, o.Status.Replicas = 50, "x", 50 }
	for name, c := range map[string]struct {
		change func(*Ruled)
		status bool
		want   string
	}{
		"nothing that is wrong":    {func(o *Ruled) { o.Labels = map[string]string{"a": "b"} }, false, ""},
		"a wrong value":            {func(o *Ruled) { o.Spec.Size = 20 }, false, size},
		"an immutable field":       {func(o *Ruled) { o.Spec.Owner = "y" }, false, `spec.owner: Invalid value: "y": field is immutable`},
		"no wrong status":          {func(o *Ruled) { o.Status.Phase = "Up" }, true, ""},
		"a wrong status":           {func(o *Ruled) { o.Status.Phase = "Left" }, true, `status.phase: Unsupported value: "Left": supported values: "Up", "Down"`},
		"spec is not the status's": {func(o *Ruled) { o.Spec.Size, o.Status.Phase = 20, "Up" }, true, ""},
		"another wrong status":     {func(o *Ruled) { o.Status.Replicas = 51 }, true, "status.replicas: Invalid value: 51: status.replicas in body should be less than or equal to 5"},
	} {
		t.Run(name, func(t *testing.T) {
			f := setupRuled(t, registry.Strategy[*Ruled]{})
			obj := f.put(bad)
			c.change(obj)
			update := f.typed.Update
			if c.status {
				update = f.typed.UpdateStatus
			}
			_, err := update(t.Context(), "", obj)
			if c.want == "" {
				must(t, err)
				return
			}
			wantStatus(t, err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Ruled.example.com "a" is invalid: `+c.want)
		})
	}
}

func TestConstraintsOfScale(t *testing.T) {
	f := setupRuled(t, registry.Strategy[*Ruled]{})
	f.put(func(o *Ruled) { o.Spec.Size = 50 })
	scale, err := f.reg.ScaleView(registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"})
	must(t, err)
	set := func(n int32) error {
		_, _, err := scale.Update(registry.NewCall(t.Context(), authn.System(), ""), "a", func(_ *registry.Call, obj runtime.Object) (runtime.Object, error) {
			obj.(*runtime.Scale).Spec.Replicas = n
			return obj, nil
		}, nil)
		return err
	}
	must(t, set(5))
	wantStatus(t, set(6), http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		`Ruled.example.com "a" is invalid: spec.replicas: Invalid value: 6: spec.replicas in body should be less than or equal to 5`)
}

// TestConstraintsOfTheRequest tests the rules of the request's version: they apply to the request, errors of both versions are
// reported once, and a change that cannot be converted to that version is an error of the request.
func TestConstraintsOfTheRequest(t *testing.T) {
	f := setupRuled(t, registry.Strategy[*Ruled]{})
	call := registry.NewCall(t.Context(), authn.System(), "")
	call.APIGroup, call.APIVersion = "example.com", "v1"
	update := func(obj *Ruled) (*Ruled, error) {
		rec, _, err := f.reg.UpdateRecord(call, "a", func(*registry.Call, runtime.Object) (runtime.Object, error) { return runtime.DeepCopy(obj), nil }, nil)
		if err != nil {
			return nil, err
		}
		stored, err := f.reg.Decode(rec)
		must(t, err)
		return stored.(*Ruled), nil
	}
	_, err := f.reg.CreateRecord(call, newRuled(func(o *Ruled) { o.Spec.Size, o.Spec.Color = 20, "blue" }), nil)
	status := wantStatus(t, err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Ruled.example.com "a" is invalid: [`+
		`spec.size: Invalid value: 20: spec.size in body should be less than or equal to 10, `+
		`spec.color: Unsupported value: "blue": supported values: "red", "green", "broken"]`)
	equal(t, "causes", len(status.Details.Causes), 2)
	_, err = f.reg.CreateRecord(call, newRuled(func(o *Ruled) { o.Spec.Color = "broken" }), nil)
	wantStatus(t, err, http.StatusBadRequest, metav1.StatusReasonBadRequest, `the object cannot be stored: converting Ruled.example.com from example.com/v2 to example.com/v1: no such color`)
	if _, err := f.typed.Get(call, "", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("something was stored: %v", err)
	}

	_, err = f.typed.Create(t.Context(), "", newRuled(func(o *Ruled) { o.Spec.Color = "blue" }))
	must(t, err)
	obj, err := f.typed.Get(call, "", "a")
	must(t, err)
	obj.Spec.Size = 2
	obj, err = update(obj)
	must(t, err)
	obj.Spec.Color = "yellow"
	_, err = update(obj)
	wantStatus(t, err, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, `Ruled.example.com "a" is invalid: spec.color: Unsupported value: "yellow"...`)
	_, err = f.typed.Update(t.Context(), "", obj)
	must(t, err)
}

// TestRatcheting tests a strategy whose rules have become stricter, with and without Ratcheting.
func TestRatcheting(t *testing.T) {
	strict := func(_ *registry.Call, obj *Ruled) field.ErrorList {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "color"), obj.Spec.Color, "too colorful")}
	}
	for name, c := range map[string]struct {
		strategy registry.Strategy[*Ruled]
		color    string
		ok       bool
	}{
		"without":            {registry.Strategy[*Ruled]{Validate: strict}, "red", false},
		"unchanged":          {registry.Strategy[*Ruled]{Validate: strict, Ratcheting: true}, "red", true},
		"changed":            {registry.Strategy[*Ruled]{Validate: strict, Ratcheting: true}, "green", false},
		"of an own function": {registry.Strategy[*Ruled]{ValidateUpdate: func(call *registry.Call, obj, _ *Ruled) field.ErrorList { return strict(call, obj) }, Ratcheting: true}, "red", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := setupRuled(t, c.strategy)
			obj := f.put(nil)
			obj.Spec.Size, obj.Spec.Color = 2, c.color
			if _, err := f.typed.Update(t.Context(), "", obj); (err == nil) != c.ok {
				t.Errorf("got %v", err)
			}
		})
	}
	f := setupRuled(t, registry.Strategy[*Ruled]{Validate: strict, Ratcheting: true})
	if _, err := f.typed.Create(t.Context(), "", newRuled(nil)); !apierrors.IsInvalid(err) {
		t.Errorf("a new object with an old mistake: %v", err)
	}
}

// TestRatchet tests which errors are about values that changed.
func TestRatchet(t *testing.T) {
	old, obj := newRuled(nil), newRuled(nil)
	old.Annotations = map[string]string{"a/b": "1", "a.b/c": "1", "x[y].z": "1"}
	obj.Annotations = map[string]string{"a/b": "1", "a.b/c": "2", "x[y].z": "1", "new": "1"}
	old.Spec.Names, obj.Spec.Names = []string{"a", "b", "c"}, []string{"a", "x", "c", "d"}
	obj.Spec.Size = 2
	kept := map[string]bool{
		"spec.color":                   false, // missing in both objects
		"spec.nothing":                 false,
		"spec.size":                    true,
		"spec":                         true,
		"spec.replicas":                false,
		"spec.names":                   true,
		"spec.names[0]":                false,
		"spec.names[1]":                true,
		"spec.names[2]":                false,
		"spec.names[3]":                true,
		"spec.names[9]":                false,
		"spec.names[-1]":               true, // no such place
		"spec.names[x]":                true,
		"spec.names.x":                 true,
		"spec.names[0].x":              true,
		"spec.none.deeper":             true,
		"spec.size.deeper":             true,
		"metadata.annotations[a/b]":    false,
		"metadata.annotations[a.b/c]":  true,
		"metadata.annotations[new]":    true,
		"metadata.annotations[x[y].z]": false,
		"metadata.annotations.a/b":     false,
		"metadata.annotations.a.b/c":   true,
		"metadata.annotations[a/b":     true,
		"metadata.name":                false,
		"":                             true,
		"<nil>":                        true,
		"status":                       false,
		"[0]":                          false, // an ordinary key
		"a]b":                          false,
	}
	for path, want := range kept {
		errs := field.ErrorList{{Type: field.ErrorTypeInvalid, Field: path}}
		if got := len(registry.Ratchet(errs, obj, old)) == 1; got != want {
			t.Errorf("%s: kept is %v, want %v", path, got, want)
		}
	}
	errs := field.ErrorList{{Field: "spec.color"}}
	if got := registry.Ratchet(errs, obj, nil); len(got) != 1 {
		t.Errorf("without an old object got %v", got)
	}
}

// FuzzRatchet tests that no path makes Ratchet panic.
func FuzzRatchet(f *testing.F) {
	for _, path := range []string{"", "spec.names[2]", "metadata.annotations[a/b].x", "[", "]", "..", "spec.names[0", "spec[names][0]", "metadata.[]"} {
		f.Add(path)
	}
	old, obj := newRuled(nil), newRuled(func(o *Ruled) { o.Spec.Names, o.Annotations = []string{"a"}, map[string]string{"a]b": "", "": "x"} })
	f.Fuzz(func(t *testing.T, path string) {
		errs := field.ErrorList{{Field: path}}
		registry.Ratchet(errs, obj, old)
		if got := registry.Ratchet(errs, old, old); path == "spec.size" && len(got) != 0 {
			t.Errorf("got %v", got)
		}
	})
}
