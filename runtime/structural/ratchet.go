package structural

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime/structural/internal/word"
)

// former is the value before an update. known is false if there is no corresponding old value. A value that was null is known.
type former struct {
	value any
	known bool
}

// member returns the old value of a member of an object. apiVersion and kind at the root have none, because both objects are in
// the same version, whatever version is stored.
func (f former) member(name, at string) former {
	if !f.known || at == "" && (name == word.APIVersion || name == word.Kind) {
		return former{}
	}
	object, _ := f.value.(map[string]any)
	value, ok := object[name]
	return former{value, ok}
}

// elements returns a function that returns the old value of an element of a list.
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

// comparison remembers which values are unchanged, so that the values around them need not compare them again.
type comparison map[compared]bool

// compared is a pair of a value and an old value, identified by their addresses.
type compared struct {
	schema     *Schema
	value, old uintptr
}

// same reports whether a value is unchanged by the rules of ratcheting. The order of a list of type map does not count, and an
// object with a member that the schema does not describe is never unchanged.
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

// once compares two maps or slices, unless they were compared before.
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

// member returns the schema of a member of an object, nil if the schema does not describe the member.
func (s *Schema) member(name string) *Schema {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[name]; ok {
		return property
	}
	return s.Additional
}

// fewElements is the maximum length of a list that is searched rather than indexed.
const fewElements = 16

// finder returns a function that returns the element of a list of type map with the same keys as its argument, nil if there is
// none. If several elements have the keys, it is the first.
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

// keyOf returns the keys of an element as one string, if the element has all of them and all are scalars.
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

// Pairs pairs the values inside a value with their old values, as [Schema.ValidateUpdate] does for ratcheting. Other packages
// that ratchet use it. It is for one update and must not be used concurrently.
type Pairs struct {
	root Pair
	pairing
}

// pairing is the state that all pairs share.
type pairing struct {
	compared comparison
	finders  map[uintptr]func(any) any // functions for the old lists, by the addresses of the lists
}

// NewPairs returns the pairs of a value of a schema and its old value.
func NewPairs(s *Schema, value, old any) *Pairs {
	p := &Pairs{pairing: pairing{comparison{}, map[uintptr]func(any) any{}}}
	p.root = Pair{schema: s, value: value, old: old, known: s != nil, pairing: &p.pairing}
	return p
}

// Root returns the pair of the whole values.
func (p *Pairs) Root() Pair { return p.root }

// Pair is a value and its old value, if there is one.
type Pair struct {
	schema     *Schema
	value, old any
	known      bool
	*pairing
}

// Known reports whether the value has a corresponding old value.
func (p Pair) Known() bool { return p.known }

// Same reports whether the value is known to be unchanged.
func (p Pair) Same() bool { return p.known && p.compared.same(p.schema, p.value, p.old) }

// Member returns the pair of a member of an object. It is not known if the schema does not describe the member.
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

// Element returns the pair of an element of a list of type map. The pair of an element of another list is not known: see
// [Pair.Known].
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
