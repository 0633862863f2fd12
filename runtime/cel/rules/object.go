package rules

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/keelson-dev/keelson/runtime/cel"
	"github.com/keelson-dev/keelson/runtime/structural"
)

// object is an object of a schema. If the schema has properties, it has fields, whose names are escaped in expressions; otherwise
// it is a map.
type object struct {
	value map[string]any
	s     *structural.Schema
	m     *meter
}

var _ traits.Mapper = (*object)(nil)

func (o *object) hasFields() bool { return o.s.Properties != nil }

// schemaOf returns the schema of a member, nil if rules cannot see the member.
func (o *object) schemaOf(name string) *structural.Schema {
	if o.hasFields() {
		return o.s.Properties[name]
	}
	return o.s.Additional
}

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	if t.Kind() == reflect.Map {
		return o.value, nil
	}
	return nil, fmt.Errorf("type conversion error from '%s' to '%s'", o.Type(), t)
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("type conversion error from '%s' to '%s'", o.Type(), t.TypeName())
}

// Equal implements ref.Val. Members that rules cannot see are compared as they are, if both objects have them. If some members
// cannot be compared and no other member differs, the result is the error of the first of them by name.
func (o *object) Equal(other ref.Val) ref.Val {
	m, ok := other.(traits.Mapper)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	if o.Size() != m.Size() {
		return types.False
	}
	o.m.spend(len(o.value))
	var fault ref.Val
	var faulty string
	for name, value := range o.value {
		if o.schemaOf(name) == nil {
			as, ok := m.(*object)
			if !ok {
				return types.MaybeNoSuchOverloadErr(other)
			}
			if was, ok := as.value[name]; ok && !same(value, was, o.m) {
				return types.False
			}
			continue
		}
		o.m.compare(value)
		v, found := o.Find(types.String(name))
		w, foundOther := m.Find(types.String(name))
		if found != foundOther {
			return types.False
		}
		if !found {
			continue
		}
		switch equal := v.Equal(w); {
		case equal == types.False:
			return equal
		case equal != types.True && (fault == nil || name < faulty):
			fault, faulty = equal, name
		}
	}
	if fault != nil {
		return fault
	}
	return types.True
}

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return o.value }

// IsTree implements library.Tree: the object is no larger than the data that was read.
func (o *object) IsTree() {}

// Size implements traits.Sizer. It counts members that rules cannot see, too.
func (o *object) Size() ref.Val { return types.Int(len(o.value)) }

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val {
	value, found := o.Find(key)
	if value != nil && types.IsUnknownOrError(value) {
		return value
	}
	return types.Bool(found)
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	if value, found := o.Find(key); found {
		return value
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Find implements traits.Mapper. A field that is null is absent.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	text, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	name := string(text)
	o.m.read(name, 1)
	if o.hasFields() {
		o.m.read(name, readToParse)
		if name, ok = cel.Unescape(name); !ok {
			return nil, false
		}
	}
	value, ok := o.value[name]
	if !ok || value == nil && o.hasFields() {
		return nil, false
	}
	s := o.schemaOf(name)
	if s == nil {
		return nil, false
	}
	return view(value, s, o.m), true
}

// Iterator implements traits.Iterable. The keys are sorted, so that an evaluation always costs the same. As in kube-apiserver, a
// null for each member that rules cannot see follows, so that the number of keys is Size.
func (o *object) Iterator() traits.Iterator {
	o.m.spend(len(o.value))
	names := make([]string, 0, len(o.value))
	for name := range maps.Keys(o.value) {
		if o.schemaOf(name) != nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return &keyIterator{object: o, names: names, unseen: len(o.value) - len(names)}
}

// keyIterator iterates over the keys of an object. It implements ref.Val only because interfaces of cel-go require it.
type keyIterator struct {
	*object
	names  []string
	next   int
	unseen int // number of members that are not in names
}

// HasNext implements traits.Iterator.
func (it *keyIterator) HasNext() ref.Val { return types.Bool(it.next < len(it.names)+it.unseen) }

// Next implements traits.Iterator.
func (it *keyIterator) Next() ref.Val {
	it.next++
	if it.next > len(it.names) {
		return types.NullValue
	}
	name := it.names[it.next-1]
	if it.hasFields() {
		if escaped, ok := cel.Escape(name); ok {
			name = escaped
		}
	}
	return types.String(name)
}
