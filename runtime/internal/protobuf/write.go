package protobuf

import (
	"math"
	"math/bits"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// writer writes a message from its end to its beginning. The length of a nested message is then known when it must be written,
// and nothing is measured first.
type writer struct {
	text  []byte
	at    int // the offset in text where the message begins
	depth int
	names []string // the keys of maps while they are sorted
}

// maxKept is the largest size of a buffer that is kept for the next message.
const maxKept = 1 << 20

func (c *Compiler) writer() *writer {
	w, ok := c.texts.Get().(*writer)
	if !ok {
		return &writer{}
	}
	w.at, w.depth = len(w.text), 0
	return w
}

func (c *Compiler) done(w *writer) {
	if len(w.text) <= maxKept {
		c.texts.Put(w)
	}
}

// size returns the number of bytes that were written.
func (w *writer) size() int { return len(w.text) - w.at }

// take makes room for n bytes before those that were written, and returns it.
func (w *writer) take(n int) []byte {
	if w.at < n {
		w.grow(n)
	}
	w.at -= n
	return w.text[w.at : w.at+n]
}

func (w *writer) grow(n int) {
	const least = 4096
	larger := make([]byte, max(least, 2*len(w.text), w.size()+n))
	at := len(larger) - w.size()
	copy(larger[at:], w.text[w.at:])
	w.text, w.at = larger, at
}

func (w *writer) varint(v uint64) {
	if v < 0x80 {
		w.take(1)[0] = byte(v)
		return
	}
	to := w.take((bits.Len64(v) + 6) / 7)
	last := len(to) - 1
	for i := range last {
		to[i] = byte(v) | 0x80
		v >>= 7
	}
	to[last] = byte(v)
}

func (w *writer) string(s string) {
	copy(w.take(len(s)), s)
	w.varint(uint64(len(s)))
}

func (w *writer) bytes(b []byte) {
	copy(w.take(len(b)), b)
	w.varint(uint64(len(b)))
}

func (w *writer) fixed32(v uint32) {
	protowire.AppendFixed32(w.take(4)[:0], v)
}

func (w *writer) fixed64(v uint64) {
	protowire.AppendFixed64(w.take(8)[:0], v)
}

func (w *writer) key(f *field) {
	if f.keyLen == 1 {
		w.take(1)[0] = f.key[0]
		return
	}
	copy(w.take(f.keyLen), f.key[:f.keyLen])
}

// message writes the content of a message.
func (w *writer) message(m *Message, v reflect.Value) error {
	if m.generated {
		g := v.Addr().Interface().(generated)
		to := w.take(g.Size())
		n, err := g.MarshalToSizedBuffer(to)
		w.at += len(to) - n // only the end of to was filled
		return err
	}
	if w.depth++; w.depth > maxDepth+1 {
		return errDeep
	}
	for i := len(m.fields) - 1; i >= 0; i-- {
		f := &m.fields[i]
		if err := w.field(f, f.of(v)); err != nil {
			return err
		}
	}
	w.depth--
	return nil
}

func (w *writer) field(f *field, v reflect.Value) error {
	switch f.shape {
	case single:
		if f.nilable && v.IsNil() {
			return nil
		}
		if err := w.value(&f.element, v); err != nil {
			return err
		}
		w.key(f)
	case repeated:
		for i := v.Len() - 1; i >= 0; i-- {
			if err := w.value(&f.element, v.Index(i)); err != nil {
				return err
			}
			w.key(f)
		}
	case packed:
		if v.Len() == 0 {
			return nil
		}
		end := w.size()
		for i := v.Len() - 1; i >= 0; i-- {
			if err := w.value(&f.element, v.Index(i)); err != nil {
				return err
			}
		}
		w.varint(uint64(w.size() - end))
		w.key(f)
	case mapping:
		if v.Len() > 0 {
			return w.mapping(f, v)
		}
	}
	return nil
}

// value writes a value, or the value that v points to, with its length if it has one.
func (w *writer) value(e *element, v reflect.Value) error {
	if e.pointer {
		if v.IsNil() { // an item of a list, which must not be left out
			v = reflect.New(v.Type().Elem())
		}
		v = v.Elem()
	}
	switch e.kind {
	case boolKind:
		b := byte(0)
		if v.Bool() {
			b = 1
		}
		w.take(1)[0] = b
	case intKind:
		w.varint(uint64(v.Int()))
	case uintKind:
		w.varint(v.Uint())
	case zigzagKind:
		w.varint(protowire.EncodeZigZag(v.Int()))
	case fixed32Int:
		w.fixed32(uint32(v.Int()))
	case fixed32Uint:
		w.fixed32(uint32(v.Uint()))
	case fixed32Float:
		w.fixed32(math.Float32bits(float32(v.Float())))
	case fixed64Int:
		w.fixed64(uint64(v.Int()))
	case fixed64Uint:
		w.fixed64(v.Uint())
	case fixed64Float:
		w.fixed64(math.Float64bits(v.Float()))
	case stringKind:
		w.string(v.String())
	case bytesKind:
		w.bytes(v.Bytes())
	case messageKind:
		end := w.size()
		if err := w.message(e.message, v); err != nil {
			return err
		}
		w.varint(uint64(w.size() - end))
	}
	return nil
}

// mapping writes the entries of a non-empty map in the order of their keys.
func (w *writer) mapping(f *field, v reflect.Value) error {
	if f.entry.plain != nil {
		switch m := f.entry.plainMap(v).(type) {
		case *map[string]string:
			writeMap(w, f, *m, func(value string) {
				w.string(value)
				w.take(1)[0] = entryValue | byte(bytesWire)
			})
		case *map[string][]byte:
			writeMap(w, f, *m, func(value []byte) {
				if value != nil {
					w.bytes(value)
					w.take(1)[0] = entryValue | byte(bytesWire)
				}
			})
		}
		return nil
	}
	p := f.entry.take(v)
	defer f.entry.give(p)
	for i := len(p.order) - 1; i >= 0; i-- {
		end := w.size()
		if value := p.values.Index(p.order[i]); !f.nilable || !value.IsNil() || !f.pointer && f.kind == messageKind {
			if err := w.value(&f.element, value); err != nil {
				return err
			}
			w.take(1)[0] = entryValue | byte(f.wire())
		}
		if err := w.value(&f.entry.key, p.keys.Index(p.order[i])); err != nil {
			return err
		}
		w.take(1)[0] = entryKey | byte(f.entry.key.wire())
		w.varint(uint64(w.size() - end))
		w.key(f)
	}
	return nil
}

func writeMap[V any](w *writer, f *field, m map[string]V, value func(V)) {
	from := len(w.names)
	for name := range m {
		w.names = append(w.names, name)
	}
	names := w.names[from:]
	slices.Sort(names)
	for _, name := range slices.Backward(names) {
		end := w.size()
		value(m[name])
		w.string(name)
		w.take(1)[0] = entryKey | byte(bytesWire)
		w.varint(uint64(w.size() - end))
		w.key(f)
	}
	clear(names)
	w.names = w.names[:from]
}
