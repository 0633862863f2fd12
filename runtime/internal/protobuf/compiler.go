package protobuf

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Compiler makes and caches the tables of Go types. It keeps one table for each type. The zero Compiler is ready to use. All
// methods may be called concurrently. It must not be copied.
type Compiler struct {
	known  sync.Map   // reflect.Type → compiled
	texts  sync.Pool  // of *writer
	mu     sync.Mutex // held while tables are made, so that each type has only one; guards the field guards
	guards map[reflect.Type]*guard
}

// compiled is the result for a type: exactly one of the fields is set.
type compiled struct {
	message *Message
	err     error
}

// Of returns the message of a struct type. If the type has no protobuf form, the error names the field without a valid tag, and
// says what to write.
func (c *Compiler) Of(t reflect.Type) (*Message, error) {
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%v has no protobuf form: it is no struct", t)
	}
	if known, ok := c.known.Load(t); ok {
		return known.(compiled).message, known.(compiled).err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := builder{c, map[reflect.Type]*Message{}}
	m, err := b.message(t)
	if err != nil {
		err = fmt.Errorf("%s has no protobuf form: %w", nameOf(t), err)
		c.known.Store(t, compiled{err: err})
		return nil, err
	}
	for inner, m := range b.made {
		c.known.Store(inner, compiled{message: m})
	}
	return m, nil
}

// builder makes the tables of a type and of all types inside it.
type builder struct {
	compiler *Compiler
	made     map[reflect.Type]*Message // complete when the first call of message has returned
}

// message returns the table of a struct, or of a slice or a map that is a message of its own. A type that contains itself gets
// the pointer to its table before the table is complete.
func (b builder) message(t reflect.Type) (*Message, error) {
	if known, ok := b.compiler.known.Load(t); ok && known.(compiled).err == nil {
		return known.(compiled).message, nil
	}
	if m, ok := b.made[t]; ok {
		return m, nil
	}
	m := &Message{typ: t, pointer: reflect.PointerTo(t), compiler: b.compiler}
	b.made[t] = m
	var err error
	switch {
	case hasMethods(t):
		m.generated = true
	case t.Kind() == reflect.Struct:
		err = b.fields(m)
	default:
		f := field{index: itself, name: "Items", number: 1}
		if err = b.field(&f, t, tag{}); err == nil {
			m.add(f)
		}
	}
	return m, err
}

// fields adds the fields of a struct to its message.
func (b builder) fields(m *Message) error {
	hidden := false
	for i := range m.typ.NumField() {
		sf := m.typ.Field(i)
		if !sf.IsExported() {
			if hidden = true; sf.Anonymous && isStruct(sf.Type) && sf.Tag.Get("json") != "-" {
				return fmt.Errorf("field %s is of a type that is not exported: embed one that is", sf.Name)
			}
			continue
		}
		text, tagged := sf.Tag.Lookup("protobuf")
		if text == "-" || !tagged && (sf.Tag.Get("json") == "-" || sf.Anonymous && sf.Type == reflect.TypeFor[metav1.TypeMeta]()) {
			continue
		}
		if !tagged {
			return fmt.Errorf("field %s has no protobuf tag%s", sf.Name, proposal(m.typ, sf))
		}
		label, err := parseTag(text)
		if err == nil && m.byNumber(label.number) != nil {
			err = fmt.Errorf("its number %d is that of another field", label.number)
		}
		f := field{index: i, name: sf.Name, number: label.number}
		if err == nil {
			err = b.field(&f, sf.Type, label)
		}
		if inner := (*innerError)(nil); errors.As(err, &inner) {
			return fmt.Errorf("field %s: %w", sf.Name, err)
		} else if err != nil {
			return fmt.Errorf("field %s, %s with the tag `protobuf:%q`: %w", sf.Name, nameOf(sf.Type), text, err)
		}
		m.add(f)
	}
	if len(m.fields) == 0 && hidden {
		return errors.New("none of its fields is exported")
	}
	return nil
}

// innerError is an error about a field of the type of a field.
type innerError struct {
	typ reflect.Type
	err error
}

func (e *innerError) Error() string { return nameOf(e.typ) + ": " + e.err.Error() }
func (e *innerError) Unwrap() error { return e.err }

// field sets the parts of f that depend on the type and the tag of a field.
func (b builder) field(f *field, t reflect.Type, label tag) (err error) {
	switch {
	case !isList(t):
		f.shape = single
		err = b.element(&f.element, t, label.wire)
	case t.Kind() == reflect.Map:
		f.shape = mapping
		err = b.mapping(f, t)
	default:
		f.shape = repeated
		err = b.element(&f.element, t.Elem(), label.wire)
	}
	if err == nil && label.packed {
		if f.shape != repeated || f.wire() == bytesWire {
			return errors.New("only a list of numbers is packed")
		}
		f.shape = packed
	}
	if err == nil {
		f.setKey()
	}
	return err
}

// element sets the parts of e for one value: of a field, of an item, or of a map's key or value. wire is the encoding in the tag;
// "" means the usual encoding of the type.
func (b builder) element(e *element, t reflect.Type, wire string) (err error) {
	switch t.Kind() {
	case reflect.Slice, reflect.Map:
		e.nilable = true
	case reflect.Pointer:
		e.nilable, e.pointer, t = true, true, t.Elem()
		if t.Kind() == reflect.Pointer || isList(t) || isBytes(t) {
			return errors.New("a pointer to a slice, a map or a pointer cannot be written")
		}
	}
	e.typ = t
	if isList(t) || t.Kind() == reflect.Struct || isMessage(t) {
		e.kind = messageKind
		if e.message, err = b.message(t); err != nil {
			return &innerError{t, err}
		}
		return nil
	}
	e.kind, err = scalarKind(t, wire)
	return err
}

// mapping sets the parts of f that depend on a map's type.
func (b builder) mapping(f *field, t reflect.Type) error {
	f.entry = newEntry(t)
	if err := b.element(&f.entry.key, t.Key(), ""); err != nil {
		return err
	}
	switch f.entry.key.kind {
	case boolKind, intKind, uintKind, stringKind:
	default:
		return fmt.Errorf("a %v cannot be the key of a map", t.Key())
	}
	if f.entry.key.pointer {
		return fmt.Errorf("a %v cannot be the key of a map", t.Key())
	}
	return b.element(&f.element, t.Elem(), "")
}
