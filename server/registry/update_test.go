package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestUpdateVersions(t *testing.T) {
	f := setup(t, nil)
	first := f.create("a")
	second, err := f.put(widget("a", func(w *Widget) { w.ResourceVersion, w.Spec.Size = first.ResourceVersion, 2 }))
	must(t, err)

	const modified = `Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; please apply your changes to the latest version and try again`
	for _, stale := range []string{first.ResourceVersion, "99999", "0" + second.ResourceVersion} {
		_, err = f.put(widget("a", func(w *Widget) { w.ResourceVersion = stale }))
		s := wantStatus(t, err, 409, metav1.StatusReasonConflict, modified)
		equal(t, "kind", s.Details.Kind, "widgets")
	}
	_, err = f.put(widget("a", func(w *Widget) { w.ResourceVersion = "abc" }))
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest, `invalid resource version "abc": ...`)
	for _, none := range []string{"", "0"} {
		got, err := f.put(widget("a", func(w *Widget) { w.ResourceVersion = none; w.Spec.Color = "c" + none }))
		must(t, err)
		equal(t, "color", got.Spec.Color, "c"+none)
	}
	_, err = f.put(widget("b"))
	wantStatus(t, err, 404, metav1.StatusReasonNotFound, `widgets.example.com "b" not found`)
}

