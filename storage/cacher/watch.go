package cacher

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/storage"
)

const (
	maxInitial = 128 // maximum number of initial events, and of events of changes, that one Next returns
	maxEvents  = 500
	maxBatch   = 256 // number of changes that a watch reads from the log at once; those of one revision are kept together
	maxLocked  = 64  // number of changes that it examines while it holds the lock: no new change can come meanwhile
	maxIdle    = 8   // number of events for which an idle watch keeps memory
)

// watcher is a storage.Watch: a position in the log of changes.
type watcher struct {
	c         *Cacher
	ctx       context.Context // the context given to Watch, with which the watch ends
	scope     storage.Scope
	selection storage.Selection
	selective bool // the state before a change counts
	before    bool // WatchOptions.Before
	bookmarks bool
	class     class
	epoch     int64
	wake      chan struct{} // capacity 1: there may be something new

	// Guarded by c.mu while the watch is in c.idle; otherwise used by Next only.
	from     int64 // changes up to this revision have been shown, or need not be
	received int64 // the last revision that its reader received

	// Guarded by c.mu.
	first  int64       // revision of the first unread change; 0: no unread change concerns the watch, and it is in c.idle
	mates  *classmates // the list of its class in c.idle; nil before the watch was there first
	slot   int         // its index in the list
	asked  bool        // a bookmark was requested; it becomes due with the next progress mark
	due    bool
	closed bool
	gone   bool // it is not counted any more

	// Used by Next only.
	initial *initial // nil: all initial events are sent
	events  []storage.Event
	ended   error // the error of every later Next
}

// Watch implements storage.Interface.
func (c *Cacher) Watch(ctx context.Context, opts storage.WatchOptions) (storage.Watch, error) {
	if err := opts.Plain(); err != nil {
		return nil, err
	}
	if opts.Initial && opts.At.Match == storage.Exact {
		return nil, fmt.Errorf("cacher: a watch cannot begin with the state at exactly one revision")
	}
	w := &watcher{c: c, ctx: ctx, selection: opts.Selection, bookmarks: opts.Bookmarks, wake: make(chan struct{}, 1)}
	w.scope = opts.Scope(c.opts.Namespaced)
	w.selective = opts.Selective() || opts.Before
	w.before = opts.Before
	w.class = c.classOf(opts.Selection, w.scope)
	begun, err := w.begin(ctx, opts)
	if !begun && err == nil && w.epoch != c.epoch.Load() {
		begun, err = w.begin(ctx, opts) // the cache was found to be void, and is filled anew
	}
	if err != nil {
		return nil, err
	}
	if !begun {
		if err := c.filling(); err != nil {
			return nil, err
		}
		return c.lend(ctx, opts)
	}
	c.opts.Hooks.watch(WatchBegan{Initial: opts.Initial, Resumed: !opts.Initial && opts.From != 0})
	return w, nil
}

// classOf returns the class of a watch.
func (c *Cacher) classOf(sel storage.Selection, sc storage.Scope) class {
	if key, ok := sc.Single(); ok {
		return class{kind: single, value: key}
	}
	for i := range len(c.opts.IndexFields) + len(c.opts.IndexLabels) {
		if text, ok := c.opts.asked(sel, i); ok {
			return class{kind: indexed, index: i, value: text}
		}
	}
	if ns, ok := strings.CutSuffix(sc.From, "/"); ok && c.opts.Namespaced {
		return class{kind: namespace, value: ns}
	}
	return class{kind: everything}
}

// begin sets the position of the watch. It returns false when the storage below has to serve it.
func (w *watcher) begin(ctx context.Context, opts storage.WatchOptions) (bool, error) {
	c := w.c
	var s *snapshot
	var err error
	w.epoch = c.epoch.Load()
	switch {
	case opts.Initial:
		if s, err = c.stateFor(ctx, opts.At); s != nil {
			w.beginInitial(s)
		}
	default:
		if err = c.ready(ctx); err == nil && opts.From == 0 {
			opts.From, err = c.now(ctx)
		}
	}
	if err != nil {
		return false, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.loaded || opts.Initial && s == nil || w.epoch != c.epoch.Load():
		return false, nil
	case opts.Initial:
	case opts.From < c.log.floor && c.plain:
		return false, nil // the storage below may retain more
	case opts.From < c.log.floor:
		c.opts.Hooks.expired()
		return false, &storage.ExpiredError{Revision: opts.From, Oldest: c.log.floor}
	default:
		w.from, w.received = opts.From, opts.From
		w.settle()
		w.advance()
	}
	c.watchers++
	return true, nil
}

// lend returns a watch of the storage below, which ends with the cache.
func (c *Cacher) lend(ctx context.Context, opts storage.WatchOptions) (storage.Watch, error) {
	w, err := c.below.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(c.life, w.Close)
	context.AfterFunc(ctx, func() { stop() })
	return &lentWatch{Watch: w, life: c.life, stop: stop}, nil
}

type lentWatch struct {
	storage.Watch
	life context.Context // ends with the cache
	stop func() bool
}

// Next implements storage.Watch.
func (w *lentWatch) Next(ctx context.Context) ([]storage.Event, error) {
	if w.life.Err() != nil {
		return nil, storage.ErrClosed
	}
	return w.Watch.Next(ctx)
}

// Close implements storage.Watch.
func (w *lentWatch) Close() {
	w.stop()
	w.Watch.Close()
}

// Next implements storage.Watch.
func (w *watcher) Next(ctx context.Context) ([]storage.Event, error) {
	clear(w.events)
	w.events = w.events[:0]
	for w.ended == nil {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		wait := false
		if w.initial != nil {
			w.nextInitial()
		} else {
			wait = w.nextChanges()
		}
		switch {
		case len(w.events) > 0:
			return w.events, nil
		case w.ended == nil && wait:
			if cap(w.events) > maxIdle {
				w.events = nil
			}
			w.await(ctx)
		}
	}
	if w.leave() && errors.Is(w.ended, storage.ErrCompacted) {
		w.c.opts.Hooks.expired()
		if w.epoch == w.c.epoch.Load() { // otherwise the reader was not too slow: the cache became void
			w.c.opts.Hooks.outrun()
		}
	}
	return nil, w.ended
}

// await waits until the watch is woken or one of the contexts ends. Often both have the same channel. Then await waits for it
// once, because each channel in a select takes memory.
func (w *watcher) await(ctx context.Context) {
	if ctx.Done() == w.ctx.Done() {
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
		return
	}
	select {
	case <-w.wake:
	case <-w.ctx.Done():
	case <-ctx.Done():
	}
}

// RequestProgress implements storage.Watch.
func (w *watcher) RequestProgress() {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.asked || w.gone || w.epoch != c.epoch.Load() {
		return
	}
	w.asked = true
	c.asking = append(c.asking, w)
	c.ask()
	c.askLater()
}

// Close implements storage.Watch.
func (w *watcher) Close() {
	w.c.mu.Lock()
	w.closed = true
	w.c.mu.Unlock()
	w.leave()
	w.nudge()
}
