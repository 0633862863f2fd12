package registry

import (
	"context"

	"github.com/keelson-dev/keelson/storage"
)

// GetRecord implements Records.
func (r *Registry) GetRecord(ctx context.Context, name string, at storage.Read) (storage.Record, error) {
	key, err := r.key(ctx, name)
	if err != nil {
		return storage.Record{}, err
	}
	rec, err := r.store.Get(ctx, key, at)
	return rec, r.status(err, name)
}

// ListRecords implements RecordLister. The namespace of the context, if any, replaces the one in opts.
func (r *Registry) ListRecords(ctx context.Context, opts storage.ListOptions) (storage.Page, error) {
	opts.Selection = r.selection(ctx, opts.Selection)
	page, err := r.store.List(ctx, opts)
	if err != nil {
		return storage.Page{}, r.listStatus(err, opts.Continue != "")
	}
	return page, nil
}

// WatchRecords implements RecordWatcher. The namespace of the context, if any, replaces the one in opts. Errors
// of the watch's Next are StatusErrors, but for the context's and storage.ErrClosed, after which the caller ends
// the watch without an error event.
func (r *Registry) WatchRecords(ctx context.Context, opts storage.WatchOptions) (storage.Watch, error) {
	opts.Selection = r.selection(ctx, opts.Selection)
	w, err := r.store.Watch(ctx, opts)
	if err != nil {
		return nil, r.status(r.watchStatus(err), "")
	}
	return &watch{w, r}, nil
}

func (r *Registry) selection(ctx context.Context, s storage.Selection) storage.Selection {
	if !r.namespaced {
		s.Namespace = ""
	} else if ns := NamespaceFrom(ctx); ns != "" {
		s.Namespace = ns
	}
	return s
}

// watch is a storage.Watch whose errors are StatusErrors.
type watch struct {
	storage.Watch
	registry *Registry
}

func (w *watch) Next(ctx context.Context) ([]storage.Event, error) {
	events, err := w.Watch.Next(ctx)
	return events, w.registry.watchStatus(err)
}
