package registry

import (
	"slices"

	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
