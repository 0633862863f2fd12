package constraint

import (
	"reflect"
	"sort"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// judge validates an object, and compares it with its old state.
type judge struct {
	errs field.ErrorList
	path []step
	room [12]step // backing array of path, large enough unless objects are deep
}

// step is one step of a path: to a field, to an element of a list, or to an entry of a map.
type step struct {
	name  string
	index int
	kind  stepKind
}

// most limits the number of errors: one request could cause millions, which nobody would read.
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

// at returns the path of the present value.
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

// fields validates the fields of a struct. old is the zero Value if there is no old state.
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

// field validates a field. known means that the struct of the field existed before, so that was is the field's complete old
// state: the zero Value then means that the field is in an embedded struct that did not exist.
func (j *judge) field(p *place, v, was reflect.Value, known bool) {
	absent := p.absent(v)
	if r := p.rule; r != nil {
		if r.Immutable && known {
			if p.unchanged(v, was) {
				return // the values inside it did not change either, and are not compared again at every depth
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
		was = reflect.Value{} // a struct that was left out before, such as a status, is new
	}
	j.value(p, indirect(v), indirect(was))
}

// unchanged reports whether a field has its old value.
func (p *place) unchanged(v, was reflect.Value) bool {
	if p.absent(v) || p.absent(was) {
		return p.absent(v) && p.absent(was)
	}
	return same(v, was)
}

// value validates a value that is present, and the values inside it.
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
				return // the values inside it did not change either
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

// entries validates the values of a map. Errors are in the order of the keys.
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
	sort.Slice(wrong, func(i, j int) bool { return wrong[i].key < wrong[j].key })
	for _, e := range wrong {
		j.errs = append(j.errs, e.errs...)
	}
}

// elements validates the elements of a list. The old state of an element is found by its keys or its value. In an atomic list
// that has changed it is not known.
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

// past finds the old states of elements in the old state of a list.
type past struct {
	match *match
	list  reflect.Value  // the zero Value: none
	names map[string]int // made once elements have moved
}

// of returns the old state of elem, which is now at index i, or the zero Value.
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
