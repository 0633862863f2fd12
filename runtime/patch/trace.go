package patch

import (
	"encoding/binary"
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// The steps in a trace: to a field, to an item of a set, to an item of a list of type map, the change of the value, and back. The
// length of a text comes before the text.
const (
	toField  = 'f' // followed by its name
	toValue  = 'v' // followed by a scalar
	toItem   = 'k' // followed by the number of key fields, and the name and scalar of each
	added    = 'A'
	removed  = 'R'
	modified = 'M'
	back     = '<'
)

// The scalars in a trace.
const (
	scalarText  = 's' // followed by the text
	scalarInt   = 'i' // followed by the number
	scalarTrue  = 't'
	scalarFalse = 'n'
)

// appendKey appends the step to a list item.
func (n *node) appendKey(b []byte, item reflect.Value) []byte {
	if len(n.keys) == 0 {
		return appendScalar(append(b, toValue), n.item, item)
	}
	given := len(b) + 1
	b = append(b, toItem, 0)
	for i := range n.keys {
		k := &n.keys[i]
		if k.field != nil {
			if v, has := k.field.of(item); has {
				b[given]++
				b = appendScalar(appendText(b, k.name), k.field.node, v)
				continue
			}
		}
		switch fallback := k.fallback.(type) {
		case string:
			b[given]++
			b = appendText(append(appendText(b, k.name), scalarText), fallback)
		case bool:
			b[given]++
			b = appendBool(appendText(b, k.name), fallback)
		}
	}
	return b
}

func appendScalar(b []byte, n *node, v reflect.Value) []byte {
	switch n.form {
	case aBool:
		return appendBool(b, v.Bool())
	case anInt:
		return binary.AppendVarint(append(b, scalarInt), v.Int())
	case aUint:
		return binary.AppendVarint(append(b, scalarInt), int64(v.Uint())) //nolint:gosec // fit has checked the range
	}
	return appendText(append(b, scalarText), v.String())
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, scalarTrue)
	}
	return append(b, scalarFalse)
}

// appendText appends the length of a text and the text.
func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// readTrace returns the set of the fields that were added or modified, and the set of those that were removed.
func readTrace(trace []byte) (touched, gone *fieldpath.Set) {
	touched, gone = fieldpath.NewSet(), fieldpath.NewSet()
	var path fieldpath.Path
	r := traceReader{trace}
	for len(r.rest) > 0 {
		switch r.next() {
		case toField:
			path = append(path, fieldpath.FieldNameElement(r.text()))
		case toValue:
			path = append(path, fieldpath.ValueElement(r.scalar()))
		case toItem:
			fields := make(value.FieldList, r.next())
			for i := range fields {
				fields[i] = value.Field{Name: r.text(), Value: r.scalar()}
			}
			fields.Sort()
			path = append(path, fieldpath.PathElement{Key: &fields})
		case added, modified:
			touched.Insert(path)
		case removed:
			gone.Insert(path)
		case back:
			path = path[:len(path)-1]
		}
	}
	return touched, gone
}

// traceReader reads the trace of a comparer.
type traceReader struct{ rest []byte }

func (r *traceReader) next() byte {
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *traceReader) text() string {
	length, n := binary.Uvarint(r.rest)
	text := r.rest[n : n+int(length)] //nolint:gosec // the length was that of a text
	r.rest = r.rest[n+int(length):]   //nolint:gosec // as above
	return string(text)
}

func (r *traceReader) scalar() value.Value {
	switch r.next() {
	case scalarTrue:
		return value.NewValueInterface(true)
	case scalarFalse:
		return value.NewValueInterface(false)
	case scalarInt:
		i, n := binary.Varint(r.rest)
		r.rest = r.rest[n:]
		return value.NewValueInterface(i)
	}
	return value.NewValueInterface(r.text())
}
