package wire

import (
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Item is one object of an answer: a record, or an object if Object is not nil. Nothing of it is changed.
type Item struct {
	Record storage.Record
	Object runtime.Object
	// Forms keeps what Record is converted to; may be nil.
	Forms *storage.Forms
	// Gone says that Record is shown as deleted.
	Gone bool
	// Made makes the object that Record is in the version of the URL. nil: Record is decoded, and converted alone.
	Made func() (runtime.Object, error)
	// Bookmark says that this is the empty object of a BOOKMARK event, InitialEnd that the event ends the initial ones.
	Bookmark, InitialEnd bool

	fresh bool // nothing that is kept may be used
}

// isStatus reports whether an item is a Status, which every form shows as itself.
func (it *Item) isStatus() bool {
	_, is := it.Object.(*metav1.Status)
	return is
}

// resourceVersion is that of an item.
func (it *Item) resourceVersion() string {
	if it.Object == nil {
		return ResourceVersion(it.Record.Revision)
	}
	m, err := meta.Accessor(it.Object)
	if err != nil {
		return ""
	}
	return m.GetResourceVersion()
}

// nameAndCreation returns the name of an item, and when it was created; zero if that is not known.
func (it *Item) nameAndCreation() (string, time.Time) {
	if it.Object == nil {
		at, _ := time.Parse(time.RFC3339, it.Record.Body.Field("metadata.creationTimestamp")) // zero when absent
		return it.Record.Body.Field("metadata.name"), at
	}
	m, err := meta.Accessor(it.Object)
	if err != nil {
		return "", time.Time{}
	}
	return m.GetName(), m.GetCreationTimestamp().Time
}
