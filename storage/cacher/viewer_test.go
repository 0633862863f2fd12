package cacher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"k8s.io/apimachinery/pkg/watch"
)

// viewer is a watch whose expected events the model can compute.
type viewer struct {
	storage.Watch
	wish
	from    int64 // the last revision received, or where the watch began
	next    int   // index of the first change that it may show
	voids   int64 // the voids of the cache when it began
	initial bool  // the end of the initial events has not come yet
	oldest  int64 // the state of the initial events is at this revision or a later one
	began   int64 // the store's revision when it began
	objects map[string]string
}

// beginWatch begins a watch after a revision, or with random options when that is negative.
func (m *model) beginWatch(w wish, from int64) {
	m.test.Helper()
	v := &viewer{wish: w, voids: m.voids.Load(), began: m.h.now}
	o := storage.WatchOptions{Selection: w.Selection, Bookmarks: m.rnd.IntN(2) == 0}
	switch n := m.rnd.IntN(10); {
	case from >= 0:
		o.From = from
	case n < 5:
		o.Initial = true
		for o.At = m.moment(); o.At.Match == storage.Exact; {
			o.At = m.moment()
		}
	case n < 6:
		o.From = m.h.now + m.rnd.Int64N(10)
	case n < 9:
		o.From = m.h.now - m.rnd.Int64N(min(m.h.now-m.h.first, 60)+1)
	}
	var err error
	v.Watch, err = m.Watch(m.ctx, o)
	m.note("Watch %s from %d, initial %v at %+v: %v", w.name, o.From, o.Initial, o.At, err)
	if m.filling(err) {
		return
	}
	if o.Initial {
		v.initial, v.objects = true, map[string]string{}
		if v.oldest, _ = m.bounds(o.At, 0, err); v.oldest > m.h.now {
			return
		}
	}
	var expired *storage.ExpiredError
	oldest := max(m.Stats().Oldest, m.floor()) // read before the check whether the cache is void
	switch {
	case errors.As(err, &expired):
		if o.Initial || o.From == 0 || v.voids == m.voids.Load() && o.From >= oldest {
			m.fatal("a watch from %d: %v", o.From, err)
		}
		m.counts["watches too late"]++
		return
	case err != nil:
		m.fatal("Watch(%+v): %v", o, err)
	}
	if v.from = o.From; v.from == 0 {
		v.from = m.h.now
	}
	v.next = m.h.after(v.from)
	m.views = append(m.views, v)
	m.test.Cleanup(v.Close)
}

func (m *model) lose(v *viewer) {
	m.views = slices.DeleteFunc(m.views, func(other *viewer) bool { return other == v })
}

// sees returns the event type of a change for a selection, and the value in the event. The type is "" for no event and
// "ERROR" for a change that ends the watch.
func (w wish) sees(c turn) (kind watch.EventType, shown string) {
	if !w.covers(c.key) {
		return "", ""
	}
	if c.is != nil && c.is.broken {
		return watch.Error, ""
	}
	matches, matched := w.has(c.key, c.is), c.was != nil
	if c.was != nil && (c.is == nil || w.Selective()) {
		if c.was.broken && !matches {
			return watch.Error, ""
		}
		matched = w.has(c.key, c.was)
	}
	switch {
	case matches && matched:
		return watch.Modified, row(c.key, c.is)
	case matches:
		return watch.Added, row(c.key, c.is)
	case matched:
		was := *c.was
		was.revision = c.revision
		return watch.Deleted, row(c.key, &was)
	}
	return "", ""
}

func (w wish) mustEnd(c turn) bool {
	kind, _ := w.sees(c)
	return kind == watch.Error
}

// due returns the first change that the watch has to show and has not shown; nil for none.
func (m *model) due(v *viewer) *turn {
	for ; v.next < len(m.h.turns); v.next++ {
		if kind, _ := v.sees(m.h.turns[v.next]); kind != "" && m.h.turns[v.next].revision > v.from {
			return &m.h.turns[v.next]
		}
	}
	return nil
}

// readWatch reads some events.
func (m *model) readWatch(v *viewer, n int) {
	m.test.Helper()
	for n > 0 {
		ctx := m.patiently()
		switch {
		case m.held:
			short, cancel := context.WithTimeout(m.ctx, time.Millisecond)
			defer cancel()
			ctx = short
		case v.from > m.h.now:
			return
		case !v.initial && m.due(v) == nil, m.rnd.IntN(4) == 0:
			v.RequestProgress()
		}
		events, err := v.Next(ctx)
		switch {
		case err == nil:
		case m.held && errors.Is(err, context.DeadlineExceeded):
			return
		default:
			m.ended(v, err)
			return
		}
		for _, e := range events {
			n--
			m.shown(v, e)
			if e.Type == watch.Bookmark && !e.InitialEnd {
				n = 0
			}
		}
	}
}

