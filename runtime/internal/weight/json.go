package weight

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JSON measures a text that is decoded into a Go type.
func (t *Types) JSON(text []byte, typ reflect.Type, l Limit) error {
	w := walker{scale: newScale(l), text: text}
	return w.whole(t.of(typ))
}

// Object measures a text that is decoded without a Go type: into a map[string]any, whose metadata is also decoded into a
// metav1.ObjectMeta.
func (t *Types) Object(text []byte, l Limit) error {
	w := walker{scale: newScale(l), text: text, metadata: t.of(reflect.TypeFor[metav1.ObjectMeta]())}
	return w.whole(untyped)
}

func (w *walker) whole(n *node) error {
	if err := w.escaped(w.text); err != nil {
		return err
	}
	w.space()
	return w.done(w.value(n, 0))
}

// untyped is the node of an any.
var untyped = &node{sort: anything, size: slot}

// passed is the node of values that are skipped.
var passed = &node{}

// walker goes through a JSON text. It accepts some texts that are not valid JSON, but reads every valid text correctly.
type walker struct {
	scale

	text     []byte
	at       int
	metadata *node // of the present object, if it has no Go type
}

func (w *walker) space() {
	for w.at < len(w.text) {
		switch w.text[w.at] {
		case ' ', '\t', '\n', '\r':
			w.at++
		default:
			return
		}
	}
}

// value measures the next value and everything in it, without its slot.
func (w *walker) value(n *node, depth int) error {
	if w.at == len(w.text) || depth > mostDepth {
		return errEnd
	}
	c := w.text[w.at]
	if c == 'n' {
		return w.word()
	}
	switch n.sort {
	case pointer:
		if err := w.add(n.elem.size); err != nil {
			return err
		}
		return w.value(n.elem, depth)
	case itself:
		return w.itself(n, depth)
	case anything:
		if err := w.add(anythingSize(c)); err != nil {
			return err
		}
	}
	switch c {
	case '{':
		return w.members(n, "", depth+1)
	case '[':
		return w.elements(n, "", depth+1)
	case '"':
		_, err := w.string()
		return err
	}
	return w.word()
}

// anythingSize returns the memory, in addition to the interface, of a value that begins with c.
func anythingSize(c byte) int {
	switch c {
	case '{':
		return mapHead
	case '[':
		return sliceHead
	case '"':
		return stringHead
	case 't', 'f':
		return 0
	}
	return number
}

// itself measures a value that decodes itself. Its text is read once more for each such value around it.
func (w *walker) itself(n *node, depth int) error {
	from, inner := w.at, passed
	switch c := w.text[w.at]; {
	case c == '{' && n.object != nil:
		inner = n.object
	case c == '[' && n.items != nil:
		inner = n.items
	}
	if err := w.value(inner, depth); err != nil {
		return err
	}
	const again = 2 // so many bytes of text cost as much as one byte of memory
	return w.add((w.at - from) / again)
}

// members measures an object. If counted is not "", the members are counted against the limit of items.
func (w *walker) members(n *node, counted string, depth int) error {
	w.at++
	for count := 1; ; count++ {
		if more, err := w.next('}', counted, count); !more {
			return err
		}
		name, err := w.name()
		if err != nil {
			return err
		}
		if err := w.member(n, name, count, depth); err != nil {
			return err
		}
	}
}

// next advances to the n-th member or element of an object or array that ends with the byte end.
func (w *walker) next(end byte, counted string, n int) (more bool, err error) {
	w.space()
	switch {
	case w.at == len(w.text):
		return false, errEnd
	case w.text[w.at] == end:
		w.at++
		return false, nil
	case n > 1:
		if w.text[w.at] != ',' {
			return false, errEnd
		}
		w.at++
		w.space()
	}
	if counted != "" && w.limit.Items > 0 && n > w.limit.Items {
		return false, &LimitError{counted, w.limit.Items}
	}
	return true, nil
}

// name consumes the name of a member and everything up to its value.
func (w *walker) name() ([]byte, error) {
	name, err := w.string()
	if err != nil {
		return nil, err
	}
	w.space()
	if w.at == len(w.text) || w.text[w.at] != ':' {
		return nil, errEnd
	}
	w.at++
	w.space()
	return name, nil
}

