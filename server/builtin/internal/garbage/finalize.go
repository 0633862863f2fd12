package garbage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// releaseAttempts is the number of attempts for which a foreground deletion waits for a kind that cannot be listed. With the
// delays between the attempts that takes 10 to 20 s. After that the kind is assumed to have only the dependents that were seen.
// The policy Orphan never makes this assumption: missed dependents would be deleted, which cannot be undone.
const releaseAttempts = 10

// errUnseen is returned if a list has dependents that the graph has not received yet.
var errUnseen = errors.New("garbage: a dependent has not been seen yet")

// release removes the finalizer of a foreground deletion that waits for no dependent.
func (w *worker) release(ctx context.Context, t task, of objects, attempt int) error {
	if still, err := t.still(ctx, of, state.waiting); !still {
		return err
	}
	found, err := w.dependentsOf(ctx, t)
	if err != nil {
		return err
	}
	if err := found.failed(); err != nil {
		if attempt < releaseAttempts {
			return err
		}
		w.log.Warn("garbage collector: an object that is deleted in the foreground goes, though dependents of a kind that cannot be listed may be left",
			zap.String("resource", t.kind.String()), zap.String("object", t.where()), zap.Error(err))
	}
	w.mu.Lock()
	now, last := w.graph.task(t.uid).do, len(w.graph.since) == 1
	for _, d := range found.dependents {
		if d.waitedFor && !w.graph.waitsFor(t.uid, d.uid) {
			w.mu.Unlock()
			return errUnseen
		}
	}
	w.mu.Unlock()
	if now != release {
		return nil // the graph received a dependent since
	}
	if last {
		w.sweeps.forget()
	}
	return t.unfinalize(ctx, of, metav1.FinalizerDeleteDependents)
}

// orphan removes the references to an object from all its dependents, and then its finalizer orphan.
func (w *worker) orphan(ctx context.Context, t task, of objects) error {
	if still, err := t.still(ctx, of, state.orphaning); !still {
		return err
	}
	found, err := w.dependentsOf(ctx, t)
	if err == nil {
		err = found.failed()
	}
	if err != nil {
		return err
	}
	children := found.dependents
	w.mu.Lock()
	for _, d := range w.graph.dependents(t.uid) {
		children = append(children, dependent{task: d, of: w.objects[d.kind]})
	}
	w.mu.Unlock()
	slices.SortFunc(children, func(a, b dependent) int { return compareUID(a.uid, b.uid) })
	children = slices.CompactFunc(children, func(a, b dependent) bool { return a.uid == b.uid })
	errs := make([]error, len(children))
	parallel(len(children), w.atOnce, func(i int) { errs[i] = children[i].abandon(ctx, t.uid) })
	if err := joined(errs); err != nil {
		return err
	}
	return t.unfinalize(ctx, of, metav1.FinalizerOrphanDependents)
}

// reportedErrors is the maximum number of errors in one message when many dependents fail, mostly for the same reason.
const reportedErrors = 3

// joined joins the first errors and the number of the remaining ones.
func joined(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if more := len(errs) - reportedErrors; more > 0 {
		errs = append(errs[:reportedErrors:reportedErrors], fmt.Errorf("and %d more dependents", more))
	}
	return errors.Join(errs...)
}

// abandon removes the references to an owner from a dependent.
func (d *dependent) abandon(ctx context.Context, owner types.UID) error {
	if d.of == nil {
		return nil // its kind was withdrawn
	}
	err := d.of.Change(ctx, d.namespace, d.name, func(m metav1.Object) error {
		refs := slices.Clone(m.GetOwnerReferences())
		kept := slices.DeleteFunc(refs, func(ref metav1.OwnerReference) bool { return ref.UID == owner })
		if m.GetUID() != d.uid || len(kept) == len(m.GetOwnerReferences()) {
			return errMoved
		}
		m.SetOwnerReferences(kept)
		return nil
	})
	if apierrors.IsNotFound(err) || errors.Is(err, errMoved) {
		return nil
	}
	return err
}

// unfinalize removes a finalizer.
func (t *task) unfinalize(ctx context.Context, of objects, finalizer string) error {
	err := of.Change(ctx, t.namespace, t.name, func(m metav1.Object) error {
		if m.GetUID() != t.uid || m.GetDeletionTimestamp() == nil || !slices.Contains(m.GetFinalizers(), finalizer) {
			return errMoved
		}
		m.SetFinalizers(slices.DeleteFunc(slices.Clone(m.GetFinalizers()), func(f string) bool { return f == finalizer }))
		return nil
	})
	if apierrors.IsNotFound(err) || errors.Is(err, errMoved) {
		return nil
	}
	return err
}

// atOnce is the maximum number of concurrent calls of one task.
const atOnce = 8
