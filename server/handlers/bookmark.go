package handlers

import (
	"fmt"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bookmarks are the objects of BOOKMARK events of a kind. They are empty, and get their resourceVersion when an event is written.
type bookmarks struct {
	plain      codec.Document
	initialEnd codec.Document // with the annotation that marks the end of the initial events
}

// newBookmarks makes the bookmarks of the kind. It is called for the first bookmark of a watch only.
func (e *endpoint) newBookmarks() (b bookmarks, err error) {
	if b.plain, err = e.emptyDocument(markAnnotations(false)); err == nil {
		b.initialEnd, err = e.emptyDocument(markAnnotations(true))
	}
	if err != nil {
		err = fmt.Errorf("bookmark of kind %s: %w", e.Kind, err)
	}
	return b, err
}

// markAnnotations returns the annotations of a bookmark.
func markAnnotations(initialEnd bool) map[string]string {
	if !initialEnd {
		return nil
	}
	return map[string]string{metav1.InitialEventsAnnotationKey: "true"}
}

func (e *endpoint) emptyDocument(annotations map[string]string) (codec.Document, error) {
	obj, err := e.mark("", annotations)
	if err != nil {
		return codec.Document{}, err
	}
	return codec.EncodeDocument(obj, e.Kind)
}

// mark returns the object of a bookmark, in the version of the URL.
func (e *endpoint) mark(resourceVersion string, annotations map[string]string) (runtime.Object, error) {
	obj := e.Empty()
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	m.SetResourceVersion(resourceVersion)
	m.SetAnnotations(annotations)
	return obj, nil
}
