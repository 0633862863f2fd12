package cacher

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/storage"
)

const (
	maxInitial = 128 // events that one Next returns of the initial ones, and of changes:
	maxEvents  = 500
	maxBatch   = 256 // changes that a watch takes from the log at once, those of one revision together
	maxLocked  = 64  // that it looks at while it holds the lock: then nothing can come between
	maxIdle    = 8   // events that a watch which waits keeps room for
)

// watcher is a storage.Watch: a position in the log.
type watcher struct {
	c         *Cacher
	ctx       context.Context // of Watch: the watch's life
	scope     storage.Scope
	selection storage.Selection
	selective bool
	bookmarks bool
	class     class
	epoch     int64
	wake      chan struct{} // capacity 1: look again

	// Guarded by c.mu while the watch is in c.idle; used by Next alone otherwise.
	from int64 // changes up to this revision have been shown, or need not be
	told int64 // the last revision that its reader was told

	// Guarded by c.mu.
	first  int64       // revision of the first change that has not been looked at; 0: none concerns it, and it is in c.idle
	mates  *classmates // those of its class there, since it was there first
	slot   int         // place among them
	asked  bool        // for a bookmark, which becomes due with the next progress mark
	due    bool
	closed bool
	gone   bool // it is counted no more

	// Used by Next alone.
	initial *initial // nil: all initial events are told
	events  []storage.Event
	ended   error // what every later Next returns
}

// Watch implements storage.Interface.
func (c *Cacher) Watch(ctx context.Context, opts storage.WatchOptions) (storage.Watch, error) {
	if opts.Initial && opts.At.Match == storage.Exact {
		return nil, fmt.Errorf("cacher: a watch cannot begin with the state at exactly one revision")
	}
	w := &watcher{c: c, ctx: ctx, selection: opts.Selection, bookmarks: opts.Bookmarks, wake: make(chan struct{}, 1)}
	w.scope = opts.Scope(c.opts.Namespaced)
	w.selective = opts.Selective()
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

// classOf finds where a watch waits.
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

// begin places the watch; false when the storage below has to serve it.
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
		w.from, w.told = opts.From, opts.From
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
	life context.Context // of the cache
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
		if w.epoch == w.c.epoch.Load() { // what was shown is still true: the reader was too slow for it
			w.c.opts.Hooks.outrun()
		}
	}
	return nil, w.ended
}

// await waits until the watch is woken or a context ends. They mostly end together, and what waits for each channel
// takes memory of its own.
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