func TestRequireResourceVersion(t *testing.T) {
	f := setup(t, strategy(registry.Strategy[*Widget]{RequireResourceVersion: true}))
	first := f.create("a")
	for _, none := range []string{"", "0"} {
		_, err := f.put(widget("a", func(w *Widget) { w.ResourceVersion = none }))
		s := wantStatus(t, err, 422, metav1.StatusReasonInvalid, `widgets.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
		equal(t, "kind", s.Details.Kind, "widgets")
	}
	_, err := f.put(first)
	must(t, err)
}

func TestUpdateUID(t *testing.T) {
	f := setup(t, nil)
	first := f.create("a")
	_, err := f.put(widget("a", func(w *Widget) { w.UID = "other" }))
	wantStatus(t, err, 409, metav1.StatusReasonConflict, fmt.Sprintf(
		`Operation cannot be fulfilled on widgets.example.com "a": StorageError: invalid object, Code: 4, Key: /registry/example.com/widgets/ns/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: other, UID in object meta: %s`, first.UID))
	_, err = f.put(widget("a", func(w *Widget) { w.UID = first.UID }))
	must(t, err)
}

func TestUpdateKeepsSystemMetadata(t *testing.T) {
	f := setup(t, nil)
	entry := metav1.ManagedFieldsEntry{Manager: "m", Operation: "Update", APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}
	first := f.create("a", func(w *Widget) { w.ManagedFields = []metav1.ManagedFieldsEntry{entry} })
	f.now = f.now.Add(time.Hour)
	got, err := f.put(widget("a", func(w *Widget) {
		w.CreationTimestamp, w.Generation = metav1.Now(), 77
		w.Labels = map[string]string{"a": "b"}
	}))
	must(t, err)
	equal(t, "uid", got.UID, first.UID)
	equal(t, "creationTimestamp", got.CreationTimestamp.Equal(&first.CreationTimestamp), true)
	equal(t, "generation", got.Generation, 1)
	equal(t, "managedFields", len(got.ManagedFields), 1)
	equal(t, "label", got.Labels["a"], "b")

	second := entry
	second.Manager = "n"
	got, err = f.put(widget("a", func(w *Widget) { w.ManagedFields = []metav1.ManagedFieldsEntry{entry, second} }))
	must(t, err)
	equal(t, "managedFields given", len(got.ManagedFields), 2)
	got, err = f.put(widget("a", func(w *Widget) { w.ManagedFields = []metav1.ManagedFieldsEntry{{}} }))
	must(t, err)
	equal(t, "managedFields reset", len(got.ManagedFields), 0)

	now := metav1.Now()
	_, err = f.put(widget("a", func(w *Widget) { w.DeletionTimestamp = &now }))
	wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: metadata.deletionTimestamp: Invalid value: ...`)
	_, err = f.put(widget("a", func(w *Widget) { w.Namespace = "other" }))
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest, "the namespace of the provided object does not match the namespace sent on the request")
	_, _, err = f.reg.UpdateRecord(f.ctx, "a", func(*registry.Call, runtime.Object) (runtime.Object, error) { return widget("b"), nil }, nil)
	wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: metadata.name: Invalid value: "b": field is immutable`)
}

func TestGeneration(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	for _, c := range []struct {
		what   string
		change func(*Widget)
		want   int64
	}{
		{"spec", func(w *Widget) { w.Spec.Size = 2 }, 2},
		{"nothing", func(*Widget) {}, 2},
		{"labels", func(w *Widget) { w.Labels = map[string]string{"a": "b"} }, 2},
		{"status", func(w *Widget) { w.Status.Ready = true }, 2},
		{"pointer", func(w *Widget) { w.Spec.Parallel = ptr(int64(0)) }, 3},
		{"empty and nil", func(w *Widget) { w.Spec.Tags = []string{} }, 3},
		{"pointer value", func(w *Widget) { w.Spec.Parallel = ptr(int64(1)) }, 4},
		{"finalizer", func(w *Widget) { w.Finalizers = []string{"example.com/f"} }, 4},
		{"set by the client", func(w *Widget) { w.Generation = 9 }, 4},
	} {
		got, err := f.typed.Change(f.ctx, "ns", "a", func(w *Widget) error { c.change(w); return nil })
		must(t, err)
		equal(t, "generation after "+c.what, got.Generation, c.want)
		equal(t, "status after "+c.what, got.Status.Ready, false)
	}

	plain := setup(t, strategy(registry.Strategy[*Widget]{NoGeneration: true}))
	equal(t, "without generation", plain.create("a").Generation, 0)
	got, err := plain.put(widget("a", func(w *Widget) { w.Spec.Size = 2; w.Generation = 3 }))
	must(t, err)
	equal(t, "without generation", got.Generation, 0)
}

func TestUpdateWithoutChangeWritesNothing(t *testing.T) {
	f := setup(t, nil)
	first := f.create("a")
	before := f.revision()
	got, err := f.put(first)
	must(t, err)
	equal(t, "resourceVersion", got.ResourceVersion, first.ResourceVersion)
	got, err = f.put(widget("a"))
	must(t, err)
	equal(t, "resourceVersion", got.ResourceVersion, first.ResourceVersion)
	equal(t, "revision", f.revision(), before)
}

func TestUpdateDryRun(t *testing.T) {
	f := setup(t, nil)
	first := f.create("a")
	put := func(*registry.Call, runtime.Object) (runtime.Object, error) {
		return widget("a", func(w *Widget) { w.Spec.Size = 5 }), nil
	}
	rec, created, err := f.reg.UpdateRecord(f.ctx, "a", put, &metav1.UpdateOptions{DryRun: []string{"All"}})
	must(t, err)
	got := f.decode(rec)
	equal(t, "size", got.Spec.Size, 5)
	equal(t, "generation", got.Generation, 2)
	equal(t, "created", created, false)
	equal(t, "stored", f.get("a").ResourceVersion, first.ResourceVersion)
}

func TestCreateOnUpdate(t *testing.T) {
	operations := []admission.Operation{}
	f := setup(t, func(o *registry.Options) {
		o.Strategy = registry.Erase(registry.Strategy[*Widget]{CreateOnUpdate: true})
		o.Policy = admission.Chain{{Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
			operations = append(operations, r.Operation)
			return nil
		})}}
	})
	put := func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
		equal(t, "current", current == nil, len(operations) == 0)
		return widget("a"), nil
	}
	for _, want := range []bool{true, false} {
		rec, created, err := f.reg.UpdateRecord(f.ctx, "a", put, nil)
		must(t, err)
		equal(t, "created", created, want)
		equal(t, "generation", f.decode(rec).Generation, 1)
	}
	if !slices.Equal(operations, []admission.Operation{admission.Create, admission.Update}) {
		t.Errorf("operations %v", operations)
	}
	_, _, err := f.reg.UpdateRecord(f.ctx, "b", putOf(widget("c")), nil)
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest, "the name of the object (c) does not match the name on the URL (b)")
	_, err = f.put(widget("b", func(w *Widget) { w.UID = "u" }))
	wantStatus(t, err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on widgets.example.com "b": StorageError: invalid object, Code: 4, ...`)
	made, err := f.put(widget("b", func(w *Widget) { w.ResourceVersion = "5" }))
	must(t, err)
	equal(t, "name", made.Name, "b")
}

