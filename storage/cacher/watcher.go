package cacher

import (
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// nextChanges appends the events of the next changes. It returns true when there is nothing to send until the watch is woken.
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
		w.received = w.events[len(w.events)-1].Record.Revision
	}
	w.advance()
	return false
}

// advance skips the changes that do not concern the watch. So the watch is idle while its reader processes earlier events,
// and changes elsewhere cannot outrun it. The caller holds c.mu.
func (w *watcher) advance() {
	if w.ended == nil {
		w.scan(func(ch *change) bool { return !w.concerned(ch) })
	}
}

// scan calls visit for each unread change until visit returns false; that change stays unread. At the end of the log the
// watch becomes idle. The caller holds c.mu, which is released meanwhile if there are many changes.
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
		clear(*batch) // the next batch may be shorter
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

// visit calls visit for changes, and returns the revision of the one for which it returned false; 0 for none. The caller
// holds c.mu.
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

// batch returns an empty slice for changes; done takes it back.
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

// over returns the error with which the watch has ended, or nil. The caller holds c.mu.
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

// settle sets the position of a watch that has read all changes up to w.from: at the next change, or, if there is none, among
// the idle watches. The caller holds c.mu.
func (w *watcher) settle() {
	if w.from < w.c.log.floor {
		w.first = w.from + 1 // the next changes are dropped
		return
	}
	if w.first = w.c.log.next(w.from); w.first == 0 && !w.closed {
		w.c.idle.add(w)
	}
}

// bookmark appends the bookmark that is due, if any. The caller holds c.mu, and the watch is idle.
func (w *watcher) bookmark() bool {
	reached := w.c.reached.Load()
	if !w.due || reached < w.from {
		return false
	}
	w.due, w.from, w.received = false, reached, reached
	w.events = append(w.events, storage.Event{Type: watch.Bookmark, Record: storage.Record{Revision: reached}})
	return true
}

// show appends the event of the watch for a change, if any.
func (w *watcher) show(ch *change) error {
	kind, e, err := w.sees(ch)
	if err != nil || e == nil {
		return err
	}
	w.append(kind, e, ch.was, ch.revision, ch.forms)
	return nil
}

// append appends an event that shows e. was is the entry before the change, revision that of a deletion.
func (w *watcher) append(kind watch.EventType, e, was *entry, revision int64, forms *storage.Forms) {
	event := storage.Event{Type: kind, Record: e.Record, Forms: forms}
	if w.before && kind != watch.Added {
		event.Before = &was.Record
	}
	if kind == watch.Deleted {
		event.Record.Revision = revision
	}
	w.events = append(w.events, event)
}

// concerned reports whether the watch has an event for a change.
func (w *watcher) concerned(ch *change) bool {
	_, e, err := w.sees(ch)
	return e != nil || err != nil
}

// sees returns the event type that a change has for the watch, and the entry that it shows; nil for no event.
func (w *watcher) sees(ch *change) (watch.EventType, *entry, error) {
	if !covers(w.scope, ch.key()) {
		return "", nil, nil
	}
	return w.compare(ch.was, ch.is)
}

// compare returns what the watch sees when is replaces was under a key in its scope.
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

// remind makes a bookmark due if the reader has received no revision after since. The caller holds c.mu.
func (w *watcher) remind(since int64) {
	if w.bookmarks && w.received <= since {
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

// leave removes the watch from all lists; it returns false if that was done before.
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
		c.idle.remove(w)
	}
	return true
}
