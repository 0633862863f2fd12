package protobuf

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// Message encodes and decodes the messages of one Go type. It is immutable and may be used concurrently.
type Message struct {
	typ       reflect.Type
	pointer   reflect.Type // the pointer type of typ
	compiler  *Compiler
	generated bool    // the type is encoded and decoded by its generated methods
	fields    []field // in the order of their numbers; empty if generated is set
	index     []int16 // indexes of the fields by number, up to maxIndexed; negative: no field

	guardOnce sync.Once // makes guard, which only decoding needs
	guard     *guard    // only if generated is set
}

// field is one field of a message. The element describes its value, or each item of a list, or each value of a map.
type field struct {
	element
	index  int // in the struct, or itself
	name   string
	number int32
	shape  shape
	key    [5]byte // the tag written before each value
	keyLen int
	entry  *entry // of a map
}

// itself is the index of the only field of a message that is a slice or a map.
const itself = -1

type shape uint8

const (
	single shape = iota
	repeated
	packed
	mapping
)

// element describes how a value is encoded and decoded.
type element struct {
	typ     reflect.Type // without pointers
	pointer bool
	nilable bool // the value may be nil: a pointer, a slice or a map
	kind    kind
	message *Message // if kind is messageKind
}

type kind uint8

const (
	boolKind kind = iota
	intKind
	uintKind
	zigzagKind
	fixed32Int
	fixed32Uint
	fixed32Float
	fixed64Int
	fixed64Uint
	fixed64Float
	stringKind
	bytesKind
	messageKind
)

// Short names of the wire types that values have.
const (
	varintWire  = protowire.VarintType
	fixed32Wire = protowire.Fixed32Type
	fixed64Wire = protowire.Fixed64Type
	bytesWire   = protowire.BytesType
)

func (e *element) wire() protowire.Type {
	switch e.kind {
	case fixed32Int, fixed32Uint, fixed32Float:
		return fixed32Wire
	case fixed64Int, fixed64Uint, fixed64Float:
		return fixed64Wire
	case stringKind, bytesKind, messageKind:
		return bytesWire
	}
	return varintWire
}

// setKey sets the tag of the field.
func (f *field) setKey() {
	wire := f.wire()
	if f.shape == packed || f.shape == mapping {
		wire = bytesWire
	}
	f.keyLen = copy(f.key[:], protowire.AppendTag(nil, protowire.Number(f.number), wire))
}

// of returns the value of the field in a message's value.
func (f *field) of(v reflect.Value) reflect.Value {
	if f.index == itself {
		return v
	}
	return v.Field(f.index)
}

// maxIndexed is the largest field number that is found by an index.
const maxIndexed = 255

// add adds a field, whose number must be unused.
func (m *Message) add(f field) {
	at, _ := slices.BinarySearchFunc(m.fields, f.number, func(f field, n int32) int { return int(f.number) - int(n) })
	m.fields = slices.Insert(m.fields, at, f)
	m.index = m.index[:0]
	for i := range m.fields {
		n := m.fields[i].number
		if n > maxIndexed {
			break
		}
		for int(n) > len(m.index) {
			m.index = append(m.index, -1)
		}
		m.index = append(m.index, int16(i))
	}
}

// byNumber returns the field with a number, or nil.
func (m *Message) byNumber(n int32) *field {
	if n <= maxIndexed {
		if int(n) < len(m.index) && m.index[n] >= 0 {
			return &m.fields[m.index[n]]
		}
		return nil
	}
	at, ok := slices.BinarySearchFunc(m.fields, n, func(f field, n int32) int { return int(f.number) - int(n) })
	if !ok {
		return nil
	}
	return &m.fields[at]
}

// generated is implemented by the Go types of k8s.io/api: their methods are generated.
type generated interface {
	Unmarshal(message []byte) error
	Size() int
	MarshalToSizedBuffer(message []byte) (int, error)
}

// isMessage reports whether a type has these methods, perhaps from an embedded type.
func isMessage(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[generated]())
}

var errDeep = fmt.Errorf("proto: nested more than %d messages deep", maxDepth)
