package protobuf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"google.golang.org/protobuf/encoding/protowire"
)

// Errors of messages, with the texts of the generated methods.
var (
	errOverflow = errors.New("proto: integer overflow")
	errGroup    = errors.New("proto: unexpected end of group")
)

// Errors that the generated methods do not detect.
var (
	errPacked   = errors.New("proto: an item of a packed list is longer than the list")
	errMapEntry = errors.New("proto: the key or the value of a map's entry is not of its type, or longer than the entry")
)

// merge decodes a message into v and keeps the values that v has. depth is the number of messages around it.
func (m *Message) merge(b []byte, v reflect.Value, depth int) error {
	switch {
	case depth > maxDepth:
		return errDeep
	case !m.generated:
		return m.read(b, v, depth)
	case tooDeep(b, maxDepth-depth):
		return errDeep
	}
	if err := m.guarded().check(b); err != nil {
		return err
	}
	return v.Addr().Interface().(generated).Unmarshal(b)
}

func (m *Message) read(b []byte, v reflect.Value, depth int) error {
	var last pair
	for len(b) > 0 {
		key, n, err := varint(b)
		if err != nil {
			return err
		}
		number, wire := int32(key>>3), protowire.Type(key&7)
		switch {
		case wire == protowire.EndGroupType:
			return fmt.Errorf("proto: %s: wiretype end group for non-group", m.typ.Name())
		case number <= 0:
			return fmt.Errorf("proto: %s: illegal tag %d (wire type %d)", m.typ.Name(), number, key)
		}
		f := m.byNumber(number)
		if f == nil {
			n, err = skip(b)
		} else {
			b = b[n:]
			n, err = f.read(b, wire, f.of(v), depth, &last)
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

func (f *field) wrongWire(wire protowire.Type) error {
	return fmt.Errorf("proto: wrong wireType = %d for field %s", wire, f.name)
}

// read decodes the bytes after a tag of the field.
func (f *field) read(b []byte, wire protowire.Type, v reflect.Value, depth int, last *pair) (n int, err error) {
	switch f.shape {
	case single:
		if wire != f.wire() {
			return 0, f.wrongWire(wire)
		}
		return f.element.read(b, v, depth)
	case mapping:
		if wire != bytesWire {
			return 0, f.wrongWire(wire)
		}
		content, n, err := counted(b)
		if err != nil {
			return 0, err
		}
		return n, f.readEntry(content, v, depth, last)
	}
	if wire == f.wire() {
		if v.Cap() == 0 {
			v.Grow(f.count(b))
		}
		return f.element.read(b, next(v), depth)
	}
	if wire != bytesWire {
		return 0, f.wrongWire(wire)
	}
	content, n, err := counted(b)
	for err == nil && len(content) > 0 {
		size, err := f.element.read(content, next(v), depth)
		if err != nil {
			return 0, errPacked
		}
		content = content[size:]
	}
	return n, err
}

// next appends an item to a slice, and returns the item.
func next(v reflect.Value) reflect.Value {
	n := v.Len()
	if n == v.Cap() {
		v.Grow(1)
	}
	v.SetLen(n + 1)
	return v.Index(n)
}

// count returns the number of consecutive items of a list in b, which begins with the first one.
func (f *field) count(b []byte) int {
	if f.wire() != bytesWire {
		return 1
	}
	for items := 1; ; items++ {
		_, n, err := counted(b)
		if err != nil || len(b)-n < f.keyLen || string(b[n:n+f.keyLen]) != string(f.key[:f.keyLen]) {
			return items
		}
		b = b[n+f.keyLen:]
	}
}

// read decodes a value into v, and returns its length.
func (e *element) read(b []byte, v reflect.Value, depth int) (int, error) {
	if e.pointer {
		if e.kind != messageKind || v.IsNil() { // a message that occurs twice is merged
			v.Set(reflect.New(e.typ))
		}
		v = v.Elem()
	}
	switch e.wire() {
	case varintWire:
		x, n, err := varint(b)
		if err != nil {
			return 0, err
		}
		switch e.kind {
		case boolKind:
			v.SetBool(x != 0)
		case intKind:
			v.SetInt(int64(x))
		case uintKind:
			v.SetUint(x)
		default:
			v.SetInt(protowire.DecodeZigZag(x))
		}
		return n, nil
	case bytesWire:
		content, n, err := counted(b)
		if err != nil {
			return 0, err
		}
		switch e.kind {
		case stringKind:
			v.SetString(string(content))
		case bytesKind:
			v.SetBytes(append([]byte{}, content...))
		default:
			begin(v)
			err = e.message.merge(content, v, depth+1)
		}
		return n, err
	case fixed32Wire:
		if len(b) < 4 {
			return 0, io.ErrUnexpectedEOF
		}
		x := binary.LittleEndian.Uint32(b)
		switch e.kind {
		case fixed32Int:
			v.SetInt(int64(int32(x)))
		case fixed32Uint:
			v.SetUint(uint64(x))
		default:
			v.SetFloat(float64(math.Float32frombits(x)))
		}
		return 4, nil
	default:
		if len(b) < 8 {
			return 0, io.ErrUnexpectedEOF
		}
		x := binary.LittleEndian.Uint64(b)
		switch e.kind {
		case fixed64Int:
			v.SetInt(int64(x))
		case fixed64Uint:
			v.SetUint(x)
		default:
			v.SetFloat(math.Float64frombits(x))
		}
		return 8, nil
	}
}

// begin makes a message that is a slice or a map empty, so that it is not nil even if it has no items.
func begin(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
	}
}

// readEntry decodes an entry and adds it to a map.
func (f *field) readEntry(b []byte, v reflect.Value, depth int, last *pair) error {
	if v.IsNil() {
		v.Set(reflect.MakeMap(f.entry.typ))
	}
	if f.entry.plain != nil {
		key, value, err := plainEntry(b)
		if err != nil {
			return err
		}
		switch m := f.entry.plainMap(v).(type) {
		case *map[string]string:
			(*m)[string(key)] = string(value)
		case *map[string][]byte:
			(*m)[string(key)] = append([]byte{}, value...)
		}
		return nil
	}
	if last.of != f {
		*last = pair{f, reflect.New(f.entry.typ.Key()).Elem(), reflect.New(f.entry.typ.Elem()).Elem()}
	}
	key, value := last.key, last.value
	key.SetZero()
	f.fresh(value)
	for len(b) > 0 {
		number, wire, n, err := entryField(b)
		if err != nil {
			return err
		}
		into, e := key, &f.entry.key
		switch number {
		case 1:
		case 2:
			into, e = value, &f.element
			f.fresh(value) // of two values the last one counts
		default:
			b = b[n:]
			continue
		}
		if wire != e.wire() {
			return errMapEntry
		}
		b = b[n:]
		if _, _, err := counted(b); wire == bytesWire && err != nil {
			return errMapEntry
		}
		if n, err = e.read(b, into, depth); err != nil && wire == bytesWire {
			return err
		} else if err != nil {
			return errMapEntry
		}
		b = b[n:]
	}
	v.SetMapIndex(key, value)
	return nil
}

// fresh sets the value of a map's entry to what it is if the entry has no value.
func (f *field) fresh(value reflect.Value) {
	value.SetZero()
	switch {
	case f.pointer:
	case f.kind == bytesKind:
		value.SetBytes([]byte{})
	case f.kind == messageKind:
		begin(value)
	}
}
