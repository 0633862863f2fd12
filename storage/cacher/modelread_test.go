package cacher_test

import (
	"errors"
	"slices"

	"github.com/keelson-dev/keelson/storage"
)

func (m *model) getAt(key string, at storage.Read) {
	m.test.Helper()
	r, err := m.Get(m.patiently(), key, at)
	m.note("Get(%q, %+v): revision %d, %v", key, at, r.Revision, err)
	var unreadable *storage.UnreadableError
	lo, hi := m.bounds(at, 0, err)
	switch {
	case hi < lo:
		return
	case err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.As(err, &unreadable):
		m.fatal("Get(%q, %+v): %v", key, at, err)
	}
	for revision := hi; revision >= lo; revision-- {
		switch o := m.h.at(revision)[key]; {
		case o == nil && errors.Is(err, storage.ErrNotFound),
			o != nil && o.broken && unreadable != nil && unreadable.Key == key && unreadable.Revision == o.revision,
			o != nil && err == nil && rowOf(m.test, r) == row(key, o):
			return
		}
	}
	m.fatal("Get(%q, %+v) = %+v, %v; at no revision from %d to %d that was so", key, at, r, err, lo, hi)
}

// bounds are the revisions of the states that a read may show. hi is below lo when the returned error is right.
func (m *model) bounds(at storage.Read, got int64, err error) (lo, hi int64) {
	m.test.Helper()
	lo, hi = m.h.now, m.h.now
	switch at.Match {
	case storage.Any:
		if lo = m.h.first; m.anyVoids == m.voids.Load() {
			lo = max(lo, m.any)
		}
	case storage.NotOlderThan:
		lo = at.Revision
	case storage.Exact:
		lo, hi = at.Revision, at.Revision
	}
	var future *storage.FutureError
	var expired *storage.ExpiredError
	switch {
	case lo > m.h.now:
		if !errors.As(err, &future) || future.Requested != at.Revision {
			m.fatal("a read of %+v: %v, want a FutureError", at, err)
		}
		return lo, lo - 1
	case errors.As(err, &expired):
		if at.Match != storage.Exact || at.Revision >= m.floor() || expired.Revision != at.Revision {
			m.fatal("a read of %+v: %v", at, err)
		}
		m.counts["expired reads"]++
		return lo, lo - 1
	case got == 0:
	case got < lo || got > hi:
		m.fatal("a read of %+v shows revision %d, want %d to %d", at, got, lo, hi)
	default:
		lo, hi = got, got
	}
	return lo, hi
}

func (m *model) listAt(w wish, at storage.Read) {
	m.test.Helper()
	o := storage.ListOptions{Selection: w.Selection, At: at}
	if m.rnd.IntN(3) == 0 {
		o.Limit = int64(m.rnd.IntN(5))
	}
	m.list1(w, o, "", at)
}

