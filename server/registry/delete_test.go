package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

func finalizers(names ...string) func(*Widget) { return func(w *Widget) { w.Finalizers = names } }

func (f *fixture) delete(name string, opts *metav1.DeleteOptions) (*Widget, bool) {
	f.t.Helper()
	w, gone, err := f.typed.Delete(f.ctx, "ns", name, opts)
	must(f.t, err)
	return w, gone
}

func (f *fixture) wantGone(name string) {
	f.t.Helper()
	_, err := f.typed.Get(f.ctx, "ns", name)
	wantStatus(f.t, err, 404, metav1.StatusReasonNotFound, fmt.Sprintf(`widgets.example.com %q not found`, name))
}

func TestDelete(t *testing.T) {
	f := setup(t, nil)
	w := f.create("a")
	last, gone := f.delete("a", nil)
	equal(t, "gone", gone, true)
	equal(t, "uid", last.UID, w.UID)
	f.wantGone("a")
	_, _, err := f.typed.Delete(f.ctx, "ns", "a", nil)
	wantStatus(t, err, 404, metav1.StatusReasonNotFound, `widgets.example.com "a" not found`)
}

func TestDeletePreconditions(t *testing.T) {
	f := setup(t, nil)
	w := f.create("a")
	_, _, err := f.typed.Delete(f.ctx, "ns", "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr(types.UID("x"))}})
	s := wantStatus(t, err, 409, metav1.StatusReasonConflict, fmt.Sprintf(
		`Operation cannot be fulfilled on Widget.example.com "a": the UID in the precondition (x) does not match the UID in record (%s). The object might have been deleted and then recreated`, w.UID))
	equal(t, "kind", s.Details.Kind, "Widget")
	_, _, err = f.typed.Delete(f.ctx, "ns", "a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr("1")}})
	wantStatus(t, err, 409, metav1.StatusReasonConflict, fmt.Sprintf(
		`Operation cannot be fulfilled on Widget.example.com "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (%s). The object might have been modified`, w.ResourceVersion))
	_, gone := f.delete("a", &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &w.UID, ResourceVersion: &w.ResourceVersion}})
	equal(t, "gone", gone, true)
}

func TestDeleteDryRun(t *testing.T) {
	f := setup(t, nil)
	f.create("a")
	f.create("b", finalizers("example.com/f"))
	dry := &metav1.DeleteOptions{DryRun: []string{"All"}}
	_, gone := f.delete("a", dry)
	equal(t, "gone", gone, true)
	f.get("a")
	marked, gone := f.delete("b", dry)
	equal(t, "gone", gone, false)
	equal(t, "marked", marked.DeletionTimestamp != nil, true)
	equal(t, "stored", f.get("b").DeletionTimestamp == nil, true)
}

func TestFinalizersKeepAnObject(t *testing.T) {
	f := setup(t, nil)
	w := f.create("a", finalizers("example.com/f", "example.com/g"))
	events, err := f.reg.WatchRecords(f.ctx, storage.WatchOptions{})
	must(t, err)
	defer events.Close()

	f.now = f.now.Add(time.Minute)
	marked, gone := f.delete("a", nil)
	equal(t, "gone", gone, false)
	equal(t, "generation", marked.Generation, 2)
	equal(t, "deletionTimestamp", marked.DeletionTimestamp.Sub(w.CreationTimestamp.Time), time.Minute)
	equal(t, "grace", *marked.DeletionGracePeriodSeconds, 0)

	f.now = f.now.Add(time.Minute)
	again, gone := f.delete("a", &metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))})
	equal(t, "gone", gone, false)
	equal(t, "resourceVersion", again.ResourceVersion, marked.ResourceVersion)

	_, err = f.put(widget("a", finalizers("example.com/f", "example.com/h")))
	s := wantStatus(t, err, 422, metav1.StatusReasonInvalid, `Widget.example.com "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/h"}`)
	equal(t, "cause", s.Details.Causes[0].Type, metav1.CauseTypeForbidden)

	one, err := f.put(widget("a", finalizers("example.com/g")))
	must(t, err)
	equal(t, "deletionTimestamp stays", one.DeletionTimestamp.Equal(marked.DeletionTimestamp), true)
	equal(t, "grace stays", *one.DeletionGracePeriodSeconds, 0)

	before := f.revision()
	last, err := f.put(widget("a", func(w *Widget) { w.Spec.Color = "last" }))
	must(t, err)
	equal(t, "answer", last.Name+" "+last.Spec.Color+" "+string(last.UID), "a last "+string(w.UID))
	equal(t, "finalizers", len(last.Finalizers), 0)
	equal(t, "commits", f.revision()-before, 1)
	f.wantGone("a")

	var seen []watch.EventType
	for len(seen) < 3 {
		batch, err := events.Next(f.ctx)
		must(t, err)
		for _, e := range batch {
			seen = append(seen, e.Type)
		}
	}
	if !slices.Equal(seen, []watch.EventType{watch.Modified, watch.Modified, watch.Deleted}) {
		t.Errorf("events %v", seen)
	}
}

