package protobuf

import (
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// guard checks map entries that the generated methods do not check: the key and the value must have a length, if their types need
// one, and must end where the entry ends. Otherwise the generated methods would decode and copy the same bytes again and again:
// three megabytes of such labels become hundreds of gigabytes.
//
// A guard has, by number, those fields of a message with generated methods that are maps or are messages with maps in them, as
// the tags of the Go type define them. A nil guard has none.
type guard struct {
	fields map[int32]guarded
	maps   bool // the message contains maps at any depth
}

// guarded is a field of a guard: a message, or a map with its entries. inner is nil if the message or the map values contain no
// maps.
type guarded struct {
	inner   *guard
	isMap   bool
	counted bool // of a map: its values have a length
}

// guarded returns the guard of a message with generated methods.
func (m *Message) guarded() *guard {
	m.guardOnce.Do(func() {
		m.compiler.mu.Lock()
		defer m.compiler.mu.Unlock()
		if m.compiler.guards == nil {
			m.compiler.guards = map[reflect.Type]*guard{}
		}
		m.guard = m.compiler.guardOf(m.typ)
	})
	return m.guard
}

// guardOf returns the guard of a type. The caller holds mu.
func (c *Compiler) guardOf(t reflect.Type) *guard {
	found := map[reflect.Type]*guard{}
	root := c.collect(t, found)
	for changed := true; changed; { // messages may contain themselves
		changed = false
		for _, g := range found {
			for _, f := range g.fields {
				if !g.maps && (f.isMap || f.inner != nil && f.inner.maps) {
					g.maps, changed = true, true
				}
			}
		}
	}
	for t, g := range found {
		for number, f := range g.fields {
			if f.inner == nil || f.inner.maps {
				continue
			}
			if f.inner = nil; f.isMap {
				g.fields[number] = f
			} else {
				delete(g.fields, number)
			}
		}
		c.guards[t] = g
	}
	if !root.maps {
		return nil
	}
	return root
}

// collect adds the guards of a type and of all types inside it to found, except those that the compiler already has.
func (c *Compiler) collect(t reflect.Type, found map[reflect.Type]*guard) *guard {
	if g, ok := c.guards[t]; ok {
		return g
	}
	if g, ok := found[t]; ok {
		return g
	}
	g := &guard{fields: map[int32]guarded{}}
	found[t] = g
	add := func(number int32, t reflect.Type) {
		switch t = bare(t); {
		case t.Kind() == reflect.Map && !isMessage(t):
			g.fields[number] = guarded{inner: c.collect(bare(t.Elem()), found), isMap: true, counted: hasLength(t.Elem())}
		case t.Kind() == reflect.Struct || isMessage(t):
			g.fields[number] = guarded{inner: c.collect(t, found)}
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			_, rest, _ := strings.Cut(t.Field(i).Tag.Get("protobuf"), ",")
			text, _, _ := strings.Cut(rest, ",")
			if number, err := strconv.ParseInt(text, 10, 32); err == nil {
				add(int32(number), t.Field(i).Type)
			}
		}
	case reflect.Slice: // a message of its own, with the field items
		add(1, t.Elem())
	case reflect.Map:
		add(1, reflect.MapOf(t.Key(), t.Elem()))
	}
	return g
}

// check returns an error for a message with an invalid map entry. It stops at bytes that are not a message, because Unmarshal
// returns the error for these. It is recursive, so it must only be called for messages that are not tooDeep.
func (g *guard) check(message []byte) error {
	if g == nil {
		return nil
	}
	for len(message) > 0 {
		tag, n := looseVarint(message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		content, n := fieldContent(tag, message)
		if n < 0 {
			return nil
		}
		message = message[n:]
		if protowire.Type(tag&7) != bytesWire {
			continue
		}
		f, ok := g.fields[int32(tag>>3)] // the generated methods truncate the number in the same way
		if !ok {
			continue
		}
		check := f.inner.check
		if f.isMap {
			check = f.checkEntry
		}
		if err := check(content); err != nil {
			return err
		}
	}
	return nil
}

// checkEntry is check for an entry of a map.
func (f guarded) checkEntry(entry []byte) error {
	for len(entry) > 0 {
		tag, n := looseVarint(entry)
		if n < 0 {
			return errMapEntry
		}
		entry = entry[n:]
		number, wire := int32(tag>>3), protowire.Type(tag&7)
		content, n := fieldContent(tag, entry)
		switch {
		case n < 0:
			return errMapEntry
		case number == 1 && wire != bytesWire, number == 2 && (wire == bytesWire) != f.counted:
			return errMapEntry
		case number == 2 && wire == bytesWire:
			if err := f.inner.check(content); err != nil {
				return err
			}
		}
		entry = entry[n:]
	}
	return nil
}

// fieldContent returns the content of a field that has a length, and the number of bytes that any field takes after its tag. n is
// negative if there is no valid field. The content of a group is its fields.
func fieldContent(tag uint64, text []byte) (content []byte, n int) {
	switch kind := protowire.Type(tag & 7); kind {
	case protowire.BytesType:
		size, n := looseVarint(text)
		if n < 0 || size > uint64(len(text)-n) {
			return nil, -1
		}
		end := n + int(size)
		return text[n:end], end
	case protowire.VarintType:
		_, n := looseVarint(text)
		return nil, n
	case protowire.StartGroupType, protowire.EndGroupType:
		return nil, 0
	default:
		return nil, protowire.ConsumeFieldValue(1, kind, text)
	}
}

// bare returns the type of a field without pointers, and without the slice of a repeated field.
func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && !isMessage(t) {
		t = t.Elem()
	}
	return t
}

// hasLength reports whether the values of a map are written with their length.
func hasLength(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return isMessage(t)
	}
	return true
}
