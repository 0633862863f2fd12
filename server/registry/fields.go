package registry

import (
	"context"
	"fmt"
	"slices"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
)

// mutate lets the mutators change the object of a request. One that leaves managedFields which nobody can read, or drops
// them as clients do that do not know the field, has changed all else: the entries are put back, with a warning in the
// first case. It returns the object's metadata.
func (r *Registry) mutate(ctx context.Context, req *admission.Request, m metav1.Object) (metav1.Object, error) {
	chain := r.chain()
	if len(chain.Mutators) == 0 {
		return m, nil
	}
	before := runtime.DeepCopy(m.GetManagedFields())
	if err := chain.Mutate(ctx, req); err != nil {
		return nil, err
	}
	m, err := r.accept(req.Object)
	if err != nil {
		return nil, err
	}
	after := m.GetManagedFields()
	if after == nil {
		m.SetManagedFields(before)
	}
	if err := managedfields.ValidateManagedFields(after); err != nil {
		m.SetManagedFields(before)
		warn(ctx, []string{fmt.Sprintf(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: %v", err)})
	}
	return m, nil
}

// keepTimes takes back the new times in managedFields when they are all that is new: a field manager cannot know what
// defaults, mutators and strategies have made of what it saw.
func keepTimes(obj, old runtime.Object, m, was metav1.Object) {
	entries, before := m.GetManagedFields(), was.GetManagedFields()
	switch {
	case len(entries) == 0, m.GetGeneration() != was.GetGeneration(): // the usual cases, and cheap
		return
	case !slices.EqualFunc(entries, before, sameEntry), slices.EqualFunc(entries, before, sameTime):
		return
	}
	m.SetManagedFields(before)
	if !sameText(obj, old) {
		m.SetManagedFields(entries)
	}
}

func sameTime(a, b metav1.ManagedFieldsEntry) bool { return a.Time.Equal(b.Time) }

// sameEntry compares two entries in all but their times.
func sameEntry(a, b metav1.ManagedFieldsEntry) bool {
	a.Time, b.Time = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}
