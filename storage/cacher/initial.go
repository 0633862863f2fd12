package cacher

import (
	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// initial is the initial part of a watch that begins with a state. If the window passes the state meanwhile, the watch
// continues with the difference to a later state, and its bookmark comes after that.
type initial struct {
	state *snapshot // the state that is being sent
	rows  rows      // rows of the first state that are still to be sent; after them:
	moved []pair    // differences between the state sent before and the present one
	sent  int       // number of events so far
}

// pair is the entries of two states under one key; nil is no entry.
type pair struct{ was, is *entry }

// beginInitial finds the entries to be sent. An unreadable entry in the scope ends the watch.
func (w *watcher) beginInitial(s *snapshot) {
	l := listing{opts: storage.ListOptions{Selection: w.selection}, scope: w.scope, indexes: &w.c.opts, state: s, from: w.scope.From}
	w.ended = l.readable(w.scope.To)
	w.initial = &initial{state: s, rows: l.rows()}
	w.from = s.revision
}

// nextInitial appends some of the initial events, and the bookmark after the last one.
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
	i.sent += len(w.events)
	if i.rows.from < i.rows.to || len(i.moved) > 0 || w.ended != nil {
		return
	}
	if later := w.endInitial(); later != nil {
		w.catchUp(later)
	}
}

// endInitial appends the bookmark that ends the initial events, and continues with the log. If the log does not reach back to
// the state that was sent, it returns a later state instead.
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
	sent := w.initial.sent
	w.initial = nil
	w.from, w.received = s.revision, s.revision
	w.events = append(w.events, storage.Event{Type: watch.Bookmark, Record: storage.Record{Revision: s.revision}, InitialEnd: true})
	w.settle()
	w.advance()
	c.opts.Hooks.initial(sent)
	return nil
}

// catchUp adds the difference between the state that was sent and a later one to the initial events.
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

// showMoved appends the event of the watch for the difference under one key. The revision of a deletion is not known any
// more; the event has the revision of the later state.
func (w *watcher) showMoved(p pair) {
	kind, e, err := w.compare(p.was, p.is)
	if w.ended = err; err != nil || e == nil {
		return
	}
	w.append(kind, e, p.was, w.initial.state.revision, nil)
}