func TestUpdateOrder(t *testing.T) {
	var calls []string
	did := func(name string) { calls = append(calls, name) }
	f := setup(t, func(o *registry.Options) {
		o.Strategy = registry.Erase(registry.Strategy[*Widget]{
			PrepareForUpdate: func(_ *registry.Call, w, old *Widget) {
				did("prepare")
				equal(t, "status in prepare", w.Status.Seen["a"], "b")
				w.Status.Seen["a"] = "mine" // old's map is not changed
				equal(t, "old status", old.Status.Seen["a"], "b")
				w.Status.Seen["a"] = "b"
			},
			ValidateUpdate: func(_ *registry.Call, w, old *Widget) field.ErrorList {
				did("validate")
				equal(t, "generation in validate", w.Generation, old.Generation+1)
				return nil
			},
			Validate:     func(*registry.Call, *Widget) field.ErrorList { did("validate-create"); return nil },
			WarnOnUpdate: func(*registry.Call, *Widget, *Widget) []string { did("warn"); return []string{"careful"} },
			Canonicalize: func(*Widget) { did("canonicalize") },
		})
		o.Policy = admission.Chain{
			{Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
				did("mutate")
				return nil
			})},
			{Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
				did("admit")
				if r.Operation == admission.Update && r.Subresource == "" && (r.Name != "a" || r.Old().(*Widget).Spec.Size != 1 || r.Object().(*Widget).Spec.Size != 2) {
					t.Errorf("request %+v", r)
				}
				return nil
			})},
		}
	})
	w := f.create("a")
	w.Status.Seen = map[string]string{"a": "b"}
	_, err := f.typed.UpdateStatus(f.ctx, "ns", w)
	must(t, err)
	calls = nil
	_, err = f.put(widget("a", func(w *Widget) { w.Spec.Size = 2 }))
	must(t, err)
	equal(t, "calls", strings.Join(calls, " "), "mutate prepare validate warn canonicalize admit")
	equal(t, "warnings", strings.Join(f.warned.Texts(), "|"), "careful")
}

func TestValidateServesUpdatesToo(t *testing.T) {
	f := setup(t, strategy(registry.Strategy[*Widget]{Validate: func(_ *registry.Call, w *Widget) field.ErrorList {
		if w.Spec.Size < 0 {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "must not be negative")}
		}
		return nil
	}}))
	f.create("a")
	_, err := f.put(widget("a", func(w *Widget) { w.Spec.Size = -1 }))
	wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: spec.size: Invalid value: -1: must not be negative`)
	equal(t, "size", f.get("a").Spec.Size, 1)
}

func TestUpdateErrorsPassThrough(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	mine := errors.New("mine")
	_, err := f.typed.Change(f.ctx, "ns", "a", func(*Widget) error { return mine })
	if !errors.Is(err, mine) {
		t.Errorf("got %v", err)
	}
	_, _, err = f.reg.UpdateRecord(f.ctx, "a", func(*registry.Call, runtime.Object) (runtime.Object, error) { return nil, nil }, nil)
	wantStatus(t, err, 500, metav1.StatusReasonInternalError, "Internal error occurred: got a <nil> for ...")
}

// An update without a resourceVersion is repeated after another write. An update with one is not.
func TestUpdateRetries(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	calls := 0
	between := func() {
		if calls++; calls == 1 {
			_, err := f.put(widget("a", func(w *Widget) { w.Spec.Size = 10 }))
			must(t, err)
		}
	}
	got, err := f.typed.Change(f.ctx, "ns", "a", func(w *Widget) error { between(); w.Spec.Size++; return nil })
	must(t, err)
	equal(t, "size", got.Spec.Size, 11)
	equal(t, "calls", calls, 2)

	calls = 0
	first := f.get("a")
	pinned := func(*registry.Call, runtime.Object) (runtime.Object, error) {
		between()
		return widget("a", func(w *Widget) { w.ResourceVersion = first.ResourceVersion; w.Spec.Size = 3 }), nil
	}
	_, _, err = f.reg.UpdateRecord(f.ctx, "a", pinned, nil)
	wantStatus(t, err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; ...`)
	equal(t, "calls", calls, 2)
}

func TestConcurrentUpdatesLoseNothing(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	const workers, each = 8, 25
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				_, err := f.typed.Change(f.ctx, "ns", "a", func(w *Widget) error { w.Spec.Size++; w.ResourceVersion = ""; return nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got := f.get("a")
	equal(t, "size", got.Spec.Size, 1+workers*each)
	equal(t, "generation", got.Generation, 1+workers*each)
}

// An update with CreateOnUpdate creates its own object only. Updates of other objects, which admission or a strategy makes with
// its context, do not create objects.
func TestCreateOnUpdateIsForOneUpdate(t *testing.T) {
	var f *fixture
	var other error
	f = setup(t, strategy(registry.Strategy[*Widget]{PrepareForCreate: func(ctx *registry.Call, w *Widget) {
		if w.Name == "a" {
			_, other = f.typed.Change(ctx, "ns", "other", func(*Widget) error { return nil })
		}
	}}))
	f.ctx.CreateOnUpdate = true
	_, created, err := f.reg.UpdateRecord(f.ctx, "a", func(*registry.Call, runtime.Object) (runtime.Object, error) {
		return widget("a"), nil
	}, nil)
	must(t, err)
	if !created || !apierrors.IsNotFound(other) {
		t.Errorf("created: %t; another: %v", created, other)
	}
}
