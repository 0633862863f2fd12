package weight

import "reflect"

// Protobuf measures a message that is decoded into a Go type by the tags of its fields.
func (t *Types) Protobuf(message []byte, typ reflect.Type, l Limit) error {
	s := newScale(l)
	if err := s.controls(message); err != nil {
		return err
	}
	return s.done(s.message(message, t.of(typ), 0))
}

// Wire types: https://protobuf.dev/programming-guides/encoding/#structure.
const (
	varintWire  = 0
	fixed64Wire = 1
	bytesWire   = 2
	startWire   = 3
	endWire     = 4
	fixed32Wire = 5
)

// message measures a message without its slot. The fields of a group count as fields of the message.
func (s *scale) message(b []byte, n *node, depth int) error {
	if depth > mostDepth {
		return errEnd
	}
	var counts [32]int // the number of items and entries so far, by the lowest bits of the field number
	for len(b) > 0 {
		tag, size := varint(b)
		if size < 0 {
			return errEnd
		}
		b = b[size:]
		wire := tag & 7
		content, size := fieldContent(wire, b)
		if size < 0 {
			return errEnd
		}
		b = b[size:]
		number := int32(tag >> 3) // the generated methods truncate the number in the same way
		f, ok := n.numbers[number]
		if !ok || wire == startWire || wire == endWire {
			continue
		}
		count := &counts[number&31]
		*count++
		if f.counted != "" && s.limit.Items > 0 && *count > s.limit.Items {
			return &LimitError{f.counted, s.limit.Items}
		}
		if err := s.field(content, wire, f.node, *count, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// field measures a field, which is the n-th with its number.
func (s *scale) field(content []byte, wire uint64, n *node, count, depth int) error {
	switch {
	case n.isMessage():
	case n.sort == list && wire == bytesWire && n.elem.sort == plain && n.elem.size <= 8: // numbers
		items := 0
		for _, c := range content {
			if c < 0x80 {
				items++
			}
		}
		return s.add(items * n.elem.size)
	case n.sort == list:
		if err := s.add(n.elem.size); err != nil {
			return err
		}
		return s.inside(content, wire, n.elem, depth)
	case n.sort == mapping:
		if err := s.add(n.entry(count)); err != nil {
			return err
		}
		return s.message(content, n.value, depth)
	}
	return s.inside(content, wire, n, depth)
}

// isMessage reports whether a list or mapping is in a message of its own.
func (n *node) isMessage() bool { return n.numbers != nil }

// inside measures the values that a slot points to or contains.
func (s *scale) inside(content []byte, wire uint64, n *node, depth int) error {
	if n.sort == pointer {
		if err := s.add(n.elem.size); err != nil {
			return err
		}
		n = n.elem
	}
	if wire != bytesWire || n.numbers == nil {
		return nil
	}
	return s.message(content, n, depth)
}

// varint decodes a number as the generated methods do: bits of the tenth byte that do not fit into 64 bits are dropped. n is the
// number of bytes, and negative if there is no number.
func varint(b []byte) (v uint64, n int) {
	for i := range min(len(b), 10) {
		if v |= uint64(b[i]&0x7f) << (7 * i); b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}

// fieldContent returns the content of a field that has a length, and the number of bytes that any field takes after its tag. n is
// negative if there is no valid field.
func fieldContent(wire uint64, b []byte) (content []byte, n int) {
	switch wire {
	case varintWire:
		_, n = varint(b)
	case fixed64Wire:
		n = 8
	case fixed32Wire:
		n = 4
	case startWire, endWire:
	case bytesWire:
		size, head := varint(b)
		if head < 0 || size > uint64(len(b)-head) {
			return nil, -1
		}
		n = head + int(size)
		content = b[head:n]
	default:
		return nil, -1
	}
	if n > len(b) {
		return nil, -1
	}
	return content, n
}
