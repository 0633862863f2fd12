package codec

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// messageTypes are the fields of the messages that Go types are, as the tags of their fields say, by number: only those
// that have fields themselves. A message of a type without such tags has none.
//
// It is for what the generated methods do not look at: whether a map's entry says of its key and its value that they
// have a length, and whether they end where the entry ends. What does not would be read again and again, and copied:
// three megabytes of such labels become hundreds of gigabytes.
type messageTypes map[reflect.Type]map[int32]reflect.Type

// check refuses a message with such an entry. What is no message ends it: Unmarshal says what is wrong. It calls itself
// for each level, so that is for messages that are not tooDeep.
func (c messageTypes) check(t reflect.Type, message []byte) error {
	fields := c.of(t)
	if len(fields) == 0 {
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
		inner, ok := fields[int32(tag>>3)] // the generated methods cut it off, too
		if !ok || protowire.Type(tag&7) != protowire.BytesType {
			continue
		}
		var err error
		if inner.Kind() == reflect.Map && !isMessage(inner) {
			err = c.checkEntry(inner.Elem(), content)
		} else {
			err = c.check(inner, content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkEntry is check for an entry of a map.
func (c messageTypes) checkEntry(value reflect.Type, entry []byte) error {
	for len(entry) > 0 {
		tag, n := looseVarint(entry)
		if n < 0 {
			return errMapEntry
		}
		entry = entry[n:]
		number, kind := int32(tag>>3), protowire.Type(tag&7)
		content, n := fieldContent(tag, entry)
		switch {
		case n < 0:
			return errMapEntry
		case number == 1 && kind != protowire.BytesType, number == 2 && (kind == protowire.BytesType) != hasLength(value):
			return errMapEntry
		case number == 2 && kind == protowire.BytesType:
			if err := c.check(bare(value), content); err != nil {
				return err
			}
		}
		entry = entry[n:]
	}
	return nil
}

var errMapEntry = errors.New("proto: the key or the value of a map's entry is not of its type, or longer than the entry")

// fieldContent returns what a field with a length contains, and how many bytes any field takes behind its tag; negative
// when it is none. A group is its fields.
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

// of returns the fields of a type.
func (c messageTypes) of(t reflect.Type) map[int32]reflect.Type {
	if fields, ok := c[t]; ok {
		return fields
	}
	fields := map[int32]reflect.Type{}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			_, rest, _ := strings.Cut(t.Field(i).Tag.Get("protobuf"), ",")
			text, _, _ := strings.Cut(rest, ",")
			number, err := strconv.ParseInt(text, 10, 32)
			if inner := bare(t.Field(i).Type); err == nil && (inner.Kind() == reflect.Struct || inner.Kind() == reflect.Map || isMessage(inner)) {
				fields[int32(number)] = inner
			}
		}
	case reflect.Slice: // a message of its own, with the field items
		fields[1] = bare(t.Elem())
	case reflect.Map:
		fields[1] = reflect.MapOf(t.Key(), t.Elem())
	}
	c[t] = fields
	return fields
}

// bare is the type of a field without pointers, and without the list that says it is repeated.
func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && !isMessage(t) {
		t = t.Elem()
	}
	return t
}

func isMessage(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[protobufMessage]())
}

// hasLength reports whether a map's value of a type is written with its length.
func hasLength(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return isMessage(t)
	}
	return true
}
