package registry

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/keelson-dev/keelson/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ReadAt returns which state a GET, or a LIST without a resourceVersionMatch, reads for a resourceVersion: the latest state for
// "", any state for "0", and otherwise one that is not older than the resourceVersion. The error for a resourceVersion that is
// not a number is a BadRequest.
func ReadAt(resourceVersion string) (storage.Read, error) {
	if resourceVersion == "" {
		return storage.Read{}, nil
	}
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	switch {
	case err != nil:
		bad := field.Invalid(field.NewPath("resourceVersion"), resourceVersion, err.Error())
		return storage.Read{}, apierrors.NewBadRequest(fmt.Sprintf("invalid resource version: %v", bad))
	case n == 0:
		return storage.Read{Match: storage.Any}, nil
	}
	// Revisions are int64 and grow. A larger number has the same meaning as the largest: a state that does not exist yet.
	return storage.Read{Match: storage.NotOlderThan, Revision: int64(min(n, math.MaxInt64-1))}, nil
}

// GetRecord implements Records.
func (r *Registry) GetRecord(call *Call, name string, at storage.Read) (storage.Record, error) {
	key, err := r.readKey(call, name)
	if err != nil {
		return storage.Record{}, err
	}
	rec, err := r.store.Get(call.Context, key, at)
	return rec, r.readStatus(err, name)
}

// readKey is key for a call that reads.
func (r *Registry) readKey(call *Call, name string) (string, error) {
	if call == nil || call.User == nil {
		return "", apierrors.NewInternalError(errNobody)
	}
	return r.key(call, name)
}

// GetStored returns one record from the storage itself, without a cache.
func (r *Registry) GetStored(call *Call, name string) (storage.Record, error) {
	key, err := r.readKey(call, name)
	if err != nil {
		return storage.Record{}, err
	}
	store := r.store
	if c, ok := store.(interface{ Uncached() storage.Interface }); ok {
		store = c.Uncached()
	}
	rec, err := store.Get(call.Context, key, storage.Read{})
	return rec, r.readStatus(err, name)
}

// ChoosesRecords implements RecordChooser.
func (*Registry) ChoosesRecords() {}

// ListRecords implements RecordLister. The namespace of the call, if any, replaces the one in opts.
func (r *Registry) ListRecords(call *Call, opts storage.ListOptions) (storage.Page, error) {
	if call == nil || call.User == nil {
		return storage.Page{}, apierrors.NewInternalError(errNobody)
	}
	opts.Selection = r.selection(call, opts.Selection)
	if r.strategy.limitAtAny && opts.Limit > 0 && opts.At.Match == storage.Any {
		opts.At = storage.Read{}
	}
	page, err := r.list(call.Context, opts)
	if err != nil {
		return storage.Page{}, r.listStatus(err, opts.Continue != "")
	}
	page.Next = r.nextPortion(page.Next, opts.Continue != "")
	return page, nil
}

func (r *Registry) list(ctx context.Context, opts storage.ListOptions) (storage.Page, error) {
	if opts.Chooser != nil {
		return storage.ListChosen(ctx, r.store, opts, r.namespaced)
	}
	return r.store.List(ctx, opts)
}

// nextPortion wraps the Next of a Page, so that its errors, and those of later portions, are StatusErrors.
func (r *Registry) nextPortion(next func(context.Context) (storage.Page, error), continued bool) func(context.Context) (storage.Page, error) {
	if next == nil {
		return nil
	}
	return func(ctx context.Context) (storage.Page, error) {
		page, err := next(ctx)
		if err != nil {
			return storage.Page{}, r.listStatus(err, continued)
		}
		page.Next = r.nextPortion(page.Next, continued)
		return page, nil
	}
}

// WatchRecords implements RecordWatcher. The namespace of the call, if any, replaces the one in opts. Errors of the watch's Next
// are StatusErrors, except errors of the context and storage.ErrClosed. After these, the caller ends the watch without an error
// event.
func (r *Registry) WatchRecords(call *Call, opts storage.WatchOptions) (storage.Watch, error) {
	if call == nil || call.User == nil {
		return nil, apierrors.NewInternalError(errNobody)
	}
	opts.Selection = r.selection(call, opts.Selection)
	w, err := r.watch(call.Context, opts)
	if err != nil {
		return nil, r.readStatus(r.watchStatus(err), "")
	}
	return &watch{w, r}, nil
}

func (r *Registry) watch(ctx context.Context, opts storage.WatchOptions) (storage.Watch, error) {
	if opts.Chooser != nil {
		return storage.WatchChosen(ctx, r.store, opts)
	}
	return r.store.Watch(ctx, opts)
}

func (r *Registry) selection(call *Call, s storage.Selection) storage.Selection {
	if !r.namespaced {
		s.Namespace = ""
	} else if ns := call.Namespace; ns != "" {
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
