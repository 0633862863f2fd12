package canonical

import (
	"bytes"
	"encoding/json"
	"reflect"

	kjson "sigs.k8s.io/json"
)

// whole is the rule of a type without a more specific rule: each value is decoded and encoded.
type whole struct {
	typ reflect.Type
	// addressable means that the values can be addressed, which is false for the values of maps. encoding/json then uses methods
	// of the pointer.
	addressable bool
}

func (w *whole) match(r *reader, at int) (end int, is facts) {
	if end = skip(r.text, at); end < 0 {
		return no, 0
	}
	text := r.text[at:end]
	v := reflect.New(w.typ)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, v.Interface()); err != nil {
		return no, 0
	}
	from := v
	if !w.addressable {
		from = v.Elem()
	}
	again, err := json.Marshal(from.Interface())
	if err != nil || !bytes.Equal(again, text) {
		return no, 0
	}
	return end, factsOf(v.Elem())
}

// factsOf returns the facts of a value, as encoding/json determines them.
func factsOf(v reflect.Value) (is facts) {
	if v.IsZero() {
		is |= zero
	}
	if isVoid(v) {
		is |= void
	}
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		if v.Len() == 0 {
			is |= empty
		}
	case reflect.Struct:
	default:
		if v.IsZero() {
			is |= empty
		}
	}
	return is
}

// isVoid reports whether the option omitzero leaves out v, which is addressable.
func isVoid(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() || v.Elem().Kind() == reflect.Pointer && v.Elem().IsNil() {
			return true
		}
	case reflect.Pointer:
		if v.IsNil() {
			return true
		}
	}
	if v.Type().Implements(zeroer) {
		return v.Interface().(interface{ IsZero() bool }).IsZero()
	}
	if reflect.PointerTo(v.Type()).Implements(zeroer) {
		return v.Addr().Interface().(interface{ IsZero() bool }).IsZero()
	}
	return v.IsZero()
}

// skip returns the offset after the JSON value that begins at the offset at, or no.
func skip(text []byte, at int) int {
	depth := 0
	for at < len(text) {
		switch text[at] {
		case '"':
			if at = skipString(text, at); at < 0 {
				return no
			}
			if depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				if depth < 0 {
					return no
				}
				return at + 1
			}
		default:
			if depth == 0 {
				return skipPlain(text, at)
			}
		}
		at++
	}
	return no
}

// skipString is skip for a string.
func skipString(text []byte, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return no
}

// skipPlain is skip for a number, true, false or null.
func skipPlain(text []byte, at int) int {
	n := bytes.IndexAny(text[at:], ",]}")
	if n < 0 {
		n = len(text) - at
	}
	if n == 0 {
		return no
	}
	return at + n
}
