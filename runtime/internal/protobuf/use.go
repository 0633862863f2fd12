package protobuf

import (
	"fmt"
	"reflect"
	"slices"
)

// value returns what obj, a pointer to the type, points to.
func (m *Message) value(obj any) (reflect.Value, error) {
	v := reflect.ValueOf(obj)
	if !v.IsValid() || v.Type() != m.pointer || v.IsNil() {
		return v, fmt.Errorf("%T is no %v, or nil", obj, m.pointer)
	}
	return v.Elem(), nil
}

// Size returns how many bytes Append adds for obj, a pointer to the type.
func (m *Message) Size(obj any) (int, error) {
	v, err := m.value(obj)
	if err != nil {
		return 0, err
	}
	if m.generated {
		return obj.(generated).Size(), nil
	}
	w := m.compiler.writer()
	defer m.compiler.done(w)
	if err := w.message(m, v); err != nil {
		return 0, err
	}
	return w.size(), nil
}

// Append appends the message of obj, a pointer to the type, to dst. On an error what it returns is dst.
func (m *Message) Append(dst []byte, obj any) ([]byte, error) {
	v, err := m.value(obj)
	if err != nil {
		return dst, err
	}
	if m.generated {
		g := obj.(generated)
		from, size := len(dst), g.Size()
		text := slices.Grow(dst, size)[:from+size]
		n, err := g.MarshalToSizedBuffer(text[from:])
		if err != nil {
			return dst, err
		}
		return append(text[:from], text[from+size-n:]...), nil // it wrote the end; of methods that are right, all
	}
	w := m.compiler.writer()
	defer m.compiler.done(w)
	if err := w.message(m, v); err != nil {
		return dst, err
	}
	return append(dst, w.text[w.at:]...), nil
}

// Unmarshal makes obj, a pointer to a new value of the type, what the message says. obj keeps none of the message's memory.
// After an error obj is anything.
func (m *Message) Unmarshal(message []byte, obj any) (err error) {
	v, err := m.value(obj)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil { // the generated methods of some type
			err = fmt.Errorf("decoding panicked: %v", p)
		}
	}()
	return m.merge(message, v, 0)
}

// hasMethods reports whether a type has protobuf methods of its own, as those of k8s.io/api have. Methods that are
// promoted from the only embedded type which has them would read and write no more than that: with two or more, as
// TypeMeta and ObjectMeta are, nothing is promoted. A type that embeds one such type may still have methods of its own,
// which nothing tells from promoted ones; as they do what its tags say, it is taken for one that has none.
func hasMethods(t reflect.Type) bool {
	if !isMessage(t) {
		return false
	}
	if t.Kind() != reflect.Struct {
		return true
	}
	embedded := 0
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && (isMessage(f.Type) || f.Type.Kind() == reflect.Pointer && isMessage(f.Type.Elem())) {
			embedded++
		}
	}
	return embedded != 1
}
