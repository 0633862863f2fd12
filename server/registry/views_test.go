package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	_ registry.Records         = (*registry.Registry)(nil)
	_ registry.RecordLister    = (*registry.Registry)(nil)
	_ registry.RecordWatcher   = (*registry.Registry)(nil)
	_ registry.RecordWriter    = (*registry.Registry)(nil)
	_ registry.RecordUpdater   = (*registry.Registry)(nil)
	_ registry.RecordDeleter   = (*registry.Registry)(nil)
	_ registry.DeletedReturner = (*registry.Registry)(nil)
	_ registry.Records         = (*registry.StatusView)(nil)
	_ registry.RecordUpdater   = (*registry.StatusView)(nil)
	_ registry.Getter          = (*registry.ScaleView)(nil)
	_ registry.Updater         = (*registry.ScaleView)(nil)
)

// putOf returns an update function that replaces the object by obj.
func putOf(obj runtime.Object) registry.ObjectUpdate {
	return func(*registry.Call, runtime.Object) (runtime.Object, error) { return obj.DeepCopyObject(), nil }
}

func TestStatusView(t *testing.T) {
	f := setup(t, strategy(registry.Strategy[*Widget]{
		PrepareForStatusUpdate: func(_ *registry.Call, w, old *Widget) { w.Status.Replicas = old.Status.Replicas + 1 },
		ValidateStatusUpdate: func(_ *registry.Call, w, _ *Widget) field.ErrorList {
			if w.Status.Selector == "bad" {
				return field.ErrorList{field.Invalid(field.NewPath("status", "selector"), "bad", "is bad")}
			}
			return nil
		},
		ValidateUpdate: func(*registry.Call, *Widget, *Widget) field.ErrorList {
			t.Error("ValidateUpdate called for the status")
			return nil
		},
	}))
	first := f.create("a", func(w *Widget) { w.Labels = map[string]string{"l": "1"}; w.Finalizers = []string{"example.com/f"} })
	got, err := f.typed.UpdateStatus(f.ctx, "ns", widget("a", func(w *Widget) {
		w.Status.Ready = true
		w.Spec.Size, w.Generation = 99, 99
		w.Labels = map[string]string{"l": "2"}
		w.Annotations = map[string]string{"x": "y"}
		w.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
	}))
	must(t, err)
	equal(t, "ready", got.Status.Ready, true)
	equal(t, "prepared", got.Status.Replicas, 1)
	equal(t, "size", got.Spec.Size, 1)
	equal(t, "generation", got.Generation, 1)
	equal(t, "label", got.Labels["l"], "1")
	equal(t, "others", len(got.Annotations)+len(got.ManagedFields), 0)
	equal(t, "finalizers", len(got.Finalizers), 1)
	equal(t, "written", got.ResourceVersion != first.ResourceVersion, true)

	_, err = f.typed.UpdateStatus(f.ctx, "ns", first)
	wantStatus(t, err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; ...`)
	_, err = f.typed.UpdateStatus(f.ctx, "ns", widget("a", func(w *Widget) { w.UID = "x" }))
	wantStatus(t, err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on widgets.example.com "a": StorageError: ...`)
	_, err = f.typed.UpdateStatus(f.ctx, "ns", widget("a", func(w *Widget) { w.Status.Selector = "bad" }))
	wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: status.selector: Invalid value: "bad": is bad`)
	_, err = f.typed.UpdateStatus(f.ctx, "ns", widget("b"))
	wantStatus(t, err, 404, metav1.StatusReasonNotFound, `widgets.example.com "b" not found`)

	view, err := f.reg.Status()
	must(t, err)
	rec, err := view.GetRecord(f.ctx, "a", storage.Read{})
	must(t, err)
	obj, err := view.Decode(rec)
	must(t, err)
	equal(t, "read", obj.(*Widget).Status.Ready, true)
}

// Plain has no status, and its content is not in a spec.
type Plain struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Data              map[string]string `json:"data,omitempty"`
}

func (p *Plain) DeepCopyObject() runtime.Object { return runtime.DeepCopy(p) }

type Bare = runtime.Resource[WidgetSpec, struct{}]

func TestKindsWithoutStatus(t *testing.T) {
	f := setup(t, nil)
	scheme := runtime.NewScheme()
	plain, bare := widgetKind.GroupVersion().WithKind("Plain"), widgetKind.GroupVersion().WithKind("Bare")
	must(t, runtime.Register[*Plain](scheme, plain, runtime.KindOptions[*Plain]{}))
	must(t, runtime.Register[*Bare](scheme, bare, runtime.KindOptions[*Bare]{}))
	for _, kind := range []schema.GroupVersionKind{plain, bare} {
		reg, err := registry.New(registry.Options{Scheme: scheme, Kind: kind, Resource: widgetResource, Storage: f.store})
		must(t, err)
		if _, err := reg.Status(); err == nil || !strings.Contains(err.Error(), "has no status") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func scaleOf(t *testing.T, f *fixture) *registry.ScaleView {
	t.Helper()
	view, err := f.reg.ScaleView(registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".status.selector"})
	must(t, err)
	return view
}

func TestScaleView(t *testing.T) {
	f := setup(t, nil)
	view := scaleOf(t, f)
	w := f.create("a", func(w *Widget) { w.Spec.Replicas = 2 })
	w.Status.Replicas, w.Status.Selector = 1, "app=a"
	w, err := f.typed.UpdateStatus(f.ctx, "ns", w)
	must(t, err)

	obj, err := view.Get(f.ctx, "a", nil)
	must(t, err)
	s := obj.(*runtime.Scale)
	if s.Kind != "Scale" || s.APIVersion != "autoscaling/v1" || s.Name != "a" || s.Namespace != "ns" || s.UID != w.UID ||
		s.ResourceVersion != w.ResourceVersion || !s.CreationTimestamp.Equal(&w.CreationTimestamp) ||
		s.Spec.Replicas != 2 || s.Status != (runtime.ScaleStatus{Replicas: 1, Selector: "app=a"}) {
		t.Errorf("scale %+v", s)
	}

	scaled := runtime.DeepCopy(s)
	scaled.Spec.Replicas, scaled.Status.Replicas, scaled.Labels = 5, 50, map[string]string{"x": "y"}
	obj, created, err := view.Update(f.ctx, "a", putOf(scaled), nil)
	must(t, err)
	equal(t, "created", created, false)
	equal(t, "replicas", obj.(*runtime.Scale).Spec.Replicas, 5)
	got := f.get("a")
	equal(t, "spec.replicas", got.Spec.Replicas, 5)
	equal(t, "status.replicas", got.Status.Replicas, 1)
	equal(t, "generation", got.Generation, 2)
	equal(t, "labels", len(got.Labels), 0)

	_, _, err = view.Update(f.ctx, "a", putOf(scaled), nil)
	wantStatus(t, err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on widgets.example.com "a": the object has been modified; ...`)
	scaled.ResourceVersion, scaled.UID = "", "x"
	_, _, err = view.Update(f.ctx, "a", putOf(scaled), nil)
	wantStatus(t, err, 409, metav1.StatusReasonConflict, `Operation cannot be fulfilled on widgets.example.com "a": StorageError: ...`)
	scaled.UID, scaled.Spec.Replicas = "", -3
	_, _, err = view.Update(f.ctx, "a", putOf(scaled), nil)
	wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -3: must be greater than or equal to 0`)
	scaled.Spec.Replicas = 7
	_, _, err = view.Update(f.ctx, "a", putOf(scaled), &metav1.UpdateOptions{DryRun: []string{"All"}})
	must(t, err)
	equal(t, "dry run", f.get("a").Spec.Replicas, 5)
	_, _, err = view.Update(f.ctx, "a", putOf(widget("a")), nil)
	wantStatus(t, err, 400, metav1.StatusReasonBadRequest, "wrong object passed to Scale update: ...")
	_, err = view.Get(f.ctx, "b", nil)
	wantStatus(t, err, 404, metav1.StatusReasonNotFound, `widgets.example.com "b" not found`)
	_, _, err = view.Update(f.ctx, "b", putOf(scaled), nil)
	wantStatus(t, err, 404, metav1.StatusReasonNotFound, `widgets.example.com "b" not found`)
}

func TestScaleAdmissionSeesScales(t *testing.T) {
	var seen []string
	note := func(phase string, r *admission.Request) {
		if r.Subresource == "scale" {
			seen = append(seen, fmt.Sprintf("%s %s %d->%d", phase, r.Kind.Kind, r.Old().(*runtime.Scale).Spec.Replicas, r.Object().(*runtime.Scale).Spec.Replicas))
		}
	}
	f := setup(t, func(o *registry.Options) {
		o.Policy = admission.Chain{
			{Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
				note("mutate", r)
				if s, ok := r.Object().(*runtime.Scale); ok {
					s.Spec.Replicas++
				}
				return nil
			})},
			{Validator: admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
				note("validate", r)
				return nil
			})},
		}
	})
	f.create("a")
	_, _, err := scaleOf(t, f).Update(f.ctx, "a", putOf(&runtime.Scale{Spec: runtime.ScaleSpec{Replicas: 3}}), nil)
	must(t, err)
	equal(t, "replicas", f.get("a").Spec.Replicas, 4)
	equal(t, "seen", strings.Join(seen, ", "), "mutate Scale 0->3, validate Scale 0->4")
}

func TestScalePaths(t *testing.T) {
	f := setup(t, nil)
	for _, c := range []struct{ spec, status, selector, want string }{
		{"", ".status.replicas", "", `path "" does not begin with a dot`},
		{"spec.replicas", ".status.replicas", "", `path "spec.replicas" does not begin with a dot`},
		{".spec.none", ".status.replicas", "", `path ".spec.none": registry_test.WidgetSpec has no field "none"`},
		{".spec.size.x", ".status.replicas", "", `int32 has no field "x"`},
		{".spec.color", ".status.replicas", "", `path ".spec.color" leads to string, which is not an integer`},
		{".spec.small", ".status.replicas", "", `leads to int8, which is not an integer of 32 or 64 bits`},
		{".spec.replicas", ".status.ready", "", `path ".status.ready" leads to bool`},
		{".spec.replicas", ".status.replicas", ".status.replicas", `leads to int32, which is not a string`},
		{".spec.replicas", ".status.replicas", ".none", `has no field "none"`},
	} {
		_, err := f.reg.ScaleView(registry.Scale{SpecReplicas: c.spec, StatusReplicas: c.status, LabelSelector: c.selector})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q %q: got %v, want %q", c.spec, c.status, c.selector, err, c.want)
		}
	}
	view, err := f.reg.ScaleView(registry.Scale{SpecReplicas: ".spec.parallel", StatusReplicas: ".status.replicas"})
	must(t, err)
	f.create("a")
	_, err = view.Get(f.ctx, "a", nil)
	wantStatus(t, err, 500, metav1.StatusReasonInternalError, `Internal error occurred: the spec replicas field ".spec.parallel" does not exist`)
	_, _, err = view.Update(f.ctx, "a", putOf(&runtime.Scale{Spec: runtime.ScaleSpec{Replicas: 3}}), nil)
	must(t, err)
	equal(t, "absent before", *f.get("a").Spec.Parallel, 3)
	f.create("b", func(w *Widget) { w.Spec.Parallel = ptr(int64(1) << 40) })
	obj, err := view.Get(f.ctx, "b", nil)
	must(t, err)
	equal(t, "clamped", obj.(*runtime.Scale).Spec.Replicas, 1<<31-1)
	_, _, err = view.Update(f.ctx, "b", putOf(&runtime.Scale{Spec: runtime.ScaleSpec{Replicas: 3}}), nil)
	must(t, err)
	equal(t, "pointer", *f.get("b").Spec.Parallel, 3)
}
