package structural

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
)

// former is what a value was before an update. Nothing is known of it in the zero former; a value that was null is known.
type former struct {
	value any
	known bool
}

// member pairs a member of an object. At the root apiVersion and kind are not: old and new object come in the same one
// whatever is stored.
func (f former) member(name, at string) former {
	if !f.known || at == "" && (name == word.APIVersion || name == word.Kind) {
		return former{}
	}
	object, _ := f.value.(map[string]any)
	value, ok := object[name]
	return former{value, ok}
}

// elements pairs the elements of a list.
func (f former) elements(s *Schema) func(element any) former {
	list, ok := f.value.([]any)
	if !f.known || !ok || s.ListType != word.ListMap {
		return func(any) former { return former{} }
	}
	find := s.finder(list)
	return func(element any) former {
		value := find(element)
		return former{value, value != nil}
	}
}

// comparison remembers which values are what they were before, so that those around them, which may be judged too, need not
// compare them again.
type comparison map[compared]bool

// compared is a value that was compared with a former one. The two are known by where they are in memory.
type compared struct {
	schema     *Schema
	value, old uintptr
}

// same says that a value is what it was before, as far as that is told by the pairs of ratcheting: the order of a list of
// type map does not count, and an object with a member that is not described is never the same.
func (c comparison) same(s *Schema, v, old any) bool {
	if v == nil || old == nil {
		return v == nil && old == nil
	}
	switch v := v.(type) {
	case []any:
		old, ok := old.([]any)
		if !ok || len(v) != len(old) {
			return false
		}
		return len(v) == 0 || c.once(s, v, old, func() bool { return c.sameList(s, v, old) })
	case map[string]any:
		old, ok := old.(map[string]any)
		if !ok || len(v) != len(old) {
			return false
		}
		return c.once(s, v, old, func() bool { return c.sameObject(s, v, old) })
	}
	switch old.(type) {
	case []any, map[string]any:
		return false
	}
	return v == old
}

// once compares two values that are held by reference, if that was not done before.
func (c comparison) once(s *Schema, v, old any, compare func() bool) bool {
	key := compared{s, reflect.ValueOf(v).Pointer(), reflect.ValueOf(old).Pointer()}
	equal, done := c[key]
	if !done {
		equal = compare()
		c[key] = equal
	}
	return equal
}

// sameObject compares objects of the same size.
func (c comparison) sameObject(s *Schema, v, old map[string]any) bool {
	for name, member := range v {
		before, ok := old[name]
		schema := s.member(name)
		if !ok || schema == nil || !c.same(schema, member, before) {
			return false
		}
	}
	return true
}

// sameList compares lists of the same length.
func (c comparison) sameList(s *Schema, v, old []any) bool {
	if s.ListType != word.ListMap {
		return reflect.DeepEqual(v, old)
	}
	find := s.finder(old)
	for _, element := range v {
		before := find(element)
		if before == nil || s.Items == nil || !c.same(s.Items, element, before) {
			return false
		}
	}
	return true
}

// member is the schema of a member of an object, nil if it is not described.
func (s *Schema) member(name string) *Schema {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[name]; ok {
		return property
	}
	return s.Additional
}

// fewElements is how long a list may be to be searched rather than indexed.
const fewElements = 16

// finder returns what finds the element of a list of type map that has the keys of another, nil if there is none. If
// several have, it is the first.
func (s *Schema) finder(list []any) func(element any) any {
	if s.Type != word.Array || len(s.ListMapKeys) == 0 || len(list) == 0 {
		return func(any) any { return nil }
	}
	var index map[string]any
	if len(list) > fewElements {
		index = make(map[string]any, len(list))
		for _, element := range list {
			if key, ok := s.keyOf(element); ok {
				if _, taken := index[key]; !taken {
					index[key] = element
				}
			}
		}
	}
	return func(element any) any {
		key, ok := s.keyOf(element)
		if !ok {
			return nil
		}
		if index != nil {
			return index[key]
		}
		for _, candidate := range list {
			if other, ok := s.keyOf(candidate); ok && other == key {
				return candidate
			}
		}
		return nil
	}
}

// keyOf returns the keys of an element as one text, if it has all of them and they are scalars.
func (s *Schema) keyOf(element any) (string, bool) {
	object, ok := element.(map[string]any)
	if !ok {
		return "", false
	}
	var key strings.Builder
	for _, name := range s.ListMapKeys {
		switch v := object[name].(type) {
		case string:
			key.WriteString("s" + strconv.Itoa(len(v)) + ":" + v)
		case int64:
			key.WriteString("i" + strconv.FormatInt(v, 10) + ":")
		case float64:
			key.WriteString("f" + strconv.FormatFloat(v, 'g', -1, 64) + ":")
		case bool:
			key.WriteString("b" + strconv.FormatBool(v) + ":")
		default:
			return "", false
		}
	}
	return key.String(), true
}

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
	if !p.known || !ok || !okOld || p.schema.ListType != word.ListMap || p.schema.Items == nil || len(old) == 0 || index >= len(value) {
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
