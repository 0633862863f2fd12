package cacher

import (
	"slices"
	"strings"
)

func (q *idle) wakeClass(cl class, ch *change, woken []*watcher) []*watcher {
	m := q.classes[cl]
	if m == nil {
		return woken
	}
	for i := 0; i < len(m.list); {
		w := m.list[i]
		if ch.revision <= w.from || !w.concerned(ch) {
			i++
			continue
		}
		q.remove(w) // another watch takes its place in the list
		w.first = ch.revision
		woken = append(woken, w)
	}
	return woken
}

// nudgeWoken nudges the watches that were woken. The caller does not hold c.mu: each woken watch locks it, and would
// otherwise wait for the caller, and then all for one another.
func (c *Cacher) nudgeWoken() {
	c.mu.Lock()
	woken := c.woken
	c.woken = nil
	c.mu.Unlock()
	if len(woken) == 0 {
		return
	}
	for _, w := range woken {
		w.nudge()
	}
	clear(woken)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.woken == nil {
		c.woken = woken[:0]
	}
}

// serve sends states to the waiters whose revision is reached, and requests progress again for the others. If there were
// changes it does so at once, because they may have come instead of the progress mark. The caller holds mu.
func (c *Cacher) serve(changed bool) {
	reached := c.reached.Load()
	left := c.waiters[:0]
	for _, w := range c.waiters {
		if w.revision <= reached {
			w.state <- c.publish()
		} else {
			left = append(left, w)
		}
	}
	clear(c.waiters[len(left):])
	c.waiters = left
	c.asking = slices.DeleteFunc(c.asking, func(w *watcher) bool {
		if !w.gone && w.first == 0 && w.from > reached {
			return false // the watch begins at a later revision
		}
		w.asked, w.due = false, true
		w.nudge()
		return true
	})
	p := &c.progress
	again := p.asked && (p.late || changed)
	p.asked = false
	if len(c.waiters) == 0 {
		return
	}
	if again {
		c.ask()
	}
	c.askLater()
}

// wake gives a change to the idle watches that it concerns, and appends them to woken. They are not idle any more, and must
// be nudged.
func (q *idle) wake(ch *change, woken []*watcher) []*watcher {
	if len(q.classes) == 0 {
		return woken
	}
	known := change{revision: ch.revision, was: q.memo[0].of(ch.was), is: q.memo[1].of(ch.is)}
	ch = &known
	key := ch.key()
	woken = q.wakeClass(class{kind: everything}, ch, woken)
	woken = q.wakeClass(class{kind: single, value: key}, ch, woken)
	if ns, _, found := strings.Cut(key, "/"); found {
		woken = q.wakeClass(class{kind: namespace, value: ns}, ch, woken)
	}
	for _, e := range []*entry{ch.was, ch.is} {
		switch {
		case e == nil:
			continue
		case e.unreadable != nil: // it is unknown which values it would have
			return q.wakeIndexed(ch, woken)
		}
		for i, v := range e.values {
			if v.ok {
				woken = q.wakeClass(class{kind: indexed, index: i, value: v.text}, ch, woken)
			}
		}
	}
	return woken
}

// wakeIndexed gives a change to all watches of a value of an index.
func (q *idle) wakeIndexed(ch *change, woken []*watcher) []*watcher {
	for cl := range q.classes {
		if cl.kind == indexed {
			woken = q.wakeClass(cl, ch, woken)
		}
	}
	return woken
}
