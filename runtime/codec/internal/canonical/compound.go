package canonical

import "bytes"

// object is the rule of structs whose JSON consists of their fields.
type object struct {
	members []member // in the order in which they are written
}

// member is a field.
type member struct {
	head      string // the name in quotes, and the colon
	value     rule
	leaves    facts // the facts of a value that is left out
	optional  bool  // it is left out when zero
	defaulted bool  // it has a default, which replaces a zero value
}

func (o *object) match(r *reader, at int) (end int, is facts) {
	if r.byteAt(at) != '{' || !r.enter() {
		return no, 0
	}
	at++
	is = void | zero
	next := 0 // index in members
	if r.byteAt(at) != '}' {
		for {
			for next < len(o.members) && !r.has(at, o.members[next].head) {
				if !o.members[next].optional {
					return no, 0
				}
				next++
			}
			if next == len(o.members) {
				return no, 0
			}
			m := &o.members[next]
			next++
			to, of := m.value.match(r, at+len(m.head))
			if to < 0 || of&m.leaves != 0 || m.defaulted && of&zero != 0 {
				return no, 0
			}
			if of&zero == 0 {
				is = 0
			}
			if at = to; r.byteAt(at) != ',' {
				break
			}
			at++
		}
	}
	for ; next < len(o.members); next++ {
		if !o.members[next].optional {
			return no, 0
		}
	}
	if r.byteAt(at) != '}' {
		return no, 0
	}
	r.leave()
	return at + 1, is
}

// list is the rule of slices.
type list struct{ elem rule }

func (l *list) match(r *reader, at int) (end int, is facts) {
	switch {
	case r.has(at, null):
		return at + len(null), nothing
	case r.has(at, "[]"):
		return at + 2, empty
	case r.byteAt(at) != '[' || !r.enter():
		return no, 0
	}
	for {
		if at, _ = l.elem.match(r, at+1); at < 0 {
			return no, 0
		}
		switch r.byteAt(at) {
		case ',':
		case ']':
			r.leave()
			return at + 1, 0
		default:
			return no, 0
		}
	}
}

// dict is the rule of maps with strings for keys.
type dict struct{ elem rule }

func (d *dict) match(r *reader, at int) (end int, is facts) {
	switch {
	case r.has(at, null):
		return at + len(null), nothing
	case r.has(at, "{}"):
		return at + 2, empty
	case r.byteAt(at) != '{' || !r.enter():
		return no, 0
	}
	var before []byte
	for first := true; ; first = false {
		at++
		end := plainString(r.text, at)
		if end < 0 || r.byteAt(end) != ':' {
			return no, 0
		}
		key := r.text[at+1 : end-1]
		if !first && bytes.Compare(before, key) >= 0 {
			return no, 0
		}
		before = key
		if at, _ = d.elem.match(r, end+1); at < 0 {
			return no, 0
		}
		switch r.byteAt(at) {
		case ',':
		case '}':
			r.leave()
			return at + 1, 0
		default:
			return no, 0
		}
	}
}

// pointer is the rule of pointers.
type pointer struct{ to rule }

func (p *pointer) match(r *reader, at int) (end int, is facts) {
	if r.has(at, null) {
		return at + len(null), nothing
	}
	end, _ = p.to.match(r, at)
	return end, 0
}

// never is the rule of values that cannot be recognised.
type never struct{}

func (never) match(*reader, int) (int, facts) { return no, 0 }
