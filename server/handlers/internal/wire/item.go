package wire

import (
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Item is one object of an answer: the object in Object or, if that is nil, the record in Record. The Item's contents must not be
// changed.
type Item struct {
	Record storage.Record // the record; used if Object is nil
	Object runtime.Object // the object; nil if the Item is a record
	// Forms caches the encodings of Record; it may be nil.
	Forms *storage.Forms
	// Gone says that the Item is a deleted object, in a DELETED event.
	Gone bool
	// Made returns Record as an object in the version of the URL. If it is nil, Record is decoded and converted alone.
	Made func() (runtime.Object, error)
	// Bookmark says that the Item is the empty object of a BOOKMARK event. InitialEnd says that the event ends the initial
	// events.
	Bookmark, InitialEnd bool

	fresh bool // no cached encoding may be used
}

// isStatus reports whether an item is a Status. A Status is written as it is in every form.
func (it *Item) isStatus() bool {
	_, is := it.Object.(*metav1.Status)
	return is
}

// resourceVersion returns the resourceVersion of an item.
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

// nameAndCreation returns the name and the creation time of an item; a time that is not known is zero.
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
