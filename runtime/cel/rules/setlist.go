package rules

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// setList is a list of type set. The order of its elements does not count in comparisons. X + Y is X followed by the elements of
// Y that are not in X.
type setList struct{ list }

// Equal implements ref.Val.
func (l *setList) Equal(other ref.Val) ref.Val { return equalAsSets(l, other, l.m) }

// Add implements traits.Adder.
func (l *setList) Add(other ref.Val) ref.Val { return union(l.all(), other, l.m) }

// ConvertToType implements ref.Val.
func (l *setList) ConvertToType(t ref.Type) ref.Val { return converted(l, l.list.ConvertToType(t)) }

// derivedSet is a list that a rule has made of lists of type set.
type derivedSet struct {
	traits.Lister
	m *meter
}

// Equal implements ref.Val.
func (l *derivedSet) Equal(other ref.Val) ref.Val { return equalAsSets(l, other, l.m) }

// Add implements traits.Adder.
func (l *derivedSet) Add(other ref.Val) ref.Val { return union(elementsOf(l, l.m), other, l.m) }

// converted returns l if result, the result of a conversion, is the list embedded in l.
func converted(l traits.Lister, result ref.Val) ref.Val {
	if _, ok := result.(*list); ok {
		return l
	}
	return result
}

// elementsOf returns the elements of a list in a new slice.
func elementsOf(l traits.Lister, m *meter) []ref.Val {
	size, _ := l.Size().(types.Int)
	m.spend(int(size))
	all := make([]ref.Val, 0, size)
	for i := range size {
		all = append(all, l.Get(i))
	}
	return all
}

// union adds the elements of other to those of a set. It takes ownership of the slice all.
func union(all []ref.Val, other ref.Val, m *meter) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	m.spend(len(all) + sizeOf(o))
	has := make(map[any]bool, len(all))
	for _, element := range all {
		key, fault := setKey(element, m)
		if fault != nil {
			return fault
		}
		has[key] = true
	}
	for it := o.Iterator(); it.HasNext() == types.True; {
		element := it.Next()
		key, fault := setKey(element, m)
		if fault != nil {
			return fault
		}
		if !has[key] {
			has[key] = true
			all = append(all, element)
		}
	}
	return &derivedSet{types.NewRefValList(types.DefaultTypeAdapter, all), m}
}

// equalAsSets compares lists without regard to the order of the elements.
func equalAsSets(l traits.Lister, other ref.Val, m *meter) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	size, _ := l.Size().(types.Int)
	if size != o.Size() {
		return types.False
	}
	m.spend(2 * int(size))
	seen := make(map[any]bool, size)
	for it := l.Iterator(); it.HasNext() == types.True; {
		key, fault := setKey(it.Next(), m)
		if fault != nil {
			return fault
		}
		seen[key] = false
	}
	met := 0
	for it := o.Iterator(); it.HasNext() == types.True; {
		key, fault := setKey(it.Next(), m)
		if fault != nil {
			return fault
		}
		before, is := seen[key]
		if !is {
			return types.False
		}
		if !before {
			seen[key] = true
			met++
		}
	}
	return types.Bool(met == len(seen))
}

// setKey returns a value that identifies an element of a set, and that may be the key of a Go map. Only scalars have one; for
// other values the second result is an error.
func setKey(element ref.Val, m *meter) (any, ref.Val) {
	switch element.(type) {
	case traits.Lister, traits.Mapper:
		return nil, types.NewErr("listSet operations are only supported on lists of scalar values")
	}
	return comparable(element.Value(), m), nil
}

// readToHash and readToQuote are the cost, in plain reads of a string, of looking the string up in a Go map and of quoting it.
const readToHash, readToQuote = 4, 64

// byteKey is the key of a []byte. It is distinct from the key of a string.
type byteKey string

// comparable returns a value that can be the key of a Go map. Values that cannot be a key are formatted as text: only lists and
// objects that do not fit the schema.
func comparable(value any, m *meter) any {
	switch v := value.(type) {
	case string:
		m.read(v, readToHash)
	case []byte:
		m.spend(len(v) / bytesPerWork * readToHash)
		return byteKey(v)
	}
	if value != nil && !reflect.TypeOf(value).Comparable() {
		return fmt.Sprintf("%#v", value)
	}
	return value
}
