package protobuf

import (
	"fmt"
	"reflect"
	"slices"
)

// value returns the value that obj points to. obj must be a pointer to the type.
func (m *Message) value(obj any) (reflect.Value, error) {
	v := reflect.ValueOf(obj)
	if !v.IsValid() || v.Type() != m.pointer || v.IsNil() {
		return v, fmt.Errorf("%T is no %v, or nil", obj, m.pointer)
	}
	return v.Elem(), nil
}

// Size returns the number of bytes that Append adds for obj, a pointer to the type.
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

// Append appends the message of obj, a pointer to the type, to dst. On an error it returns dst.
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
		return append(text[:from], text[from+size-n:]...), nil // the method filled only the end; correct methods fill everything
	}
	w := m.compiler.writer()
	defer m.compiler.done(w)
	if err := w.message(m, v); err != nil {
		return dst, err
	}
	return append(dst, w.text[w.at:]...), nil
}

// Unmarshal decodes message into obj, a pointer to a new value of the type. obj refers to no memory of message. After an error
// the content of obj is undefined.
func (m *Message) Unmarshal(message []byte, obj any) (err error) {
	v, err := m.value(obj)
	if err != nil {
		return err
	}
	defer func() {
		if p := recover(); p != nil { // a generated method of the type panicked
			err = fmt.Errorf("decoding panicked: %v", p)
		}
	}()
	return m.merge(message, v, 0)
}

// hasMethods reports whether a type has protobuf methods of its own, as the types of k8s.io/api have. Methods that are promoted
// from the only embedded type with such methods do not count, because they encode and decode only that embedded type. (From two
// embedded types, such as TypeMeta and ObjectMeta, nothing is promoted.) A type that embeds one such type may still have methods
// of its own, which cannot be distinguished from promoted ones. It counts as a type without methods; its tags give the same
// result.
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
