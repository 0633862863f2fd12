package protobuf

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// entry holds the details of a map. Each entry is a message of a key, field 1, and a value, field 2.
type entry struct {
	key   element
	typ   reflect.Type // of the map
	plain reflect.Type // pointer to map[string]string or map[string][]byte if the map can be converted to it; nil: neither
	pairs sync.Pool    // of *pairs
}

func newEntry(t reflect.Type) *entry {
	e := &entry{typ: t}
	for _, plain := range []reflect.Type{reflect.TypeFor[*map[string]string](), reflect.TypeFor[*map[string][]byte]()} {
		if reflect.PointerTo(t).ConvertibleTo(plain) {
			e.plain = plain
		}
	}
	return e
}

// plainMap returns v as a *map[string]string or a *map[string][]byte.
func (e *entry) plainMap(v reflect.Value) any {
	p := v.Addr()
	if p.Type() != e.plain {
		p = p.Convert(e.plain)
	}
	return p.Interface()
}

// Tags of the two fields of an entry, without the wire type.
const (
	entryKey   = 1 << 3
	entryValue = 2 << 3
)

// pairs holds the keys and the values of a map, so that reflection can iterate over them without allocating memory for each.
type pairs struct {
	keys, values reflect.Value // slices
	order        []int         // of the keys
	iter         reflect.MapIter
}

// maxPairs limits the size of the pairs that are kept for the next map.
const maxPairs = 256

// take returns the pairs of a map; give returns them to the pool.
func (e *entry) take(v reflect.Value) *pairs {
	p, ok := e.pairs.Get().(*pairs)
	n := v.Len()
	if !ok || p.keys.Len() < n {
		p = &pairs{keys: reflect.MakeSlice(reflect.SliceOf(e.typ.Key()), n, n), values: reflect.MakeSlice(reflect.SliceOf(e.typ.Elem()), n, n)}
	}
	p.order = p.order[:0]
	p.iter.Reset(v)
	for i := 0; i < n && p.iter.Next(); i++ {
		p.keys.Index(i).SetIterKey(&p.iter)
		p.values.Index(i).SetIterValue(&p.iter)
		p.order = append(p.order, i)
	}
	slices.SortFunc(p.order, func(a, b int) int {
		one, other := p.keys.Index(a), p.keys.Index(b)
		switch e.key.kind {
		case stringKind:
			return cmp.Compare(one.String(), other.String())
		case uintKind:
			return cmp.Compare(one.Uint(), other.Uint())
		case boolKind:
			return truth(one) - truth(other)
		}
		return cmp.Compare(one.Int(), other.Int())
	})
	return p
}

func truth(v reflect.Value) int {
	if v.Bool() {
		return 1
	}
	return 0
}

func (e *entry) give(p *pairs) {
	if p.keys.Len() > maxPairs {
		return
	}
	p.iter.Reset(reflect.Value{})
	p.keys.Clear()
	p.values.Clear()
	e.pairs.Put(p)
}

// pair is the memory for a key and a value. It is used again for the next entry, which is mostly of the same map.
type pair struct {
	of         *field
	key, value reflect.Value
}

// plainEntry decodes an entry whose key and value are written as bytes.
func plainEntry(b []byte) (key, value []byte, err error) {
	for len(b) > 0 {
		number, wire, n, err := entryField(b)
		if err != nil {
			return nil, nil, err
		}
		b = b[n:]
		if number != 1 && number != 2 {
			continue
		}
		content, n, err := counted(b)
		if err != nil || wire != bytesWire {
			return nil, nil, errMapEntry
		}
		if b = b[n:]; number == 1 {
			key = content
		} else {
			value = content
		}
	}
	return key, value, nil
}

// entryField decodes the tag of the key or the value of an entry; n is the length of the tag. For other fields, n is the length
// of the field.
func entryField(b []byte) (number int32, wire protowire.Type, n int, err error) {
	key, n, err := varint(b)
	if err != nil {
		return 0, 0, 0, errMapEntry
	}
	if number, wire = int32(key>>3), protowire.Type(key&7); number != 1 && number != 2 {
		n, err = skip(b)
	}
	return number, wire, n, err
}
