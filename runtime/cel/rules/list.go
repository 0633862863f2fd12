package rules

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/keelson-dev/keelson/runtime/structural"
)

// list is a list of a schema. The embedding types setList and mapList are lists of other types; alone it is atomic.
type list struct {
	elements []any
	items    *structural.Schema
	m        *meter
}

var _ traits.Lister = (*list)(nil)

// ConvertToNative implements ref.Val. A list of strings becomes a []string, because functions on lists of strings need this type.
func (l *list) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() != reflect.Slice {
		return nil, fmt.Errorf("type conversion error from '%s' to '%s'", l.Type(), t)
	}
	if l.items.Type != "string" {
		return l.elements, nil
	}
	l.m.spend(len(l.elements))
	var texts []string
	for _, element := range l.elements {
		text, ok := element.(string)
		if !ok {
			return nil, fmt.Errorf("expected all elements to be of type string, but got %T", element)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// ConvertToType implements ref.Val.
func (l *list) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.ListType:
		return l
	case types.TypeType:
		return types.ListType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", l.Type(), t.TypeName())
}

// Type implements ref.Val.
func (l *list) Type() ref.Type { return types.ListType }

// Value implements ref.Val.
func (l *list) Value() any { return l.elements }

// IsTree implements library.Tree: the list is no larger than the data that was read.
func (l *list) IsTree() {}

// Size implements traits.Sizer.
func (l *list) Size() ref.Val { return types.Int(len(l.elements)) }

// Get implements traits.Indexer.
func (l *list) Get(index ref.Val) ref.Val {
	i, ok := index.(types.Int)
	if !ok {
		return types.ValOrErr(index, "unsupported index: %v", index)
	}
	if i < 0 || int(i) >= len(l.elements) {
		return types.NewErr("index out of bounds: %v", index)
	}
	return l.at(int(i))
}

func (l *list) at(i int) ref.Val { return view(l.elements[i], l.items, l.m) }

// Contains implements traits.Container. If an element cannot be compared, the result is an error only if no other element is
// equal.
func (l *list) Contains(value ref.Val) ref.Val {
	if types.IsUnknownOrError(value) {
		return value
	}
	l.m.spend(len(l.elements))
	var fault ref.Val
	for i := range l.elements {
		equal := l.at(i).Equal(value)
		if equal == types.True {
			return types.True
		}
		if _, ok := equal.(types.Bool); !ok && fault == nil {
			fault = types.MaybeNoSuchOverloadErr(equal)
		}
	}
	if fault != nil {
		return fault
	}
	return types.False
}

// Equal implements ref.Val.
func (l *list) Equal(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	size := types.Int(len(l.elements))
	if size != o.Size() {
		return types.False
	}
	l.m.spend(len(l.elements))
	for i := range size {
		l.m.compare(l.elements[i])
		if equal := l.at(int(i)).Equal(o.Get(i)); equal != types.True {
			return equal
		}
	}
	return types.True
}

// Add implements traits.Adder.
func (l *list) Add(other ref.Val) ref.Val {
	o, ok := other.(traits.Lister)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return &sum{first: l, second: o}
}

// all returns the elements as rules see them, in a new slice.
func (l *list) all() []ref.Val {
	l.m.spend(len(l.elements))
	all := make([]ref.Val, len(l.elements))
	for i := range all {
		all[i] = l.at(i)
	}
	return all
}

// Iterator implements traits.Iterable.
func (l *list) Iterator() traits.Iterator { return &listIterator{list: l} }

// listIterator iterates over a list. It implements ref.Val only because interfaces of cel-go require it.
type listIterator struct {
	*list
	next int
}

// HasNext implements traits.Iterator.
func (it *listIterator) HasNext() ref.Val { return types.Bool(it.next < len(it.elements)) }

// Next implements traits.Iterator.
func (it *listIterator) Next() ref.Val {
	it.next++
	return it.at(it.next - 1)
}
