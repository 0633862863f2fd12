package structural

import "reflect"

// Pairs pairs the values in a value with what they were before an update, as [Schema.ValidateUpdate] does for ratcheting,
// for others that ratchet. It belongs to one update and one goroutine.
type Pairs struct {
	root Pair
	pairing
}

// pairing is what is remembered while values are paired.
type pairing struct {
	compared comparison
	finders  map[uintptr]func(any) any // for lists that were, by where they are in memory
}

// NewPairs pairs a value of a schema with what it was.
func NewPairs(s *Schema, value, old any) *Pairs {
	p := &Pairs{pairing: pairing{comparison{}, map[uintptr]func(any) any{}}}
	p.root = Pair{schema: s, value: value, old: old, known: s != nil, pairing: &p.pairing}
	return p
}

// Root is the pair of the whole values.
func (p *Pairs) Root() Pair { return p.root }

// Pair is a value and what it was before, if that is known.
type Pair struct {
	schema     *Schema
	value, old any
	known      bool
	*pairing
}

// Known says that the value has a counterpart.
func (p Pair) Known() bool { return p.known }

// Same says that the value is known to be what it was.
func (p Pair) Same() bool { return p.known && p.compared.same(p.schema, p.value, p.old) }

// Member is the pair of a member of an object, which is not known if the schema does not describe it.
func (p Pair) Member(name string) Pair {
	value, ok := p.value.(map[string]any)
	old, okOld := p.old.(map[string]any)
	if !p.known || !ok || !okOld {
		return Pair{}
	}
	member, is := value[name]
	before, was := old[name]
	if schema := p.schema.member(name); is && was && schema != nil {
		return Pair{schema, member, before, true, p.pairing}
	}
	return Pair{}
}

// Element is the pair of an element of a list of type map. Those of other lists are not known.
func (p Pair) Element(index int) Pair {
	value, ok := p.value.([]any)
	old, okOld := p.old.([]any)
	if !p.known || !ok || !okOld || p.schema.ListType != listMap || p.schema.Items == nil || len(old) == 0 || index >= len(value) {
		return Pair{}
	}
	at := reflect.ValueOf(old).Pointer()
	find := p.finders[at]
	if find == nil {
		find = p.schema.finder(old)
		p.finders[at] = find
	}
	if before := find(value[index]); before != nil {
		return Pair{p.schema.Items, value[index], before, true, p.pairing}
	}
	return Pair{}
}
