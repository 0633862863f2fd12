package registry_test

import (
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var gadgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}

// untypedRegistry is a registry of a kind without a Go type.
func untypedRegistry(t *testing.T, change func(o *registry.Options)) (*registry.Registry, error) {
	t.Helper()
	s := runtime.NewScheme()
	if err := runtime.Register(s, gadgetKind, runtime.KindOptions[*unstructured.Unstructured]{}); err != nil {
		t.Fatal(err)
	}
	c, err := codec.NewTyped(s, gadgetKind)
	if err != nil {
		t.Fatal(err)
	}
	backend := memory.New(memory.Options{})
	t.Cleanup(func() { _ = backend.Close() })
	store, err := storage.NewStore(backend, storage.StoreOptions{Prefix: "/registry/example.com/gadgets", Codec: c})
	if err != nil {
		t.Fatal(err)
	}
	o := registry.Options{Scheme: s, Kind: gadgetKind, Resource: schema.GroupResource{Group: "example.com", Resource: "gadgets"}, Storage: store}
	if change != nil {
		change(&o)
	}
	return registry.New(o)
}

func newGadget(members map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
	for name, member := range members {
		u.Object[name] = member
	}
	return u
}

// Tests which field is the status, and which changes increase the generation.
func TestUntypedShape(t *testing.T) {
	for _, noStatus := range []bool{false, true} {
		r, err := untypedRegistry(t, func(o *registry.Options) { o.NoStatus = noStatus })
		if err != nil {
			t.Fatal(err)
		}
		if r.HasStatus() == noStatus {
			t.Errorf("NoStatus %v: HasStatus %v", noStatus, r.HasStatus())
		}
		gadgets, err := registry.For[*unstructured.Unstructured](r, authn.System())
		if err != nil {
			t.Fatal(err)
		}
		obj, err := gadgets.Create(t.Context(), "", newGadget(map[string]any{"spec": map[string]any{"a": 1}, "status": map[string]any{"b": 1}}))
		if err != nil {
			t.Fatal(err)
		}
		if (obj.Object["status"] != nil) != noStatus {
			t.Errorf("NoStatus %v: created with the status %v", noStatus, obj.Object["status"])
		}
		for _, step := range []struct {
			name   string
			change func(u *unstructured.Unstructured)
			raised int64
		}{
			{"nothing", func(*unstructured.Unstructured) {}, 0},
			{"a label", func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"a": "b"}) }, 0},
			{"the same number", func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"a": 1.0} }, 0},
			{"another", func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{"a": 2} }, 1},
			{"a member", func(u *unstructured.Unstructured) { u.Object["other"] = nil }, 1},
			{"the status", func(u *unstructured.Unstructured) { u.Object["status"] = map[string]any{"b": 2} }, map[bool]int64{true: 1}[noStatus]},
		} {
			was := obj.GetGeneration()
			obj, err = gadgets.Change(t.Context(), "", "a", func(u *unstructured.Unstructured) error { step.change(u); return nil })
			if err != nil || obj.GetGeneration() != was+step.raised {
				t.Errorf("NoStatus %v: %s: generation %d after %d, %v", noStatus, step.name, obj.GetGeneration(), was, err)
			}
		}
	}
}

func TestUntypedNeedsAResourceVersion(t *testing.T) {
	r, err := untypedRegistry(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	gadgets, err := registry.For[*unstructured.Unstructured](r, authn.System())
	if err != nil {
		t.Fatal(err)
	}
	obj, err := gadgets.Create(t.Context(), "", newGadget(nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gadgets.Update(t.Context(), "", newGadget(map[string]any{"spec": 1})); !apierrors.IsInvalid(err) {
		t.Errorf("without one: %v", err)
	}
	obj.Object["spec"] = 1
	if _, err := gadgets.Update(t.Context(), "", obj); err != nil {
		t.Errorf("with it: %v", err)
	}
	if _, err := registry.For[*runtime.Scale](r, authn.System()); err == nil {
		t.Error("it was taken for objects of a Go type")
	}
}

// Without Options.Scale, the values at the paths are not checked.
func TestUntypedScaleOfWhatIsNoInteger(t *testing.T) {
	paths := registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas", LabelSelector: ".status.selector"}
	for _, checked := range []bool{false, true} {
		r, err := untypedRegistry(t, func(o *registry.Options) {
			if checked {
				o.Scale = &paths
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		view, err := r.ScaleView(paths)
		if err != nil {
			t.Fatal(err)
		}
		gadgets, err := registry.For[*unstructured.Unstructured](r, authn.System())
		if err != nil {
			t.Fatal(err)
		}
		_, err = gadgets.Create(t.Context(), "", newGadget(map[string]any{"spec": "text"}))
		if checked {
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), ".spec.replicas") {
				t.Errorf("checked: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if scale, err := view.Get(registry.NewCall(t.Context(), authn.System(), ""), "a", &metav1.GetOptions{}); err == nil {
			t.Errorf("there is a scale: %v", scale)
		}
		set := func(n int32) registry.ObjectUpdate {
			return registry.ObjectUpdate(func(_ *registry.Call, obj runtime.Object) (runtime.Object, error) {
				obj.(*runtime.Scale).Spec.Replicas = n
				return obj, nil
			})
		}
		if _, _, err := view.Update(registry.NewCall(t.Context(), authn.System(), ""), "a", set(1), nil); !apierrors.IsInternalError(err) {
			t.Errorf("replicas of a text: %v", err)
		}
		if _, _, err := view.Update(registry.NewCall(t.Context(), authn.System(), ""), "a", set(-1), nil); !apierrors.IsInvalid(err) {
			t.Errorf("negative replicas: %v", err)
		}
	}
	if _, err := untypedRegistry(t, func(o *registry.Options) { o.Scale = &registry.Scale{SpecReplicas: "spec"} }); err == nil {
		t.Error("a path that is none was accepted")
	}
}
