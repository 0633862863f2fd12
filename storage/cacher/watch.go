package cacher

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	maxEvents = 500 // that one Next returns of the initial ones
	maxBatch  = 256 // changes that a watch takes from the log at once, those of one revision together
	maxLocked = 64  // that it looks at while it holds the lock: then nothing can come between
	maxIdle   = 8   // events that a watch which waits keeps room for
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

	// Guarded by c.mu while the watch is in c.quiet; used by Next alone otherwise.
	from int64 // changes up to this revision have been shown, or need not be
	told int64 // the last revision that its reader was told

	// Guarded by c.mu.
	first  int64       // revision of the first change that has not been looked at; 0: none concerns it, and it is in c.quiet
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
	if err != nil {
		return nil, err
	}
	if !begun {
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

// nextChanges appends the events of the next changes; true when there is nothing to tell until the watch is woken.
func (w *watcher) nextChanges() (wait bool) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.ended = w.over(); w.ended != nil {
		return false
	}
	if w.first == 0 {
		return !w.bookmark()
	}
	w.scan(func(ch *change) bool {
		if len(w.events) >= maxEvents && ch.revision != w.from {
			return false
		}
		w.ended = w.show(ch)
		return w.ended == nil
	})
	if len(w.events) > 0 {
		w.told = w.events[len(w.events)-1].Record.Revision
	}
	w.advance()
	return false
}

// advance passes by the changes that do not concern the watch. So it is quiet while its reader is busy with those that
// did, and changes elsewhere cannot outrun it. The caller holds c.mu.
func (w *watcher) advance() {
	if w.ended == nil {
		w.scan(func(ch *change) bool { return !w.concerned(ch) })
	}
}

// scan looks at the changes that have not been looked at, until visit refuses one, which counts as not looked at, or
// the watch is at the end of the log, where it is quiet. The caller holds c.mu, which is free while there are many to
// look at.
func (w *watcher) scan(visit func(*change) bool) {
	c := w.c
	if w.first == 0 {
		return
	}
	batch := c.batch()
	defer c.done(batch)
	for w.first != 0 && w.over() == nil {
		if w.first <= c.log.floor {
			w.ended = &storage.ExpiredError{Revision: w.from, Oldest: c.log.floor}
			return
		}
		clear(*batch) // the next may be shorter
		*batch = c.log.read((*batch)[:0], w.first-1, maxBatch)
		refused := w.visit(*batch, visit)
		if w.epoch != c.epoch.Load() {
			return
		}
		if refused != 0 {
			w.first = refused
			return
		}
		w.settle()
	}
}

// visit looks at changes, and returns the revision of the one that was refused; 0 for none. The caller holds c.mu.
func (w *watcher) visit(changes []*change, visit func(*change) bool) (refused int64) {
	if len(changes) > maxLocked {
		w.c.mu.Unlock()
		defer w.c.mu.Lock()
	}
	for _, ch := range changes {
		if !visit(ch) {
			w.from = min(w.from, ch.revision-1)
			return ch.revision
		}
		w.from = ch.revision
	}
	return 0
}

// batch returns an empty slice for changes; done gives it back.
func (c *Cacher) batch() *[]*change {
	if b, ok := c.batches.Get().(*[]*change); ok {
		return b
	}
	return new([]*change)
}

func (c *Cacher) done(b *[]*change) {
	clear(*b)
	c.batches.Put(b)
}

// over returns why the watch cannot go on, or nil. The caller holds c.mu.
func (w *watcher) over() error {
	switch c := w.c; {
	case w.closed:
		return storage.ErrClosed
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case w.epoch == c.epoch.Load() && w.first == 0:
		return c.cut
	case w.epoch == c.epoch.Load():
		return nil
	case c.ended != nil:
		return c.ended
	}
	return &storage.ExpiredError{Revision: w.from}
}

// settle places a watch that has looked at all changes up to w.from: at the next one, or, when there is none, among
// the quiet watches. The caller holds c.mu.
func (w *watcher) settle() {
	if w.from < w.c.log.floor {
		w.first = w.from + 1 // what followed is gone
		return
	}
	if w.first = w.c.log.next(w.from); w.first == 0 && !w.closed {
		w.c.quiet.add(w)
	}
}

// bookmark appends the bookmark that is due, if it is. The caller holds c.mu, and the watch is quiet.
func (w *watcher) bookmark() bool {
	reached := w.c.reached.Load()
	if !w.due || reached < w.from {
		return false
	}
	w.due, w.from, w.told = false, reached, reached
	w.events = append(w.events, storage.Event{Type: watch.Bookmark, Record: storage.Record{Revision: reached}})
	return true
}

// show appends what the watch sees of a change, which may be nothing.
func (w *watcher) show(ch *change) error {
	kind, e, err := w.sees(ch)
	if err != nil || e == nil {
		return err
	}
	event := storage.Event{Type: kind, Record: e.Record, Forms: ch.forms}
	if kind == watch.Deleted {
		event.Record.Revision = ch.revision
	}
	w.events = append(w.events, event)
	return nil
}

// concerned reports whether the watch has to show something of a change.
func (w *watcher) concerned(ch *change) bool {
	_, e, err := w.sees(ch)
	return e != nil || err != nil
}

// sees returns the event that a change is for the watch, and the value that it shows; nil for none.
func (w *watcher) sees(ch *change) (watch.EventType, *entry, error) {
	if !covers(w.scope, ch.key()) {
		return "", nil, nil
	}
	return w.compare(ch.was, ch.is)
}

// compare is what the watch sees when is takes the place of was under a key in its scope.
func (w *watcher) compare(was, is *entry) (watch.EventType, *entry, error) {
	matches, matched := false, was != nil
	if is != nil {
		if is.unreadable != nil {
			return "", nil, is.unreadable
		}
		matches = !w.selective || w.selection.Matches(is.Record)
	}
	if was != nil && (is == nil || w.selective) {
		if was.unreadable != nil && !matches {
			return "", nil, was.unreadable
		}
		matched = was.unreadable == nil && (!w.selective || w.selection.Matches(was.Record))
	}
	switch {
	case matches && matched:
		return watch.Modified, is, nil
	case matches:
		return watch.Added, is, nil
	case matched:
		return watch.Deleted, was, nil
	}
	return "", nil, nil
}

// covers reports whether a scope has a key.
func covers(sc storage.Scope, key string) bool {
	return key >= sc.From && (sc.To == "" || key < sc.To) && sc.Has(key)
}

// remind makes a bookmark due if the reader was told no revision since one. The caller holds c.mu.
func (w *watcher) remind(since int64) {
	if w.bookmarks && w.told <= since {
		w.due = true
		w.nudge()
	}
}

func (w *watcher) nudge() {
	select {
	case w.wake <- struct{}{}:
	default:
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

// leave takes the watch off all lists; false when it was off already.
func (w *watcher) leave() bool {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return w.goes()
}

// goes is leave for a caller that holds c.mu.
func (w *watcher) goes() bool {
	c := w.c
	if w.gone {
		return false
	}
	w.gone = true
	c.watchers--
	if w.epoch == c.epoch.Load() && w.first == 0 {
		c.quiet.remove(w)
	}
	return true
}
