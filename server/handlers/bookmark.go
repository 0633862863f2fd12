package handlers

import (
	"fmt"
	"strconv"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bookmarks are the empty objects of a kind that BOOKMARK events carry, but for their resourceVersion.
type bookmarks struct {
	plain      codec.Document
	initialEnd codec.Document // with the annotation that ends the initial events
}

// newBookmarks makes the bookmarks of the kind, which only a watch needs.
func (e *endpoint) newBookmarks() (b bookmarks, err error) {
	if b.plain, err = e.emptyDocument(nil); err == nil {
		b.initialEnd, err = e.emptyDocument(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if err != nil {
		err = fmt.Errorf("bookmark of kind %s: %w", e.kind, err)
	}
	return b, err
}

func (e *endpoint) emptyDocument(annotations map[string]string) (codec.Document, error) {
	obj := e.emptyObject()
	m, err := meta.Accessor(obj)
	if err != nil {
		return codec.Document{}, err
	}
	m.SetAnnotations(annotations)
	return codec.EncodeDocument(obj, e.kind)
}

// emptyObject is an object of the kind with nothing in it; of a kind not in the scheme it has metadata only.
func (e *endpoint) emptyObject() runtime.Object {
	if e.known != nil {
		return e.known.New()
	}
	return &metav1.PartialObjectMetadata{}
}

func resourceVersion(revision int64) string {
	if revision == 0 {
		return ""
	}
	return strconv.FormatInt(revision, 10)
}