// drain reads a watch up to the store's revision.
func (m *model) drain(v *viewer) {
	m.test.Helper()
	for v.from < m.h.now && slices.Contains(m.views, v) {
		m.readWatch(v, 1)
	}
}

// shown checks one event.
func (m *model) shown(v *viewer, e storage.Event) {
	m.test.Helper()
	m.note("watch of %s: %s", v.name, eventText(e))
	m.counts["events"]++
	if _, err := e.Forms.Get(context.Background(), 1, func() ([]byte, error) { return make([]byte, m.rnd.IntN(3000)), nil }); err != nil {
		m.fatal("a form: %v", err)
	}
	if v.initial {
		m.shownInitial(v, e)
		return
	}
	c := m.due(v)
	if e.Type == watch.Bookmark {
		if e.InitialEnd || e.Record.Revision < v.from || e.Record.Revision > m.h.now || c != nil && c.revision <= e.Record.Revision {
			m.fatal("a watch of %s at %d shows %s; the next change for it is %+v", v.name, v.from, eventText(e), c)
		}
		m.counts["bookmarks"]++
		v.from = e.Record.Revision
		return
	}
	if c == nil {
		m.fatal("a watch of %s at %d shows %s, and there is nothing more", v.name, v.from, eventText(e))
	}
	kind, want := v.sees(*c)
	if got := rowOf(m.test, e.Record); e.Type != kind || got != want || e.InitialEnd {
		m.fatal("a watch of %s at %d shows %s %s, want %s %s", v.name, v.from, e.Type, got, kind, want)
	}
	v.from = c.revision
	v.next++
}

// shownInitial checks one of the initial events. Together they must result in the state at the revision of the bookmark at
// their end.
func (m *model) shownInitial(v *viewer, e storage.Event) {
	m.test.Helper()
	key := e.Record.Key
	_, had := v.objects[key]
	switch {
	case e.Type == watch.Added && !had, e.Type == watch.Modified && had:
		v.objects[key] = rowOf(m.test, e.Record)
	case e.Type == watch.Deleted && had:
		delete(v.objects, key)
	case e.Type == watch.Bookmark && e.InitialEnd:
		revision := e.Record.Revision
		want := m.h.page(m.h.at(revision), v.wish, "", 0)
		var got []string
		for _, text := range v.objects {
			got = append(got, text)
		}
		slices.Sort(got)
		if slices.Sort(want.rows); !slices.Equal(got, want.rows) || len(want.broken) > 0 || revision < v.oldest || revision > m.h.now {
			m.fatal("the initial events of %s at %d are %q, want %q; not before %d", v.name, revision, got, want.rows, v.oldest)
		}
		m.counts["initial states"]++
		if revision > v.began {
			m.counts["caught up"]++
		}
		v.initial, v.from, v.next = false, revision, m.h.after(revision)
	default:
		m.fatal("among the initial events of %s is %s; %q is there: %v", v.name, eventText(e), key, had)
	}
}

// ended checks why a watch has ended, and continues with another one.
func (m *model) ended(v *viewer, err error) {
	m.test.Helper()
	m.note("watch of %s ends at %d: %v", v.name, v.from, err)
	m.lose(v)
	c, oldest := m.due(v), max(m.Stats().Oldest, m.floor())
	next := "none"
	if c != nil {
		next = fmt.Sprintf("%q at %d: %+v, %+v", c.key, c.revision, c.was, c.is)
	}
	var expired *storage.ExpiredError
	var unreadable *storage.UnreadableError
	switch {
	case errors.As(err, &expired):
		m.counts["expired watches"]++
		if strings.HasSuffix(fmt.Sprintf("%T", v.Watch), ".lentWatch") && v.from < m.floor() {
			break // a store's watch expires earlier: every change of the resource counts for it
		}
		if v.voids == m.voids.Load() && (v.initial || c == nil || c.revision > oldest) {
			m.fatal("a watch of %s at %d (initial %v): %v; the next change for it is %s", v.name, v.from, v.initial, err, next)
		}
	case errors.As(err, &unreadable) && v.initial:
		for revision := v.oldest; revision <= m.h.now; revision++ {
			if len(m.h.page(m.h.at(revision), v.wish, "", 0).broken) > 0 {
				return
			}
		}
		m.fatal("a watch that begins with %s: %v", v.name, err)
	case errors.As(err, &unreadable):
		m.counts["unreadable watches"]++
		if c == nil {
			m.fatal("a watch of %s at %d: %v", v.name, v.from, err)
		}
		if !v.mustEnd(*c) || unreadable.Key != c.key {
			m.fatal("a watch of %s at %d: %v; the next change for it is %s", v.name, v.from, err, next)
		}
		m.beginWatch(v.wish, c.revision)
		return
	default:
		m.fatal("a watch of %s (%T) at %d: %v; the next change for it is %s", v.name, v.Watch, v.from, err, next)
	}
	if !v.initial {
		m.beginWatch(v.wish, v.from)
	}
}
