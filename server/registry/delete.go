package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DeleteRecord implements RecordDeleter. It does not change opts, which must be valid. With the option
// IgnoreStoreReadErrorWithClusterBreakingPotential it deletes an object that cannot be read, and refuses one that can be read.
// The caller must check that the user may do this, as for all authorization.
func (r *Registry) DeleteRecord(call *Call, name string, opts *metav1.DeleteOptions) (storage.Record, bool, error) {
	return r.deleteRecord(call, name, opts, false)
}

// deleteRecord is DeleteRecord. admitted says that admission has reviewed the request already.
func (r *Registry) deleteRecord(call *Call, name string, opts *metav1.DeleteOptions, admitted bool) (storage.Record, bool, error) {
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	call, err := call.begin(r.policy, opts.DryRun)
	if err != nil {
		return storage.Record{}, false, err
	}
	key, err := r.key(call, name)
	if err != nil {
		return storage.Record{}, false, err
	}
	if on := opts.IgnoreStoreReadErrorWithClusterBreakingPotential; on != nil && *on {
		err := r.deleteUnreadable(call, key, name, opts)
		return storage.Record{}, err == nil, err
	}
	d := &deletion{registry: r, call: call, name: name, opts: opts, admitted: admitted}
	rec, err := r.store.Update(call.Context, key, storage.WriteOptions{DryRun: call.DryRun, Account: call.Account}, d.apply)
	d.end(call.Context, r.status(err, name))
	if err != nil {
		return storage.Record{}, false, r.status(err, name)
	}
	return rec, d.gone, nil
}

// deleteUnreadable deletes an object that cannot be read. Admission, preconditions and finalizers are skipped, because they need
// the object. An object that can be read is refused, with the error of kube-apiserver up to 1.36. Version 1.37 returns a
// Conflict, after which clients try again.
func (r *Registry) deleteUnreadable(call *Call, key, name string, opts *metav1.DeleteOptions) error {
	err := storage.ErrUnsupported
	if store, ok := r.store.(storage.UnreadableDeleter); ok {
		_, err = store.DeleteUnreadable(call.Context, key, storage.WriteOptions{DryRun: call.DryRun})
	}
	switch {
	case errors.Is(err, storage.ErrUnsupported):
		return apierrors.NewInternalError(errors.New("no unsafe deleter provided, can not honor ignoreStoreReadErrorWithClusterBreakingPotential"))
	case errors.Is(err, storage.ErrReadable):
		return excerpt.Invalid(schema.GroupKind{Group: r.resource.Group, Kind: r.resource.Resource}, name, field.ErrorList{field.Invalid(
			field.NewPath("ignoreStoreReadErrorWithClusterBreakingPotential"), true, "is exclusively used to delete corrupt object(s), try again by removing this option")})
	}
	return r.status(err, name)
}

// DeleteRecords implements RecordDeleter. It lists the records, deletes them one after the other, and returns the page of the
// list. If the storage.ListOptions have a Portion, it reads and deletes the records in portions, and the page that it returns
// reads them in portions again. Records that no longer exist are skipped. Another error ends DeleteRecords; the deletions before
// it are not undone.
func (r *Registry) DeleteRecords(call *Call, opts *metav1.DeleteOptions, list storage.ListOptions) (storage.Page, error) {
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	call, err := call.begin(r.policy, opts.DryRun) // one policy for all deletions
	if err != nil {
		return storage.Page{}, err
	}
	page, err := r.ListRecords(call, list)
	if err != nil {
		return storage.Page{}, err
	}
	for portion := page; ; {
		if err := r.deletePortion(call, portion, opts); err != nil {
			return storage.Page{}, err
		}
		if portion.Next == nil {
			return page, nil
		}
		if portion, err = portion.Next(call.Context); err != nil {
			return storage.Page{}, err
		}
	}
}