func TestEmptiedFinalizersDryRun(t *testing.T) {
	f := setup(t, nil)
	f.create("a", finalizers("example.com/f"))
	f.delete("a", nil)
	rec, _, err := f.reg.UpdateRecord(f.ctx, "a", putOf(widget("a")), &metav1.UpdateOptions{DryRun: []string{"All"}})
	must(t, err)
	equal(t, "finalizers", len(f.decode(rec).Finalizers), 0)
	f.get("a")
}

func orphanDependents(v bool) metav1.DeleteOptions {
	return metav1.DeleteOptions{OrphanDependents: &v} //nolint:staticcheck // clients may still send it
}

func TestPropagation(t *testing.T) {
	orphan, foreground, background := metav1.DeletePropagationOrphan, metav1.DeletePropagationForeground, metav1.DeletePropagationBackground
	for _, c := range []struct {
		name     string
		gc       bool
		has      string
		opts     metav1.DeleteOptions
		want     string // the finalizers after the request
		wantGone bool
	}{
		{"no collector, orphan", false, "", metav1.DeleteOptions{PropagationPolicy: &orphan}, "", true},
		{"no collector, foreground", false, "", metav1.DeleteOptions{PropagationPolicy: &foreground}, "", true},
		{"no collector, orphanDependents", false, "", orphanDependents(true), "", true},
		{"no collector, the client's own", false, "orphan", metav1.DeleteOptions{PropagationPolicy: &background}, "orphan", false},
		{"nothing", true, "", metav1.DeleteOptions{}, "", true},
		{"background", true, "", metav1.DeleteOptions{PropagationPolicy: &background}, "", true},
		{"orphan", true, "", metav1.DeleteOptions{PropagationPolicy: &orphan}, "orphan", false},
		{"foreground", true, "example.com/f", metav1.DeleteOptions{PropagationPolicy: &foreground}, "example.com/f foregroundDeletion", false},
		{"orphanDependents", true, "", orphanDependents(true), "orphan", false},
		{"not orphanDependents", true, "orphan", orphanDependents(false), "", true},
		{"the object decides", true, "orphan", metav1.DeleteOptions{}, "orphan", false},
		{"foreground for orphan", true, "orphan", metav1.DeleteOptions{PropagationPolicy: &foreground}, "foregroundDeletion", false},
		{"orphan for foreground", true, "foregroundDeletion", metav1.DeleteOptions{PropagationPolicy: &orphan}, "orphan", false},
		{"same again", true, "orphan example.com/f", metav1.DeleteOptions{PropagationPolicy: &orphan}, "orphan example.com/f", false},
		{"background takes away", true, "foregroundDeletion", metav1.DeleteOptions{PropagationPolicy: &background}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := setup(t, func(o *registry.Options) { o.GarbageCollection = func() bool { return c.gc } })
			f.create("a", finalizers(strings.Fields(c.has)...))
			_, gone := f.delete("a", &c.opts)
			equal(t, "gone", gone, c.wantGone)
			if !gone {
				equal(t, "finalizers", strings.Join(f.get("a").Finalizers, " "), c.want)
			}
		})
	}
}

func TestGracefulDelete(t *testing.T) {
	f := setup(t, strategy(registry.Strategy[*Widget]{
		GracefulDelete: func(_ *registry.Call, w *Widget, o *metav1.DeleteOptions) bool {
			if o.GracePeriodSeconds == nil {
				o.GracePeriodSeconds = ptr(int64(30))
			}
			return w.Spec.Size > 0
		},
	}))
	w := f.create("a")
	marked, gone := f.delete("a", nil)
	equal(t, "gone", gone, false)
	equal(t, "grace", *marked.DeletionGracePeriodSeconds, 30)
	equal(t, "deletionTimestamp", marked.DeletionTimestamp.Sub(w.CreationTimestamp.Time), 30*time.Second)
	equal(t, "generation", marked.Generation, 2)

	again, gone := f.delete("a", nil)
	equal(t, "gone", gone, false)
	equal(t, "unchanged", again.ResourceVersion, marked.ResourceVersion)
	again, _ = f.delete("a", &metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(60))})
	equal(t, "not longer", again.ResourceVersion, marked.ResourceVersion)
	again, gone = f.delete("a", &metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(10))})
	equal(t, "gone", gone, false)
	equal(t, "shorter", again.DeletionTimestamp.Sub(w.CreationTimestamp.Time), 10*time.Second)
	equal(t, "generation", again.Generation, 2)
	again, _ = f.delete("a", &metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(-5))})
	equal(t, "negative is one", *again.DeletionGracePeriodSeconds, 1)

	// An update of an object without finalizers does not end the grace period.
	_, err := f.put(widget("a"))
	must(t, err)
	f.get("a")
	_, gone = f.delete("a", &metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))})
	equal(t, "gone", gone, true)

	f.create("b", finalizers("example.com/f"))
	held, gone := f.delete("b", &metav1.DeleteOptions{GracePeriodSeconds: ptr(int64(0))})
	equal(t, "gone", gone, false)
	equal(t, "grace", *held.DeletionGracePeriodSeconds, 0)

	f.create("c", func(w *Widget) { w.Spec.Size = 0 })
	_, gone = f.delete("c", nil)
	equal(t, "not graceful", gone, true)
}

