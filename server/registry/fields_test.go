package registry_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mutator is a mutating plug-in.
type mutator func(w *Widget)

func (f mutator) Mutate(_ context.Context, req *admission.Request) error {
	if w, ok := req.Object().(*Widget); ok {
		f(w)
	}
	return nil
}

// tracked is a fixture whose updates are made by the manager "a". That manager created the widget "w" long ago.
type tracked struct {
	*fixture
	fields *patch.FieldManager
}

func newTracked(t *testing.T, options func(o *registry.Options)) *tracked {
	t.Helper()
	f := &tracked{}
	f.fixture = setup(t, func(o *registry.Options) {
		options(o)
		var err error
		f.fields, err = patch.NewFieldManager(patch.FieldManagerOptions{Scheme: o.Scheme, Kind: o.Kind})
		must(t, err)
	})
	w := widget("w", func(w *Widget) { w.Namespace, w.Spec.Color = "ns", "red" })
	must(t, f.fields.Update(nil, w, "a"))
	w.ManagedFields[0].Time = &metav1.Time{Time: start}
	_, err := f.reg.CreateRecord(f.ctx, w, nil)
	must(t, err)
	return f
}

// update changes the widget as manager "a" and returns it.
func (f *tracked) update(change func(w *Widget)) *Widget {
	f.t.Helper()
	rec, _, err := f.reg.UpdateRecord(f.ctx, "w", func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
		next := current.DeepCopyObject().(*Widget)
		change(next)
		return next, f.fields.Update(current, next, "a")
	}, nil)
	must(f.t, err)
	return f.decode(rec)
}

// TestWhatChangesNothingHasNoNewTime: the field manager sees a change, but a strategy or a mutator reverts it.
func TestWhatChangesNothingHasNoNewTime(t *testing.T) {
	for name, options := range map[string]func(o *registry.Options){
		"strategy": strategy(registry.Strategy[*Widget]{PrepareForUpdate: func(_ *registry.Call, w, old *Widget) {
			w.Spec.Color = old.Spec.Color
		}}),
		"canonical form": strategy(registry.Strategy[*Widget]{Canonicalize: func(w *Widget) { w.Spec.Color = "red" }}),
		"mutator": func(o *registry.Options) {
			o.Policy = admission.Chain{{Mutator: mutator(func(w *Widget) { w.Spec.Color = "red" })}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTracked(t, options)
			before := f.get("w")
			after := f.update(func(w *Widget) { w.Spec.Color = "blue" })
			if after.ResourceVersion != before.ResourceVersion || !after.ManagedFields[0].Time.Equal(before.ManagedFields[0].Time) {
				t.Errorf("got %s %v\nwant %s %v", after.ResourceVersion, after.ManagedFields, before.ResourceVersion, before.ManagedFields)
			}
			after = f.update(func(w *Widget) { w.Spec.Color, w.Labels = "blue", map[string]string{"l": "v"} })
			if after.ResourceVersion == before.ResourceVersion || after.ManagedFields[0].Time.Equal(before.ManagedFields[0].Time) {
				t.Errorf("a real change is not seen: %v", after.ManagedFields)
			}
		})
	}
}

func TestMutatorsThatSpoilManagedFields(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(w *Widget)
		warns bool
	}{
		"drops them":         {func(w *Widget) { w.ManagedFields = nil }, false},
		"breaks them":        {func(w *Widget) { w.ManagedFields[0].FieldsV1.SetRawString("x") }, true},
		"gives them no kind": {func(w *Widget) { w.ManagedFields[0].FieldsType = "" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTracked(t, func(o *registry.Options) {
				o.Policy = admission.Chain{{Mutator: mutator(func(w *Widget) {
					if w.Labels["spoil"] != "" {
						c.spoil(w)
					}
				})}}
			})
			after := f.update(func(w *Widget) { w.Labels = map[string]string{"spoil": "yes"} })
			if len(after.ManagedFields) != 1 || after.ManagedFields[0].FieldsV1.String() != `{"f:metadata":{"f:labels":{".":{},"f:spoil":{}}},"f:spec":{"f:color":{},"f:size":{}}}` {
				t.Errorf("%v", after.ManagedFields)
			}
			warned := slices.ContainsFunc(f.warned.Texts(), func(s string) bool {
				return strings.HasPrefix(s, ".metadata.managedFields was in an invalid state after admission")
			})
			if warned != c.warns {
				t.Errorf("warnings %q", f.warned.Texts())
			}
		})
	}
}

// TestStatusKeepsManagedFieldsOfOthers: Typed.UpdateStatus keeps the stored managedFields, and ignores those of its argument.
func TestStatusKeepsManagedFieldsOfOthers(t *testing.T) {
	f := newTracked(t, func(*registry.Options) {})
	w := f.get("w")
	w.Status.Ready = true
	w.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "b", Operation: "Update", APIVersion: "example.com/v1", Time: &metav1.Time{Time: time.Now()}, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{}`),
	}}
	after, err := f.typed.UpdateStatus(f.ctx, "ns", w)
	must(t, err)
	if !after.Status.Ready || len(after.ManagedFields) != 1 || after.ManagedFields[0].Manager != "a" {
		t.Errorf("%+v", after)
	}
}

func TestResetFieldsThatThereAreNot(t *testing.T) {
	for _, path := range []string{"", ".spec.color", "spec.", "spec.none", "metadata", "metadata.labels"} {
		t.Run(path, func(t *testing.T) {
			scheme := runtime.NewScheme()
			must(t, runtime.Register[*Widget](scheme, widgetKind, runtime.KindOptions[*Widget]{}))
			_, err := registry.New(registry.Options{
				Scheme: scheme, Kind: widgetKind, Resource: widgetResource, Storage: setup(t, nil).store,
				Strategy: registry.Erase(registry.Strategy[*Widget]{ResetFields: []string{path}}),
			})
			if err == nil || !strings.Contains(err.Error(), "ResetFields") {
				t.Errorf("%v", err)
			}
		})
	}
}