// member measures the n-th member of an object.
func (w *walker) member(n *node, name []byte, count, depth int) error {
	switch n.sort {
	case structure:
		var buf [longestName]byte
		f, ok := n.fields[string(unescaped(name, buf[:0]))]
		switch {
		case !ok:
			return w.value(passed, depth)
		case f.counted != "":
			return w.counted(f, depth)
		}
		return w.value(f.node, depth)
	case mapping:
		if err := w.add(n.entry(count)); err != nil {
			return err
		}
		return w.value(n.elem, depth)
	case anything:
		if err := w.add(entry(count, stringHead+slot)); err != nil {
			return err
		}
		var buf [longestName]byte
		if depth == 1 && w.metadata != nil && string(unescaped(name, buf[:0])) == "metadata" {
			from := w.at
			if err := w.value(w.metadata, depth); err != nil {
				return err
			}
			w.at = from
		}
		return w.value(untyped, depth)
	}
	return w.value(passed, depth)
}

// longestName limits the length of field names that a text contains with escapes.
const longestName = 128

// unescaped returns a name without escapes: name itself, or a part of buf. A name that does not fit into buf is not a field's.
func unescaped(name, buf []byte) []byte {
	if bytes.IndexByte(name, '\\') < 0 {
		return name
	}
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case len(buf)+utf8.UTFMax > cap(buf):
			return nil
		case c != '\\':
			buf = append(buf, c)
		case i+5 < len(name) && name[i+1] == 'u':
			r, err := strconv.ParseUint(string(name[i+2:i+6]), 16, 16)
			if err != nil {
				return nil
			}
			buf = utf8.AppendRune(buf, rune(r))
			i += 5
		case i+1 < len(name):
			if i++; strings.IndexByte(`"\/`, name[i]) < 0 { // an escape for a character that no field name has
				return nil
			}
			buf = append(buf, name[i])
		}
	}
	return buf
}

// entry returns the weight that the n-th entry adds to a map: large values are not stored in their slots.
func (n *node) entry(count int) int {
	const large = 128
	if n.elem.size > large {
		return entry(count, n.key+8) + n.elem.size
	}
	return entry(count, n.key+n.elem.size)
}

// counted is value for a list or map with a limit of items.
func (w *walker) counted(f field, depth int) error {
	if w.at < len(w.text) {
		switch c := w.text[w.at]; {
		case c == '{' && f.sort == mapping:
			return w.members(f.node, f.counted, depth+1)
		case c == '[' && f.sort == list:
			return w.elements(f.node, f.counted, depth+1)
		}
	}
	return w.value(f.node, depth)
}

// elements measures an array. If counted is not "", the elements are counted against the limit of items.
func (w *walker) elements(n *node, counted string, depth int) error {
	w.at++
	elem, size := passed, 0
	switch n.sort {
	case list:
		elem, size = n.elem, n.elem.size
	case anything:
		elem, size = untyped, slot
	}
	for count := 1; ; count++ {
		if more, err := w.next(']', counted, count); !more {
			return err
		}
		if err := w.add(size); err != nil {
			return err
		}
		if err := w.value(elem, depth); err != nil {
			return err
		}
	}
}

// string consumes a string, and returns the bytes between its quotes.
func (w *walker) string() ([]byte, error) {
	if w.at == len(w.text) || w.text[w.at] != '"' {
		return nil, errEnd
	}
	from := w.at + 1
	for at := from; ; at += 2 {
		at += stringEnd(w.text[at:])
		switch {
		case at >= len(w.text):
			return nil, errEnd
		case w.text[at] == '"':
			w.at = at + 1
			return w.text[from:at], nil
		case at+2 > len(w.text):
			return nil, errEnd
		}
	}
}

// stringEnd returns the offset of the first quote or backslash. It examines eight bytes at a time.
func stringEnd(text []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	at := 0
	for ; at+8 <= len(text); at += 8 {
		w := binary.LittleEndian.Uint64(text[at:])
		quote, slash := w^ones*'"', w^ones*'\\'
		if odd := ((quote-ones)&^quote | (slash-ones)&^slash) & tops; odd != 0 {
			return at + bits.TrailingZeros64(odd)/8
		}
	}
	if n := bytes.IndexAny(text[at:], `"\`); n >= 0 {
		return at + n
	}
	return len(text)
}

// word consumes a number, true, false or null.
func (w *walker) word() error {
	from := w.at
	for w.at < len(w.text) && inWord(w.text[w.at]) {
		w.at++
	}
	if w.at == from {
		return errEnd
	}
	return nil
}

func inWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || c == '-' || c == '.' || c == '+' || c == 'E'
}