func TestDeleteCollection(t *testing.T) {
	f := setup(t, nil)
	red := func(w *Widget) { w.Labels = map[string]string{"color": "red"} }
	for _, name := range []string{"a", "b", "c"} {
		f.create(name, red)
	}
	f.create("held", red, finalizers("example.com/f"))
	f.create("blue")
	_, err := f.typed.Create(f.ctx, "other", widget("a", red))
	must(t, err)

	page, err := f.reg.DeleteRecords(f.ctx, &metav1.DeleteOptions{}, storage.ListOptions{
		Selection: storage.Selection{Labels: labels.SelectorFromSet(labels.Set{"color": "red"})},
	})
	must(t, err)
	var names []string
	for rec := range page.Records {
		w := f.decode(rec)
		equal(t, "as listed", w.DeletionTimestamp == nil, true)
		names = append(names, w.Name)
	}
	equal(t, "deleted", strings.Join(names, " "), "a b c held")
	left, err := f.typed.List(f.ctx, "ns", registry.ListOptions{})
	must(t, err)
	equal(t, "left", len(left), 2)
	equal(t, "held", f.get("held").DeletionTimestamp != nil, true)
	others, err := f.typed.List(f.ctx, "other", registry.ListOptions{})
	must(t, err)
	equal(t, "other namespace", len(others), 1)

	all := f.ctx.In("")
	_, err = f.reg.DeleteRecords(all, &metav1.DeleteOptions{DryRun: []string{"All"}}, storage.ListOptions{})
	must(t, err)
	_, err = f.reg.DeleteRecords(all, nil, storage.ListOptions{})
	must(t, err)
	left, err = f.typed.List(f.ctx, "", registry.ListOptions{})
	must(t, err)
	equal(t, "left in all namespaces", len(left), 1)
}

// plant stores bytes under the widget's key that are no widget.
func (f *fixture) plant(name string) {
	f.t.Helper()
	c := storage.Commit{Key: "/registry/example.com/widgets/ns/" + name, Expect: storage.AnyRevision, Value: []byte("\x01")}
	_, err := f.backend.Commit(f.ctx, c)
	must(f.t, err)
}

func unsafely() *metav1.DeleteOptions {
	return &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}
}

func TestDeleteOfAnUnreadableObject(t *testing.T) {
	f := setup(t, func(o *registry.Options) {
		refuse := admission.ValidatorFunc(func(context.Context, *admission.Request) error { return errors.New("nothing is deleted") })
		o.Policy = admission.Chain{{Validator: refuse}}
	})
	f.plant("a")
	_, _, err := f.reg.DeleteRecord(f.ctx, "a", nil)
	wantStatus(t, err, 500, metav1.StatusReasonInternalError, "Internal error occurred: StorageError: corrupt object, ...")
	rec, gone, err := f.reg.DeleteRecord(f.ctx, "a", unsafely())
	if err != nil || !gone || !rec.Body.IsZero() {
		t.Errorf("%+v, %v, %v", rec, gone, err)
	}
	_, err = f.reg.GetRecord(f.ctx, "a", storage.Read{})
	wantStatus(t, err, 404, metav1.StatusReasonNotFound, "...")

	f.plant("a")
	if last, gone, err := f.typed.Delete(f.ctx, "ns", "a", unsafely()); err != nil || !gone || last != nil {
		t.Errorf("typed: %+v, %v, %v", last, gone, err)
	}
	f.plant("a")
	try := unsafely()
	try.DryRun = []string{metav1.DryRunAll}
	if rec, gone, err := f.reg.DeleteRecord(f.ctx, "a", try); err != nil || !gone || !rec.Body.IsZero() {
		t.Errorf("a trial: %+v, %v, %v", rec, gone, err)
	}
	_, err = f.reg.GetRecord(f.ctx, "a", storage.Read{})
	wantStatus(t, err, 500, metav1.StatusReasonInternalError, "...")
	_, _, err = f.reg.DeleteRecord(f.ctx, "never", unsafely())
	wantStatus(t, err, 404, metav1.StatusReasonNotFound, "...")

	// A store without this capability returns an error, also below a cache.
	c, err := cacher.New(failing{err: storage.ErrNotFound}, cacher.Options{Namespaced: true})
	must(t, err)
	defer c.Close()
	for _, store := range []storage.Interface{failing{err: storage.ErrNotFound}, c} {
		_, _, err = registryOver(t, store).DeleteRecord(f.ctx, "a", unsafely())
		wantStatus(t, err, 500, metav1.StatusReasonInternalError, "Internal error occurred: no unsafe deleter provided, can not honor ignoreStoreReadErrorWithClusterBreakingPotential")
	}
}
