package registry_test

import (
	"context"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server/registry"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Permit judges what a client writes after the mutators, and before the resourceVersion and all other rules. Calls of the program
// itself, and updates of the status, are not judged.
func TestPermit(t *testing.T) {
	var olds []*Widget
	f := setup(t, func(o *registry.Options) {
		strategy(registry.Strategy[*Widget]{Permit: func(_ *registry.Call, obj, old *Widget) error {
			olds = append(olds, old)
			if obj.Spec.Size > 5 {
				return apierrors.NewForbidden(widgetResource, obj.Name, nil)
			}
			return nil
		}})(o)
		o.Policy = admission.Chain{{Name: "doubles", Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
			if w, ok := r.Object().(*Widget); ok {
				w.Spec.Size *= 2
			}
			return nil
		})}}
	})
	const forbidden = `widgets.example.com "a" is forbidden: ...`
	f.create("program", func(w *Widget) { w.Spec.Size = 10 })
	equal(t, "judged", len(olds), 0)

	call := registry.NewCall(t.Context(), f.ctx.User, "ns")
	call.Verb = "create"
	_, err := f.reg.CreateRecord(call, widget("a", func(w *Widget) { w.Spec.Size = 3 }), nil)
	wantStatus(t, err, 403, metav1.StatusReasonForbidden, forbidden)
	rec, err := f.reg.CreateRecord(call, widget("a"), nil)
	must(t, err)
	equal(t, "old of a create", olds[1], nil)

	call.Verb = "update"
	put := func(change func(w *Widget)) error {
		_, _, err := f.reg.UpdateRecord(call, "a", func(_ *registry.Call, current runtime.Object) (runtime.Object, error) {
			change(current.(*Widget))
			return current, nil
		}, nil)
		return err
	}
	wantStatus(t, put(func(w *Widget) { w.Spec.Size = 3 }), 403, metav1.StatusReasonForbidden, forbidden)
	wantStatus(t, put(func(w *Widget) { w.Spec.Size, w.ResourceVersion = 6, "1" }), 403, metav1.StatusReasonForbidden, forbidden)
	wantStatus(t, put(func(w *Widget) { w.Spec.Size, w.ResourceVersion = 1, "1" }), 409, metav1.StatusReasonConflict, "...")
	wantStatus(t, put(func(w *Widget) { w.Spec.Size, w.Finalizers = 3, []string{"-"} }), 403, metav1.StatusReasonForbidden, forbidden)
	must(t, put(func(w *Widget) { w.Spec.Size = 1 }))
	equal(t, "uid of old", olds[len(olds)-1].UID, f.decode(rec).UID)
	judged := len(olds)
	status, err := f.reg.Status()
	must(t, err)
	_, _, err = status.UpdateRecord(call, "a", func(_ *registry.Call, current runtime.Object) (runtime.Object, error) { return current, nil }, nil)
	must(t, err)
	equal(t, "judged", len(olds), judged)
}
