package cacher

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
type quiet struct{ classes map[class][]*watcher }

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

// wake gives a change to the watches that it concerns. They are quiet no more.
func (q *quiet) wake(ch *change) {
	if len(q.classes) == 0 {
		return
	}
	key := ch.key()
	q.wakeClass(class{kind: everything}, ch)
	q.wakeClass(class{kind: single, value: key}, ch)
	if ns, _ := splitKey(key); ns != "" {
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
