package registry_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A call without a user is refused by every method.
func TestACallNeedsAUser(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	for name, call := range map[string]*registry.Call{
		"nil":     nil,
		"no user": registry.NewCall(t.Context(), nil, "ns"),
	} {
		_, get := f.reg.GetRecord(call, "a", storage.Read{})
		_, stored := f.reg.GetStored(call, "a")
		_, list := f.reg.ListRecords(call, storage.ListOptions{})
		_, watch := f.reg.WatchRecords(call, storage.WatchOptions{})
		_, create := f.reg.CreateRecord(call, widget("b"), nil)
		_, _, update := f.reg.UpdateRecord(call, "a", putOf(widget("a")), nil)
		_, _, remove := f.reg.DeleteRecord(call, "a", nil)
		for i, err := range []error{get, stored, list, watch, create, update, remove} {
			if err == nil || !strings.Contains(err.Error(), "a call without a user is refused") {
				t.Errorf("%s, %d: %v", name, i, err)
			}
		}
	}
	if _, err := registry.For[*Widget](f.reg, nil); err == nil {
		t.Error("For took no user")
	}
}

// A call that is made for another call has the policy of that call, and sends its warnings to the same client.
func TestACallWithinACall(t *testing.T) {
	f := setup(t, nil)
	f.ctx.Policy = &admission.Policy{}
	f.ctx.OnAnnotation = func(string, string) {}
	inner := registry.NewCall(f.ctx, authn.System(), "other")
	inner.Warn("from within")
	if inner.Policy != f.ctx.Policy || inner.User.Name != "system:apiserver" || inner.Namespace != "other" || inner.OnAnnotation == nil {
		t.Errorf("the inner call is %+v", inner)
	}
	equal(t, "warnings", strings.Join(f.warned.Texts(), "|"), "from within")
	if inner.WithContext(inner.Context) != inner || inner.In("other") != inner || inner.In("third") == inner {
		t.Error("a copy is made where none is needed, or none where one is")
	}
}

// Charges of plug-ins are undone if an attempt has failed. They stay if it has not failed, or if that is not known.
func TestChargesAreUndone(t *testing.T) {
	charged := 0
	var refusal error
	charge := admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
		charged++
		r.OnFailure(func(context.Context) { charged-- })
		return nil
	})
	later := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		charged++
		r.OnFailure(func(context.Context) { charged-- })
		return refusal
	})
	f := setup(t, func(o *registry.Options) { o.Policy = admission.Chain{{Mutator: charge}, {Validator: later}} })
	expect := func(what string, err error, fails bool, left int) {
		t.Helper()
		if (err != nil) != fails || charged != left {
			t.Errorf("%s: %v; %d charges are left, want %d", what, err, charged, left)
		}
		charged = 0
	}
	_, err := f.typed.Create(f.ctx, "ns", widget("a"))
	expect("created", err, false, 2)
	_, err = f.typed.Create(f.ctx, "ns", widget("a"))
	expect("exists", err, true, 0)
	_, err = f.typed.Create(f.ctx, "ns", widget("Not a name"))
	expect("invalid", err, true, 0)
	refusal = errors.New("no")
	_, err = f.typed.Create(f.ctx, "ns", widget("b"))
	expect("refused", err, true, 0)
	_, _, err = f.typed.Delete(f.ctx, "ns", "a", nil)
	expect("delete refused", err, true, 0)
	_, err = f.typed.Change(f.ctx, "ns", "a", func(w *Widget) error { w.Spec.Size++; return nil })
	expect("update refused", err, true, 0)
	refusal = nil
	_, err = f.typed.Update(f.ctx, "ns", widget("a", func(w *Widget) { w.ResourceVersion = "1" }))
	expect("conflict", err, true, 0)
	_, err = f.typed.Change(f.ctx, "ns", "a", func(w *Widget) error { w.Spec.Size++; return nil })
	expect("updated", err, false, 2)
	scale, err := f.reg.ScaleView(registry.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"})
	must(t, err)
	refusal = errors.New("no")
	_, _, err = scale.Update(f.ctx, "a", func(_ *registry.Call, obj runtime.Object) (runtime.Object, error) { return obj, nil }, nil)
	expect("scale refused", err, true, 0)
	refusal = nil
	must(t, f.backend.Close())
	_, err = f.typed.Create(f.ctx, "ns", widget("c"))
	expect("the storage is gone, and nobody knows", err, true, 2)
}

