package storage

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/watch"
)

const (
	maxInitial = 128 // maximum number of initial events that one Next returns
	maxIdle    = 32  // number of events for which an idle watch keeps memory
)

// Watch implements Interface.
func (s *Store) Watch(ctx context.Context, opts WatchOptions) (Watch, error) {
	if err := opts.Plain(); err != nil {
		return nil, err
	}
	w := &storeWatch{s: s, scope: opts.Selection.Scope(s.opts.Namespaced), selection: opts.Selection, before: opts.Before, from: opts.From}
	switch {
	case opts.Initial:
		if err := w.begin(ctx, opts.At); err != nil {
			return nil, err
		}
	case opts.From == 0:
		now, err := s.Revision(ctx)
		if err != nil {
			return nil, err
		}
		w.from = now
	}
	feed, err := s.backend.Watch(ctx, WatchRange{Prefix: s.root + w.scope.From, From: w.from, Prev: true})
	if err != nil {
		return nil, expired(err, w.from, "")
	}
	w.feed = feed
	return w, nil
}

// storeWatch is the Watch of a Store. It filters a feed of the keys in its scope by a selection.
type storeWatch struct {
	s         *Store
	scope     Scope
	selection Selection
	before    bool // WatchOptions.Before
	feed      Feed
	asked     atomic.Bool // a bookmark was requested
	closed    atomic.Bool

	// Used by Next alone.
	initial bool     // initial events and their bookmark are still to be delivered
	rows    *portion // the rows of initial events that were read last; nil: none
	row     int      // the next index in rows
	next    string   // the backend's key after rows
	from    int64    // events up to this revision were delivered, or need not be
	events  []Event  // the result of the last Next
	ended   error    // the error of every later Next
}

// begin reads the state from which the initial events are made.
func (w *storeWatch) begin(ctx context.Context, at Read) error {
	switch at.Match {
	case NotOlderThan:
		if err := w.s.reach(ctx, at.Revision); err != nil {
			return err
		}
	case Exact:
		return fmt.Errorf("storage: a watch cannot begin with the state at exactly one revision")
	}
	w.initial, w.from = true, w.s.pinned()
	w.next, _ = w.s.interval(w.scope)
	err := w.read(ctx)
	if errors.Is(err, ErrCompacted) && w.from > 0 { // the revision was compacted meanwhile
		w.from = 0
		err = w.read(ctx)
	}
	return err
}

// initialBytes is how many bytes of initial values are read at once.
const initialBytes = 1 << 20

// read reads rows, all at the revision of the first read.
func (w *storeWatch) read(ctx context.Context) error {
	r := Range{From: w.next, At: w.from, Limit: maxChunk, Bytes: initialBytes, Uncounted: true}
	_, r.To = w.s.interval(w.scope)
	rows, err := w.s.portion(ctx, r)
	if err != nil {
		return expired(err, w.from, "")
	}
	if n := rows.len(); n > 0 {
		w.next = w.s.root + rows.key(w.s, n-1) + "\x00"
	}
	w.rows, w.row, w.from = rows, 0, rows.revision
	return nil
}

// Next implements Watch.
func (w *storeWatch) Next(ctx context.Context) ([]Event, error) {
	clear(w.events)
	w.events = w.events[:0]
	if cap(w.events) > maxIdle {
		w.events = nil
	}
	for len(w.events) == 0 {
		if w.ended != nil {
			return nil, w.ended
		}
		if w.initial {
			w.step(ctx, w.nextInitial)
		} else {
			w.step(ctx, w.nextChanges)
		}
		if err := ctx.Err(); err != nil && len(w.events) == 0 && w.ended == nil {
			return nil, err
		}
	}
	return w.events, nil
}

// step calls step, which appends events. If there are events already, an error is kept for the next call of Next.
func (w *storeWatch) step(ctx context.Context, step func(context.Context) error) {
	if w.closed.Load() {
		w.ended = ErrClosed
		return
	}
	if err := step(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, ctx.Err())) {
		w.ended = err
	}
}

// nextInitial appends some of the initial events, and the bookmark after the last one.
func (w *storeWatch) nextInitial(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for ; w.row < w.rows.len() && len(w.events) < maxInitial; w.row++ {
		if !w.scope.Has(w.rows.key(w.s, w.row)) {
			continue
		}
		e := w.rows.entry(w.s, w.row)
		if e.Unreadable != nil {
			return e.Unreadable
		}
		if w.selection.Matches(e.Record) {
			w.events = append(w.events, Event{Type: watch.Added, Record: e.Record})
		}
	}
	switch {
	case w.row < w.rows.len():
		return nil
	case w.rows.count > int64(w.rows.len()):
		return w.read(ctx)
	}
	w.initial, w.rows = false, nil
	w.events = append(w.events, Event{Type: watch.Bookmark, Record: Record{Revision: w.from}, InitialEnd: true})
	return nil
}

// nextChanges appends the events of the next changes, if any, and the requested bookmark.
func (w *storeWatch) nextChanges(ctx context.Context) error {
	got, err := w.feed.Next(ctx)
	if err != nil {
		return expired(err, w.from, "")
	}
	for _, c := range got.Changes {
		if err := w.event(c); err != nil {
			return err
		}
		w.from = c.Revision
	}
	if got.Progress < w.from {
		return nil // still before the future revision at which the watch begins
	}
	w.from = got.Progress
	if w.asked.Swap(false) {
		w.events = append(w.events, Event{Type: watch.Bookmark, Record: Record{Revision: w.from}})
	}
	return nil
}

// event appends the event that the watcher sees for one change, if any.
func (w *storeWatch) event(c Change) error {
	if !w.scope.Has(c.Key[len(w.s.root):]) {
		return nil
	}
	var now, was Record
	var err error
	matched, matches := c.Prev != nil, !c.Deleted
	if matches {
		if now, err = w.s.record(KV{Key: c.Key, Value: c.Value, Revision: c.Revision, Stale: c.Stale}); err != nil {
			return err
		}
		matches = w.selection.Matches(now)
	}
	if c.Prev != nil && (c.Deleted || w.before || w.selection.Selective()) {
		was, err = w.s.record(*c.Prev)
		if err != nil && !matches {
			return err
		}
		matched = err == nil && w.selection.Matches(was)
	}
	var before *Record
	if w.before && matched {
		before = new(Record)
		*before = was
	}
	switch {
	case matches && matched:
		w.events = append(w.events, Event{Type: watch.Modified, Record: now, Before: before})
	case matches:
		w.events = append(w.events, Event{Type: watch.Added, Record: now})
	case matched:
		was.Revision = c.Revision
		w.events = append(w.events, Event{Type: watch.Deleted, Record: was, Before: before})
	}
	return nil
}

// RequestProgress implements Watch.
func (w *storeWatch) RequestProgress() {
	w.asked.Store(true)
	w.feed.RequestProgress()
}

// Close implements Watch.
func (w *storeWatch) Close() {
	w.closed.Store(true)
	w.feed.Close()
}
