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

// DeleteRecord implements RecordDeleter. opts is not changed, and expected to be valid. With the option
// IgnoreStoreReadErrorWithClusterBreakingPotential it deletes what cannot be read, and nothing else; whether the user may
// is the caller's business, as all authorization is.
func (r *Registry) DeleteRecord(call *Call, name string, opts *metav1.DeleteOptions) (storage.Record, bool, error) {
	return r.deleteRecord(call, name, opts, false)
}

// deleteRecord is DeleteRecord; admitted says that admission has judged the request already.
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

// deleteUnreadable deletes an object that cannot be read, without admission, preconditions and finalizers, which all
// would have to look at it. One that can be read needs no such option, and is refused as kube-apiserver does up to 1.36;
// from 1.37 it says Conflict, which clients answer by trying again.
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

// DeleteRecords implements RecordDeleter: it lists, deletes one after the other, and returns the page as it was
// listed, in portions if the options of the list ask for these. Records that have disappeared in the meantime are passed over;
// another error ends it, with the deletions until then done.
func (r *Registry) DeleteRecords(call *Call, opts *metav1.DeleteOptions, list storage.ListOptions) (storage.Page, error) {
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	call, err := call.begin(r.policy, opts.DryRun) // one policy for all
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

// deletion is one DELETE under way. gone is that of the last call of apply.
type deletion struct {
	registry *Registry
	call     *Call
	name     string
	opts     *metav1.DeleteOptions
	admitted bool

	attempt
	gone bool
}

// apply is the storage.ChangeFunc of a DELETE: the object goes, or is marked and waits for its finalizers or the end
// of its grace period.
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
				m.SetFinalizers(collectorFinalizers(m.GetFinalizers(), opts))
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
	if r.collected() {
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
	// The kind stands where other conflicts name the resource.
	kind := schema.GroupResource{Group: d.registry.kind.GVK.Group, Resource: d.registry.kind.GVK.Kind}
	if p.UID != nil && *p.UID != m.GetUID() {
		return apierrors.NewConflict(kind, d.name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, m.GetUID()))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != m.GetResourceVersion() {
		return apierrors.NewConflict(kind, d.name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, m.GetResourceVersion()))
	}
	return nil
}

// terminatePreconditions is worded as kube-apiserver does for kinds with a DELETE of their own.
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

// admit asks the whole admission chain: there is no new object to change, but a mutator may refuse.
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

// grace marks an object for deletion after a grace period, when its strategy has one. pending says that the
// object waits already, and that nothing changes.
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
		// Only a shorter period may be asked for now; it counts from the same moment.
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

// mark says that an object waits for its finalizers.
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

// collected reports whether a garbage collector looks after the objects.
func (r *Registry) collected() bool { return r.gc != nil && r.gc() }

// finalizing reports whether something of the kind's own, besides its finalizers, keeps an object.
func (r *Registry) finalizing(obj runtime.Object) bool {
	return r.strategy.finalizing != nil && r.strategy.finalizing(obj)
}

// countDeletion lets controllers that follow the generation see that the object is to be deleted.
func countDeletion(m metav1.Object) {
	if m.GetGeneration() > 0 {
		m.SetGeneration(m.GetGeneration() + 1)
	}
}

// collectorFinalizers returns the finalizers with those of the garbage collector as the options want them.
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
	default: // what the object says
		return finalizers
	}
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

// other is the other of the collector's two finalizers.
func other(finalizer string) string {
	if finalizer == metav1.FinalizerOrphanDependents {
		return metav1.FinalizerDeleteDependents
	}
	return metav1.FinalizerOrphanDependents
}