// A view changes the fields that its strategy allows, with the strategy's rules. Admission reviews it as its subresource.
func TestView(t *testing.T) {
	var seen []string
	judge := admission.ValidatorFunc(func(_ context.Context, r *admission.Request) error {
		seen = append(seen, string(r.Operation)+" "+r.Subresource)
		return nil
	})
	f := setup(t, func(o *registry.Options) {
		o.Policy = admission.Chain{{Validator: judge}}
		o.Strategy = registry.Erase(registry.Strategy[*Widget]{Validate: func(*registry.Call, *Widget) field.ErrorList {
			return nil
		}, ValidateUpdate: func(*registry.Call, *Widget, *Widget) field.ErrorList {
			return field.ErrorList{field.Forbidden(field.NewPath("spec"), "only by paint")}
		}})
	})
	f.create("a")
	opts := registry.ViewOptions{Strategy: registry.Erase(registry.Strategy[*Widget]{
		PrepareForUpdate: func(_ *registry.Call, w, old *Widget) { w.Spec.Size, w.Status = old.Spec.Size, old.Status },
		ValidateUpdate: func(_ *registry.Call, w, _ *Widget) field.ErrorList {
			if w.Spec.Color == "none" {
				return field.ErrorList{field.Invalid(field.NewPath("spec", "color"), w.Spec.Color, "is no color")}
			}
			return nil
		},
		ResetFields: []string{"spec.size"},
	})}
	view, err := f.reg.View("paint", opts)
	must(t, err)
	seen = nil
	paint := func(v *registry.View, color string) error {
		_, _, err := v.UpdateRecord(f.ctx, "a", func(_ *registry.Call, obj runtime.Object) (runtime.Object, error) {
			w := obj.(*Widget)
			w.Spec.Color, w.Spec.Size = color, 77
			return w, nil
		}, nil)
		return err
	}
	must(t, paint(view, "red"))
	equal(t, "judged", strings.Join(seen, "|"), "UPDATE paint")
	w := f.get("a")
	equal(t, "color", w.Spec.Color, "red")
	equal(t, "size", w.Spec.Size, 1)
	equal(t, "generation", w.Generation, 1)
	wantStatus(t, paint(view, "none"), 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: spec.color: Invalid value: "none": is no color`)
	if got := view.ResetFields(f.kind(t)); len(got) != 1 || strings.Join(got[0], ".") != "spec.size" {
		t.Errorf("ResetFields %v", got)
	}
	_, missing := view.GetRecord(f.ctx, "none", storage.Read{})
	if !apierrors.IsNotFound(missing) {
		t.Errorf("got %v", missing)
	}

	opts.Admitted = true
	admitted, err := f.reg.View("paint", opts)
	must(t, err)
	seen = nil
	must(t, paint(admitted, "blue"))
	if _, gone, err := admitted.DeleteRecord(f.ctx, "a", nil); err != nil || !gone || len(seen) > 0 {
		t.Errorf("deleted: %t, %v; admission was asked %q again", gone, err, seen)
	}
	if _, err := f.reg.View("", opts); err == nil {
		t.Error("a view without a name")
	}
	if _, err := f.reg.View("x", registry.ViewOptions{Strategy: registry.Erase(registry.Strategy[*metav1.Status]{})}); err == nil {
		t.Error("a view with a strategy for another type")
	}
}
