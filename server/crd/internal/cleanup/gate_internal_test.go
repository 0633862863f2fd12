package cleanup

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/admission"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Creates of a closed resource are refused, whether it is withdrawn or not. wait waits for creates that were admitted before,
// even if the resource has been opened again. Creates of unguarded resources are not refused.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g Gate
		widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
		create := func() (end context.CancelFunc, refused bool) {
			ctx, end := context.WithCancel(t.Context())
			err := g.Mutate(ctx, &admission.Request{Operation: admission.Create, Resource: schema.GroupVersionResource{Group: widgets.Group, Version: "v1", Resource: widgets.Resource}, Name: "a"})
			if err != nil && !apierrors.IsForbidden(err) {
				t.Error(err)
			}
			return end, err != nil
		}
		waits := func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return errors.Is(g.wait(ctx, widgets), context.DeadlineExceeded)
		}
		if _, refused := create(); refused || g.guards(widgets) || waits() {
			t.Error("what nobody guards is refused, or waited for")
		}
		g.Guard(widgets, false)
		first, refused := create()
		second, also := create()
		if refused || also || !waits() {
			t.Error("what is open is refused, or not waited for")
		}
		g.Guard(widgets, true)
		if _, refused := create(); !refused {
			t.Error("what is closed is let in")
		}
		first()
		g.Withdraw(widgets)
		if _, refused := create(); !refused || g.guards(widgets) || !waits() {
			t.Error("what is withdrawn is let in, or not waited for")
		}
		g.Guard(widgets, false)
		third, refused := create()
		if refused || !g.guards(widgets) {
			t.Error("what has come again is refused")
		}
		second()
		if !waits() {
			t.Error("the third is not waited for")
		}
		third()
		synctest.Wait()
		if waits() {
			t.Error("all have ended, and are waited for")
		}
	})
}
