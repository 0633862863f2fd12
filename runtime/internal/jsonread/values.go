package jsonread

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func readString(r *reader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	s, ok := r.string()
	if ok {
		v.SetString(s)
	}
	return ok
}

func readBool(r *reader, v reflect.Value) bool {
	switch {
	case r.literal("true"):
		v.SetBool(true)
		return true
	case r.literal("false"):
		return true
	}
	return r.null()
}

func readInt(r *reader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	text, ok := r.number()
	if !ok {
		return false
	}
	n, err := strconv.ParseInt(string(text), 10, v.Type().Bits())
	if err != nil {
		return false
	}
	v.SetInt(n)
	return true
}

func readUint(r *reader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	text, ok := r.number()
	if !ok {
		return false
	}
	n, err := strconv.ParseUint(string(text), 10, v.Type().Bits())
	if err != nil {
		return false
	}
	v.SetUint(n)
	return true
}

func readFloat(r *reader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	text, ok := r.number()
	if !ok {
		return false
	}
	n, err := strconv.ParseFloat(string(text), v.Type().Bits())
	if err != nil {
		return false
	}
	v.SetFloat(n)
	return true
}

// readBytes decodes base64.
func readBytes(r *reader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	text, ok := r.bytes()
	if !ok {
		return false
	}
	out := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(out, text)
	if err != nil {
		return false
	}
	v.SetBytes(out[:n])
	return true
}

// readItself calls the value's own UnmarshalJSON, also for null.
func readItself(r *reader, v reflect.Value) bool {
	from := r.at
	return r.skip() && v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(r.text[from:r.at:r.at]) == nil
}

// readTime decodes an API time as its own method does.
func readTime(r *reader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	text, ok := r.bytes()
	if !ok {
		return false
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return false
	}
	v.Addr().Interface().(*metav1.Time).Time = at.Local()
	return true
}

func readStringMap(r *reader, v reflect.Value) bool {
	if r.null() {
		return true
	}
	m := map[string]string{}
	*v.Addr().Interface().(*map[string]string) = m
	return r.members(func(name string) bool {
		if _, twice := m[name]; twice {
			return false
		}
		if r.null() {
			m[name] = ""
			return true
		}
		s, ok := r.string()
		m[name] = s
		return ok
	})
}

func readAny(r *reader, v reflect.Value) bool {
	value, ok := r.value()
	if ok && value != nil {
		v.Set(reflect.ValueOf(value))
	}
	return ok
}

// value decodes any value.
func (r *reader) value() (any, bool) {
	if r.at == len(r.text) {
		return nil, false
	}
	switch r.text[r.at] {
	case '{':
		m := map[string]any{}
		ok := r.members(func(name string) bool {
			if _, twice := m[name]; twice {
				return false
			}
			value, ok := r.value()
			m[name] = value
			return ok
		})
		return m, ok
	case '[':
		list := []any{}
		ok := r.elements(func() bool {
			value, ok := r.value()
			list = append(list, value)
			return ok
		})
		return list, ok
	case '"':
		s, ok := r.string()
		return s, ok
	case 't':
		return true, r.literal("true")
	case 'f':
		return false, r.literal("false")
	case 'n':
		return nil, r.null()
	}
	text, ok := r.number()
	if !ok {
		return nil, false
	}
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}
