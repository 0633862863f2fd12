package cacher

import (
	"k8s.io/apimachinery/pkg/fields"
)

// class is the part of a watch's selection by which the cache finds the watches that a change may concern.
type class struct {
	kind  classKind
	index int
	value string
}

type classKind int

const (
	everything classKind = iota
	namespace            // value is the name of the namespace
	single               // value is the key
	indexed              // value is the value in the index
)

// idle has the watches without unread changes that concern them, by class. The zero idle is empty. Its owner's lock guards it
// and the fields of watches that it uses.
type idle struct {
	classes map[class]*classmates
	memo    [2]memo // of the old and the new entry of a change, for the watches that examine it
}

// classmates are the idle watches of a class.
type classmates struct{ list []*watcher }

func (q *idle) add(w *watcher) {
	if q.classes == nil {
		q.classes = map[class]*classmates{}
	}
	if w.mates == nil || len(w.mates.list) == 0 { // the list may have been removed from classes
		if w.mates = q.classes[w.class]; w.mates == nil {
			w.mates = new(classmates)
			q.classes[w.class] = w.mates
		}
	}
	w.slot = len(w.mates.list)
	w.mates.list = append(w.mates.list, w)
}

// remove removes a watch, if it is in its list.
func (q *idle) remove(w *watcher) {
	m := w.mates
	if m == nil {
		return
	}
	last := len(m.list) - 1
	if w.slot > last || m.list[w.slot] != w {
		return
	}
	m.list[w.slot] = m.list[last]
	m.list[w.slot].slot = w.slot
	m.list[last] = nil
	m.list = m.list[:last]
	if last == 0 && w.class.kind != everything {
		delete(q.classes, w.class)
	}
}

// each calls f for every watch.
func (q *idle) each(f func(*watcher)) {
	for _, m := range q.classes {
		for _, w := range m.list {
			f(w)
		}
	}
}

// abandoned returns the watches whose context has ended and that were neither read nor closed since.
func (q *idle) abandoned() (all []*watcher) {
	q.each(func(w *watcher) {
		if w.ctx.Err() != nil {
			all = append(all, w)
		}
	})
	return all
}

// memo is an entry that looks up each of its fields only once.
type memo struct {
	entry
	fields.Fields
	known []field
}

type field struct{ name, text string }

// of makes m a memo of e, and returns its entry. A nil or unreadable e is returned unchanged.
func (m *memo) of(e *entry) *entry {
	if e == nil || e.unreadable != nil {
		return e
	}
	m.entry, m.Fields, m.known = *e, e.Fields, m.known[:0]
	m.entry.Fields = m
	return &m.entry
}

// Get implements fields.Fields.
func (m *memo) Get(name string) string {
	for i := range m.known {
		if m.known[i].name == name {
			return m.known[i].text
		}
	}
	text := m.Fields.Get(name)
	m.known = append(m.known, field{name, text})
	return text
}
