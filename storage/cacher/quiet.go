package cacher

import (
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// class is what a watch follows, as far as the cache can find those whom a change concerns without asking each.
type class struct {
	kind  classKind
	index int
	value string
}

type classKind int

const (
	everything classKind = iota
	namespace            // value is its name
	single               // value is the key
	indexed              // value is that of the index
)

// quiet holds the watches that have no unread change that concerns them, by their class. The zero quiet is empty.
// Its owner's lock guards it and what it says of watches.
type quiet struct {
	classes map[class][]*watcher
	memo    [2]memo // of what a change changes, for those who are asked whether it concerns them
}

func (q *quiet) add(w *watcher) {
	if q.classes == nil {
		q.classes = map[class][]*watcher{}
	}
	list := q.classes[w.class]
	w.slot = len(list)
	q.classes[w.class] = append(list, w)
}

// remove takes out a watch that is listed.
func (q *quiet) remove(w *watcher) {
	list := q.classes[w.class]
	last := len(list) - 1
	if w.slot > last || list[w.slot] != w {
		return
	}
	list[w.slot] = list[last]
	list[w.slot].slot = w.slot
	list[last] = nil
	if last == 0 && w.class.kind != everything {
		delete(q.classes, w.class)
		return
	}
	q.classes[w.class] = list[:last]
}

// each calls f for every watch.
func (q *quiet) each(f func(*watcher)) {
	for _, list := range q.classes {
		for _, w := range list {
			f(w)
		}
	}
}

// abandoned returns the watches whose context has ended and which nobody has read or closed since.
func (q *quiet) abandoned() (all []*watcher) {
	q.each(func(w *watcher) {
		if w.ctx.Err() != nil {
			all = append(all, w)
		}
	})
	return all
}

// wake gives a change to the watches that it concerns. They are quiet no more.
func (q *quiet) wake(ch *change) {
	if len(q.classes) == 0 {
		return
	}
	known := change{revision: ch.revision, was: q.memo[0].of(ch.was), is: q.memo[1].of(ch.is)}
	ch = &known
	key := ch.key()
	q.wakeClass(class{kind: everything}, ch)
	q.wakeClass(class{kind: single, value: key}, ch)
	if ns, _, found := strings.Cut(key, "/"); found {
		q.wakeClass(class{kind: namespace, value: ns}, ch)
	}
	for _, e := range []*entry{ch.was, ch.is} {
		switch {
		case e == nil:
			continue
		case e.unreadable != nil: // nobody knows whom it would concern
			q.wakeIndexed(ch)
			return
		}
		for i, v := range e.values {
			if v.ok {
				q.wakeClass(class{kind: indexed, index: i, value: v.text}, ch)
			}
		}
	}
}

// wakeIndexed gives a change to all who wait for a value of an index.
func (q *quiet) wakeIndexed(ch *change) {
	for cl := range q.classes {
		if cl.kind == indexed {
			q.wakeClass(cl, ch)
		}
	}
}

func (q *quiet) wakeClass(cl class, ch *change) {
	for i := 0; ; {
		list := q.classes[cl]
		if i >= len(list) {
			return
		}
		w := list[i]
		if ch.revision <= w.from || !w.concerned(ch) {
			i++
			continue
		}
		q.remove(w) // another one takes its place
		w.first = ch.revision
		w.nudge()
	}
}

// memo is an entry whose fields are looked up in its bytes once, however many ask.
type memo struct {
	entry
	fields.Fields
	known []field
}

type field struct{ name, text string }

// of makes m a memo of e, and returns its entry; nil of nil.
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
