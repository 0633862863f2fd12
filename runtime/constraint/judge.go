package constraint

import (
	"cmp"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// judge walks through an object, and beside it through what the object was before.
type judge struct {
	errs field.ErrorList
	path []step
	room [12]step // what path is made of, unless objects are deep
}

// step is one step of a path: to a field, to an element of a list, or with a key to one of a map.
type step struct {
	name  string
	index int
	kind  stepKind
}

// most is how many errors are found; more are of no use to anybody, and one request could make millions.
const most = 1000

func (j *judge) enough() bool { return len(j.errs) >= most }

type stepKind byte

const (
	toField stepKind = iota
	toIndex
	toKey
)

func (j *judge) down(s step) { j.path = append(j.path, s) }
func (j *judge) up()         { j.path = j.path[:len(j.path)-1] }

// at returns the path of the value at hand.
func (j *judge) at() *field.Path {
	var p *field.Path
	for _, s := range j.path {
		switch s.kind {
		case toField:
			p = p.Child(s.name)
		case toIndex:
			p = p.Index(s.index)
		case toKey:
			p = p.Key(s.name)
		}
	}
	return p
}

// fields judges the fields of a struct. old is the zero Value when there is nothing to compare with.
func (j *judge) fields(s *shape, v, old reflect.Value) {
	for _, p := range s.judged {
		if j.enough() {
			return
		}
		var was reflect.Value
		if old.IsValid() {
			was = p.of(old)
		}
		j.down(step{name: p.name})
		j.field(p, p.of(v), was, old.IsValid())
		j.up()
	}
}

// field judges a field. known says that the struct it is in was there before, so that was tells all of the field's
// past: the zero Value then is a field of an embedded struct that was not there.
func (j *judge) field(p *place, v, was reflect.Value, known bool) {
	absent := p.absent(v)
	if r := p.rule; r != nil {
		if r.Immutable && known {
			if p.unchanged(v, was) {
				return // nor is anything inside it, which is not looked at once more at every depth
			}
			var shown any
			if !absent {
				shown = plain(v)
			}
			j.errs = append(j.errs, field.Invalid(j.at(), shown, "field is immutable").WithOrigin("immutable"))
			return
		}
		if r.Required && absent && !(known && p.absent(was)) {
			j.errs = append(j.errs, field.Required(j.at(), ""))
		}
	}
	if absent {
		return
	}
	if v.Kind() == reflect.Struct && (p.omitEmpty || p.omitZero) && was.IsValid() && was.IsZero() && !v.IsZero() {
		was = reflect.Value{} // a struct that was meant to be left out, such as a status, is new
	}
	j.value(p, indirect(v), indirect(was))
}

// unchanged reports whether a field is as it was.
func (p *place) unchanged(v, was reflect.Value) bool {
	if p.absent(v) || p.absent(was) {
		return p.absent(v) && p.absent(was)
	}
	return same(v, was)
}

// value judges a value that is there, and what is inside it.
func (j *judge) value(p *place, v, old reflect.Value) {
	if !v.IsValid() {
		return
	}
	if p.rule != nil {
		for _, check := range p.rule.checks {
			complain := check(v)
			if complain == nil {
				continue
			}
			if old.IsValid() && same(v, old) {
				return // and all that is inside it
			}
			j.errs = append(j.errs, complain(j.at())...)
		}
	}
	switch {
	case p.inner != nil && len(p.inner.judged) > 0:
		j.fields(p.inner, v, old)
	case p.elem == nil || !p.elem.judges:
	case v.Kind() == reflect.Map:
		j.entries(p, v, old)
	default:
		j.elements(p, v, old)
	}
}

// entries judges the values of a map. Errors come in the order of the keys.
func (j *judge) entries(p *place, m, old reflect.Value) {
	type entry struct {
		key  string
		errs field.ErrorList
	}
	var wrong []entry
	before, found := j.errs, 0
	for it := m.MapRange(); len(before)+found < most && it.Next(); {
		var was reflect.Value
		if old.IsValid() {
			was = old.MapIndex(it.Key())
		}
		key := keyText(it.Key())
		j.errs = nil
		j.down(step{name: key, kind: toKey})
		j.value(p.elem, indirect(it.Value()), indirect(was))
		j.up()
		if len(j.errs) > 0 {
			wrong = append(wrong, entry{key, j.errs})
			found += len(j.errs)
		}
	}
	j.errs = before
	slices.SortFunc(wrong, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	for _, e := range wrong {
		j.errs = append(j.errs, e.errs...)
	}
}

// elements judges the elements of a list. What an element was before is known by its keys or its value; in an atomic
// list that has changed it is not known.
func (j *judge) elements(p *place, list, old reflect.Value) {
	if !old.IsValid() || old.Len() == 0 {
		old = reflect.Value{}
	}
	past := past{match: &p.match, list: old}
	before := len(j.errs)
	for i := 0; i < list.Len() && !j.enough(); i++ {
		elem := indirect(list.Index(i))
		j.down(step{index: i, kind: toIndex})
		j.value(p.elem, elem, past.of(elem, i))
		j.up()
	}
	if len(j.errs) > before && old.IsValid() && same(list, old) {
		j.errs = j.errs[:before]
	}
}

// past finds elements in what a list was before.
type past struct {
	match *match
	list  reflect.Value  // the zero Value: none
	names map[string]int // made when elements have moved
}

// of returns what elem, now at index i, was, or the zero Value.
func (p *past) of(elem reflect.Value, i int) reflect.Value {
	if !p.list.IsValid() || !p.match.tells() {
		return reflect.Value{}
	}
	name, ok := p.match.name(elem)
	if !ok {
		return reflect.Value{}
	}
	if p.names == nil && i < p.list.Len() {
		if other, ok := p.match.name(p.list.Index(i)); ok && other == name {
			return indirect(p.list.Index(i))
		}
	}
	if p.names == nil {
		p.names = make(map[string]int, p.list.Len())
		for k := range p.list.Len() {
			other, ok := p.match.name(p.list.Index(k))
			if _, taken := p.names[other]; ok && !taken {
				p.names[other] = k
			}
		}
	}
	if k, ok := p.names[name]; ok {
		return indirect(p.list.Index(k))
	}
	return reflect.Value{}
}
