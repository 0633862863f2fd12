package registry

import (
	"maps"
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// keepTimes restores the old times in managedFields if they are the only change of an update. The field manager cannot see that,
// because defaults, mutators and strategies change the object afterwards.
func keepTimes(obj, old runtime.Object, m, was metav1.Object) {
	entries, before := m.GetManagedFields(), was.GetManagedFields()
	switch {
	case len(entries) == 0, m.GetGeneration() != was.GetGeneration(): // the usual cases, which are cheap to check
		return
	case !slices.EqualFunc(entries, before, sameEntry), slices.EqualFunc(entries, before, sameTime):
		return
	case !maps.Equal(m.GetLabels(), was.GetLabels()), !maps.Equal(m.GetAnnotations(), was.GetAnnotations()):
		return // without a comparison of the objects, which may be large
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