// list1 lists and compares the page with the expected one, which begins at the key from in the state that at selects.
func (m *model) list1(w wish, o storage.ListOptions, from string, at storage.Read) (storage.Page, error) {
	m.test.Helper()
	filled, voids := m.Stats().Filled, m.voids.Load()
	p, err := m.List(m.patiently(), o)
	m.note("List %s at %+v from %q, limit %d: revision %d, count %d, continue %v, %v", w.name, at, from, o.Limit, p.Revision, p.Count, p.Continue != "", err)
	if m.filling(err) {
		return p, err
	}
	lo, hi := m.bounds(at, p.Revision, err)
	if hi < lo {
		return p, err
	}
	limit := int(o.Limit)
	if at.Match == storage.Any && (filled || p.Continue == "") { // while the cache is filled the limit counts
		limit = 0
		if filled && err == nil && voids == m.voids.Load() {
			m.any, m.anyVoids = p.Revision, voids
		}
	}
	if err != nil {
		m.wantUnreadable(w, from, limit, lo, hi, err)
		return p, err
	}
	var rows []string
	for r := range p.Records {
		rows = append(rows, rowOf(m.test, r))
	}
	m.counts["blocks found"] += walkBlocks(m.test, p).found
	want := m.h.page(m.h.at(p.Revision), w, from, limit)
	plain := !w.Selective() && w.Scope(true).Whole()
	switch {
	case !slices.Equal(rows, want.rows) || p.Count != len(rows) || len(want.broken) > 0:
		m.fatal("the list of %s at %d is\n%q (count %d), want\n%q; %d cannot be read", w.name, p.Revision, rows, p.Count, want.rows, len(want.broken))
	case p.Continue == "" && (want.left > 0 || want.spoilt):
		m.fatal("the list of %s at %d has no token, and %d follow", w.name, p.Revision, want.hidden)
	case p.Continue != "" && (limit == 0 || len(rows) < limit):
		m.fatal("the list of %s at %d has a token after %d", w.name, p.Revision, len(rows))
	case (p.Remaining != nil) != (plain && want.hidden > 0) || p.Remaining != nil && *p.Remaining != int64(want.hidden):
		m.fatal("the list of %s at %d has %v remaining, want %d", w.name, p.Revision, p.Remaining, want.hidden)
	}
	return p, nil
}

// filling reports whether a read was refused because the cache is being filled.
func (m *model) filling(err error) bool {
	var full *storage.FillingError
	if !errors.As(err, &full) {
		return false
	}
	m.counts["turned away"]++
	return true
}

// wantUnreadable checks that a list had to fail in a state from lo to hi.
func (m *model) wantUnreadable(w wish, from string, limit int, lo, hi int64, err error) {
	m.test.Helper()
	var unreadable *storage.UnreadableError
	if !errors.As(err, &unreadable) {
		m.fatal("the list of %s: %v", w.name, err)
	}
	m.counts["unreadable lists"]++
	for revision := hi; revision >= lo; revision-- {
		want := m.h.page(m.h.at(revision), w, from, limit)
		if want.spoilt && want.left == 0 || len(want.broken) > 0 && want.broken[0] == unreadable.Key {
			return
		}
	}
	m.fatal("the list of %s from %q, limit %d: %v; that was so at no revision from %d to %d", w.name, from, limit, err, lo, hi)
}

// paging is a list with pages that are still to be read.
type paging struct {
	wish
	token    string
	revision int64
	from     string // the first key that may follow
}

func (m *model) beginPages() {
	m.test.Helper()
	w, at := m.wish(), m.moment()
	o := storage.ListOptions{Selection: w.Selection, At: at, Limit: int64(1 + m.rnd.IntN(4))}
	p, err := m.list1(w, o, "", at)
	if err == nil && p.Continue != "" {
		m.lists = append(m.lists, &paging{w, p.Continue, p.Revision, lastKey(p)})
	}
}

// lastKey is the first key that may follow a page.
func lastKey(p storage.Page) (from string) {
	for r := range p.Records {
		from = r.Key + "\x00"
	}
	return from
}

// nextPage continues a list; at the same key at the latest state, if the state is not retained any more.
func (m *model) nextPage(i int) {
	m.test.Helper()
	l := m.lists[i]
	o := storage.ListOptions{Selection: l.Selection, Limit: int64(1 + m.rnd.IntN(4)), Continue: l.token}
	m.counts["pages"]++
	p, err := m.list1(l.wish, o, l.from, storage.Read{Match: storage.Exact, Revision: l.revision})
	var expired *storage.ExpiredError
	if errors.As(err, &expired) {
		if expired.Continue == "" {
			m.fatal("an expired list of %s has no token", l.name)
		}
		o.Continue = expired.Continue
		p, err = m.list1(l.wish, o, l.from, storage.Read{})
	}
	if err != nil || p.Continue == "" {
		m.lists = slices.Delete(m.lists, i, i+1)
		return
	}
	l.token, l.revision, l.from = p.Continue, p.Revision, lastKey(p)
}
