package cacher

import (
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// initial is the beginning of a watch that begins with a state.
type initial struct {
	state *snapshot // that is being told
	rows  rows      // of it that are still to be told; when they began, and the window has passed since:
	moved []pair    // what is different from a state told before
	told  int       // events so far
}

// pair is what two states have under one key; nil is nothing.
type pair struct{ was, is *entry }

// beginInitial finds what is to be told. An unreadable entry in the scope ends the watch.
func (w *watcher) beginInitial(s *snapshot) {
	l := listing{opts: storage.ListOptions{Selection: w.selection}, scope: w.scope, indexes: &w.c.opts, state: s, from: w.scope.From}
	w.ended = l.readable(w.scope.To)
	w.initial = &initial{state: s, rows: l.rows()}
	w.from = s.revision
}

// nextInitial appends some of the initial events, and after the last the bookmark.
func (w *watcher) nextInitial() {
	w.c.mu.Lock()
	w.ended = w.over()
	w.c.mu.Unlock()
	if w.ended != nil {
		return
	}
	i := w.initial
	i.rows.tree.walk(i.rows.from, i.rows.to, func(e *entry) bool {
		i.rows.from++
		if i.rows.choose == nil || i.rows.choose(e) {
			w.events = append(w.events, storage.Event{Type: watch.Added, Record: e.Record})
		}
		return len(w.events) < maxInitial
	})
	for len(i.moved) > 0 && len(w.events) < maxInitial && w.ended == nil {
		p := i.moved[0]
		i.moved = i.moved[1:]
		w.showMoved(p)
	}
	i.told += len(w.events)
	if i.rows.from < i.rows.to || len(i.moved) > 0 || w.ended != nil {
		return
	}
	if later := w.endInitial(); later != nil {
		w.catchUp(later)
	}
}

// endInitial ends the initial events with their bookmark, and goes on with the log. When the log does not reach back
// to the state that was told it returns a later one.
func (w *watcher) endInitial() *snapshot {
	c := w.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.ended = w.over(); w.ended != nil {
		return nil
	}
	s := w.initial.state
	if s.revision < c.log.floor {
		return c.publish()
	}
	told := w.initial.told
	w.initial = nil
	w.from, w.told = s.revision, s.revision
	w.events = append(w.events, storage.Event{Type: watch.Bookmark, Record: storage.Record{Revision: s.revision}, InitialEnd: true})
	w.settle()
	w.advance()
	c.opts.Hooks.initial(told)
	return nil
}

// catchUp lets the difference between the state that was told and a later one be told.
func (w *watcher) catchUp(later *snapshot) {
	i := w.initial
	diff(i.state.records, later.records, func(was, is *entry) bool {
		e := is
		if e == nil {
			e = was
		}
		if covers(w.scope, e.Key) {
			i.moved = append(i.moved, pair{was, is})
		}
		return true
	})
	i.state = later
	w.c.opts.Hooks.caughtUp()
}

// showMoved appends what the watch sees of the difference under one key. The revision of a deletion is not known any
// more: that of the later state takes its place.
func (w *watcher) showMoved(p pair) {
	kind, e, err := w.compare(p.was, p.is)
	if w.ended = err; err != nil || e == nil {
		return
	}
	event := storage.Event{Type: kind, Record: e.Record}
	if kind == watch.Deleted {
		event.Record.Revision = w.initial.state.revision
	}
	w.events = append(w.events, event)
}
