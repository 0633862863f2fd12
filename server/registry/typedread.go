package registry

import (
	"context"
	"iter"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// ListOptions select objects. The zero ListOptions selects all.
type ListOptions struct {
	// Labels selects objects by their labels; nil selects all.
	Labels labels.Selector
	// Fields selects objects by selectable fields of the kind, such as spec.color, metadata.name and metadata.namespace; nil selects
	// all. Any other field is a BadRequest. If the cache has an index of the field or label, the cost depends only on the objects
	// that are found.
	Fields fields.Selector
	// Limit is the greatest number of objects; 0 is all. Watch ignores it.
	Limit int
}

// selection returns the options as the storage has them.
func (t *Typed[T]) selection(o ListOptions) (storage.Selection, error) {
	s := storage.Selection{Labels: o.Labels, Fields: o.Fields}
	if o.Fields == nil {
		return s, nil
	}
	for _, r := range o.Fields.Requirements() {
		if _, _, err := t.registry.scheme.ConvertFieldLabel(t.registry.kind.GVK, r.Field, r.Value); err != nil {
			return s, apierrors.NewBadRequest(err.Error())
		}
	}
	return s, nil
}

// List returns the objects of a namespace, or of all namespaces if namespace is "", in the order of their namespaces and names. It
// reads the latest state.
func (t *Typed[T]) List(ctx context.Context, namespace string, o ListOptions) ([]T, error) {
	page, err := t.page(ctx, namespace, o)
	if err != nil {
		return nil, err
	}
	items := make([]T, 0, page.Count)
	for obj, err := range t.decoded(page) {
		if err != nil {
			return nil, err
		}
		items = append(items, obj)
	}
	return items, nil
}

// All is like List, but decodes the objects one by one while the caller iterates over the sequence. All objects are of one state
// of the storage, that of the time of the call. An error ends the sequence.
func (t *Typed[T]) All(ctx context.Context, namespace string, o ListOptions) iter.Seq2[T, error] {
	page, err := t.page(ctx, namespace, o)
	if err != nil {
		return func(yield func(T, error) bool) {
			var none T
			yield(none, err)
		}
	}
	return t.decoded(page)
}

func (t *Typed[T]) page(ctx context.Context, namespace string, o ListOptions) (storage.Page, error) {
	selection, err := t.selection(o)
	if err != nil {
		return storage.Page{}, err
	}
	return t.registry.ListRecords(t.call(ctx, namespace), storage.ListOptions{Selection: selection, Limit: int64(o.Limit)})
}

func (t *Typed[T]) decoded(page storage.Page) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for rec := range page.Records {
			if obj, err := t.decode(rec, nil); !yield(obj, err) || err != nil {
				return
			}
		}
	}
}

// TypedEvent is one change of an object.
type TypedEvent[T runtime.Object] struct {
	// Type is watch.Added, watch.Modified or watch.Deleted; watch.Bookmark comes once, after the objects that existed at the
	// beginning.
	Type apiwatch.EventType
	// Object is the object after the change, or before its deletion. The caller may change it. It is the zero value in a bookmark.
	Object T
}

// Watch returns the changes of the selected objects: first each object that exists as Added, then one Bookmark, and then each
// change. A change after which o selects an object that it did not select before is Added; a change after which o no longer
// selects the object is Deleted. The watch runs while the caller iterates over the sequence, and ends with the first error: that
// of ctx, storage.ErrClosed when the server ends or no longer serves the kind, or an Expired error if the caller is too slow.
// After an Expired error a new Watch begins with all objects again.
func (t *Typed[T]) Watch(ctx context.Context, namespace string, o ListOptions) iter.Seq2[TypedEvent[T], error] {
	return func(yield func(TypedEvent[T], error) bool) {
		selection, err := t.selection(o)
		var w storage.Watch
		if err == nil {
			w, err = t.registry.WatchRecords(t.call(ctx, namespace), storage.WatchOptions{Selection: selection, Initial: true})
		}
		if err != nil {
			yield(TypedEvent[T]{}, err)
			return
		}
		defer w.Close()
		for {
			events, err := w.Next(ctx)
			if err != nil {
				yield(TypedEvent[T]{}, err)
				return
			}
			for _, e := range events {
				out := TypedEvent[T]{Type: e.Type}
				if e.Type != apiwatch.Bookmark {
					out.Object, err = t.decode(e.Record, nil)
				}
				if !yield(out, err) || err != nil {
					return
				}
			}
		}
	}
}