// deletePortion deletes the records of a portion.
func (r *Registry) deletePortion(call *Call, p storage.Page, opts *metav1.DeleteOptions) error {
	for rec := range p.Records {
		if err := call.Err(); err != nil {
			return r.status(err, "")
		}
		where, name := call, rec.Key
		if r.namespaced {
			ns, rest, _ := strings.Cut(rec.Key, "/")
			where, name = call.In(ns), rest
		}
		if _, _, err := r.DeleteRecord(where, name, opts); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// deletion is one running DELETE. gone is the result of the last call of apply.
type deletion struct {
	registry *Registry
	call     *Call
	name     string
	opts     *metav1.DeleteOptions
	admitted bool

	attempt
	gone bool
}

// apply is the storage.ChangeFunc of a DELETE. It deletes the object, or marks it for deletion until its finalizers are removed
// or its grace period ends.
func (d *deletion) apply(ctx context.Context, obj runtime.Object, _ storage.Record) (out storage.Outcome, err error) {
	d.restart(ctx)
	d.gone = false
	defer func() { d.asked = err == nil }()
	call, r := d.call.WithContext(ctx), d.registry
	m, err := r.accept(obj)
	if err != nil {
		return storage.Outcome{}, err
	}
	if err := d.preconditions(m); err != nil {
		return storage.Outcome{}, err
	}
	if !d.admitted {
		if err := d.admit(call, obj); err != nil {
			return storage.Outcome{}, err
		}
	}
	opts := d.opts.DeepCopy()
	if f := r.strategy.terminate; f != nil {
		first := m.GetDeletionTimestamp() == nil
		if f(call, obj, r.timestamp()) {
			if first && r.collected() && !r.strategy.terminateAlone {
				m.SetFinalizers(collectorFinalizers(m.GetFinalizers(), terminationPolicy(opts)))
			}
			return storage.Outcome{Object: obj}, nil
		}
	}
	if p := opts.GracePeriodSeconds; p != nil && *p < 0 {
		*p = 1
	}
	graceful, pending, err := d.grace(call, obj, m, opts)
	if err != nil || pending {
		return storage.Outcome{}, err
	}
	switch {
	case r.strategy.noDependents:
		m.SetFinalizers(withCollectorFinalizer(m.GetFinalizers(), ""))
	case r.collected():
		m.SetFinalizers(collectorFinalizers(m.GetFinalizers(), opts))
	}
	waits := len(m.GetFinalizers()) > 0 || r.finalizing(obj)
	if waits && !graceful {
		d.mark(m)
	}
	if waits || graceful && *m.GetDeletionGracePeriodSeconds() > 0 {
		return storage.Outcome{Object: obj}, nil
	}
	d.gone = true
	return storage.Outcome{Delete: true}, nil
}

func (d *deletion) preconditions(m metav1.Object) error {
	p := d.opts.Preconditions
	if p == nil {
		return nil
	}
	if d.registry.strategy.terminate != nil {
		return d.terminatePreconditions(m, p)
	}
	// These conflicts contain the kind in the place of the resource.
	kind := schema.GroupResource{Group: d.registry.kind.GVK.Group, Resource: d.registry.kind.GVK.Kind}
	if p.UID != nil && *p.UID != m.GetUID() {
		return apierrors.NewConflict(kind, d.name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, m.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion() {
		return apierrors.NewConflict(kind, d.name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, m.GetResourceVersion()))
	}
	return nil
}

// terminatePreconditions uses the messages of kube-apiserver for kinds with a DELETE of their own.
func (d *deletion) terminatePreconditions(m metav1.Object, p *metav1.Preconditions) error {
	failed := "Precondition failed"
	if d.registry.strategy.terminateAlone {
		failed = "precondition failed"
	}
	if p.UID != nil && *p.UID != m.GetUID() {
		return apierrors.NewConflict(d.registry.resource, d.name, fmt.Errorf("%s: UID in precondition: %s, UID in object meta: %s", failed, *p.UID, m.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion() {
		return apierrors.NewConflict(d.registry.resource, d.name, fmt.Errorf("%s: ResourceVersion in precondition: %s, ResourceVersion in object meta: %s", failed, *p.ResourceVersion, m.GetResourceVersion()))
	}
	return nil
}

// admit calls mutating and validating admission. There is no new object to change, but a mutator may refuse the request.
func (d *deletion) admit(call *Call, obj runtime.Object) error {
	r := d.registry
	chain := call.Policy.Plugins
	req := r.request(call, admission.Delete, d.name, nil)
	mutates, validates := chain.Mutates(req), chain.Validates(req)
	if !mutates && !validates {
		return nil
	}
	d.req, req.Options = req, d.opts.DeepCopy()
	req.Show(nil, obj, true)
	if mutates {
		if err := chain.Mutate(call, req); err != nil {
			return r.refused(err, d.name)
		}
	}
	return r.validateAdmission(call, req, d.name, nil, obj)
}

// grace marks an object for deletion after a grace period, if the strategy has one. pending says that the object is marked
// already and nothing changes.
func (d *deletion) grace(call *Call, obj runtime.Object, m metav1.Object, opts *metav1.DeleteOptions) (graceful, pending bool, err error) {
	check := d.registry.strategy.gracefulDelete
	if check == nil {
		return false, false, nil
	}
	if since := m.GetDeletionTimestamp(); since != nil {
		old := m.GetDeletionGracePeriodSeconds()
		if old == nil {
			return false, false, nil
		}
		if opts.GracePeriodSeconds == nil || *opts.GracePeriodSeconds >= *old {
			return false, true, nil
		}
		// The grace period can only become shorter. It starts at the same time.
		period := *opts.GracePeriodSeconds
		at := metav1.NewTime(since.Add(time.Duration(period-*old) * time.Second))
		m.SetDeletionTimestamp(&at)
		m.SetDeletionGracePeriodSeconds(&period)
		return true, false, nil
	}
	if !check(call, obj, opts) {
		return false, false, nil
	}
	if opts.GracePeriodSeconds == nil {
		return false, false, apierrors.NewInternalError(fmt.Errorf("GracefulDelete of %s set no GracePeriodSeconds", d.registry.kind.GVK))
	}
	period := max(*opts.GracePeriodSeconds, 0)
	at := metav1.NewTime(d.registry.timestamp().Add(time.Duration(period) * time.Second))
	m.SetDeletionTimestamp(&at)
	m.SetDeletionGracePeriodSeconds(&period)
	countDeletion(m)
	return true, false, nil
}

// mark marks an object that waits for its finalizers.
func (d *deletion) mark(m metav1.Object) {
	now := d.registry.timestamp()
	switch at := m.GetDeletionTimestamp(); {
	case at == nil:
		countDeletion(m)
		m.SetDeletionTimestamp(&now)
	case at.After(now.Time):
		m.SetDeletionTimestamp(&now)
	}
	m.SetDeletionGracePeriodSeconds(new(int64))
}

// collected reports whether a garbage collector works on the objects.
func (r *Registry) collected() bool { return r.gc != nil && r.gc() }

// finalizing reports whether a field of the kind, other than metadata.finalizers, keeps an object.
func (r *Registry) finalizing(obj runtime.Object) bool {
	return r.strategy.finalizing != nil && r.strategy.finalizing(obj)
}

// countDeletion increases the generation, so that controllers that compare it notice the deletion.
func countDeletion(m metav1.Object) {
	if m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
}

// collectorFinalizers returns the finalizers with the garbage collector's finalizer that the options request, and without its
// other finalizers.
func collectorFinalizers(finalizers []string, opts *metav1.DeleteOptions) []string {
	want := ""
	orphan := opts.OrphanDependents //nolint:staticcheck // clients may still send it
	switch policy := opts.PropagationPolicy; {
	case orphan != nil && *orphan:
		want = metav1.FinalizerOrphanDependents
	case orphan != nil:
	case policy != nil && *policy == metav1.DeletePropagationOrphan:
		want = metav1.FinalizerOrphanDependents
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		want = metav1.FinalizerDeleteDependents
	case policy != nil:
	default: // no policy: the object's finalizers stay
		return finalizers
	}
	return withCollectorFinalizer(finalizers, want)
}

// terminationPolicy returns the options of a DELETE of a kind that has a Terminate. There, an orphanDependents of false means the
// policy Foreground, as in kube-apiserver for namespaces. For other kinds it means Background.
func terminationPolicy(opts *metav1.DeleteOptions) *metav1.DeleteOptions {
	orphan := opts.OrphanDependents //nolint:staticcheck // clients may still send it
	if orphan == nil || *orphan {
		return opts
	}
	return &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
}

// withCollectorFinalizer returns the finalizers with one finalizer of the garbage collector, or none if it is "".
func withCollectorFinalizer(finalizers []string, want string) []string {
	if want != "" && slices.Contains(finalizers, want) && !slices.Contains(finalizers, other(want)) {
		return finalizers
	}
	kept := make([]string, 0, len(finalizers)+1)
	for _, f := range finalizers {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			kept = append(kept, f)
		}
	}
	if want != "" {
		kept = append(kept, want)
	}
	return kept
}

// other returns the garbage collector's other finalizer.
func other(finalizer string) string {
	if finalizer == metav1.FinalizerOrphanDependents {
		return metav1.FinalizerDeleteDependents
	}
	return metav1.FinalizerOrphanDependents
}
