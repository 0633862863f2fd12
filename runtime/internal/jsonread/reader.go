package jsonread

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// reader is a text that is being decoded. Its methods decode the next part, without white space before it. They return false
// for invalid JSON and for anything that this package refuses; after that no method may be called.
type reader struct {
	text  []byte
	at    int
	depth int
	short strings.Builder // shortString makes its strings in it
}

// mostDepth limits the nesting of values, because they are decoded recursively.
const mostDepth = 1000

func (r *reader) space() {
	for r.at < len(r.text) && r.text[r.at] <= ' ' {
		switch r.text[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

// take consumes the byte c.
func (r *reader) take(c byte) bool {
	if r.at < len(r.text) && r.text[r.at] == c {
		r.at++
		return true
	}
	return false
}

// literal consumes true, false or null.
func (r *reader) literal(word string) bool {
	if rest := r.text[r.at:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
		r.at += len(word)
		return true
	}
	return false
}

func (r *reader) null() bool {
	return r.at < len(r.text) && r.text[r.at] == 'n' && r.literal("null")
}

// open consumes the beginning of an object or array. The method next then consumes the rest, except the members themselves.
func (r *reader) open(c byte) bool {
	r.depth++
	return r.depth <= mostDepth && r.take(c)
}

// next advances to the next member of an object or array that ends with the byte end. If more is false, ok reports whether it has
// ended properly. The caller decodes the value that follows a comma.
func (r *reader) next(end byte, first bool) (more, ok bool) {
	r.space()
	switch {
	case r.take(end):
		r.depth--
		return false, true
	case first:
		return true, true
	case !r.take(','):
		return false, false
	}
	r.space()
	return true, true
}

// members decodes an object, and calls f for each value.
func (r *reader) members(f func(name string) bool) bool {
	if !r.open('{') {
		return false
	}
	for first := true; ; first = false {
		if more, ok := r.next('}', first); !more {
			return ok
		}
		name, ok := r.string()
		if !ok || !r.colon() || !f(name) {
			return false
		}
	}
}

// elements decodes an array, and calls f for each element.
func (r *reader) elements(f func() bool) bool {
	if !r.open('[') {
		return false
	}
	for first := true; ; first = false {
		if more, ok := r.next(']', first); !more {
			return ok
		}
		if !f() {
			return false
		}
	}
}

func (r *reader) colon() bool {
	r.space()
	if !r.take(':') {
		return false
	}
	r.space()
	return true
}

// name decodes the name of a member, and consumes everything up to its value. The bytes are part of the text.
func (r *reader) name() ([]byte, bool) {
	if !r.take('"') {
		return nil, false
	}
	from := r.at
	end := plainEnd(r.text, from)
	if end == len(r.text) || r.text[end] != '"' {
		return nil, false
	}
	r.at = end + 1
	return r.text[from:end], r.colon()
}

// string decodes a string.
func (r *reader) string() (string, bool) {
	text, ok := r.bytes()
	if !ok || len(text) == 0 {
		return "", ok
	}
	return r.stringOf(text), true
}

// Strings of up to shortest bytes share memory, which is kept as long as one of them is in use: at most a few times the memory of
// a string with its own allocation.
const (
	shortest   = 32
	sharedSize = 256
)

// stringOf returns a string with the bytes of text.
func (r *reader) stringOf(text []byte) string {
	if len(text) > shortest {
		return string(text)
	}
	if r.short.Cap()-r.short.Len() < len(text) {
		r.short = strings.Builder{}
		r.short.Grow(min(sharedSize, len(r.text)))
	}
	from := r.short.Len()
	r.short.Write(text)
	return r.short.String()[from:]
}

// bytes decodes a string. The bytes are part of the text, or new.
func (r *reader) bytes() ([]byte, bool) {
	if !r.take('"') {
		return nil, false
	}
	from, escaped, ascii := r.at, false, true
	for at := from; ; {
		at = plainEnd(r.text, at)
		if at == len(r.text) {
			return nil, false
		}
		switch c := r.text[at]; {
		case c == '"':
			r.at = at + 1
			text := r.text[from:at]
			if !ascii && !utf8.Valid(text) {
				return nil, false
			}
			if escaped {
				return unescape(text)
			}
			return text, true
		case c == '\\':
			escaped = true
			at += 2
			if at > len(r.text) {
				return nil, false
			}
		case c >= utf8.RuneSelf:
			ascii = false
			at++
		default: // a control character
			return nil, false
		}
	}
}

// plainEnd returns the offset of the first byte, from at on, that is not plain: a quote, a backslash, a control character or a
// byte beyond ASCII. It examines eight bytes at a time.
func plainEnd(text []byte, at int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; at+8 <= len(text); at += 8 {
		w := binary.LittleEndian.Uint64(text[at:])
		// The top bit is set in each byte that is not plain, and perhaps in some bytes after the first of these.
		if odd := (w | (w - ones*' ') | ((w ^ ones*'"') - ones) | ((w ^ ones*'\\') - ones)) & tops; odd != 0 {
			return at + bits.TrailingZeros64(odd)/8
		}
	}
	for ; at < len(text); at++ {
		if c := text[at]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return at
		}
	}
	return at
}

// unescape returns the content of a string with escapes.
func unescape(text []byte) ([]byte, bool) {
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++ // the method bytes has checked that there is one more byte
		switch c := text[i]; c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			unit, ok := hex4(text[i+1:])
			i += 4
			if utf16.IsSurrogate(unit) {
				if ok = ok && i+2 < len(text) && text[i+1] == '\\' && text[i+2] == 'u'; !ok {
					return nil, false
				}
				var low rune
				low, ok = hex4(text[i+3:])
				unit = utf16.DecodeRune(unit, low)
				ok = ok && unit != utf8.RuneError
				i += 6
			}
			if !ok {
				return nil, false
			}
			out = utf8.AppendRune(out, unit)
		default:
			return nil, false
		}
	}
	return out, true
}

// hex4 reads four hexadecimal digits.
func hex4(text []byte) (rune, bool) {
	if len(text) < 4 {
		return 0, false
	}
	var n rune
	for _, c := range text[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}

// number consumes a number and returns its text.
func (r *reader) number() ([]byte, bool) {
	from := r.at
	r.take('-')
	if !r.take('0') && !r.digits() {
		return nil, false
	}
	if r.take('.') && !r.digits() {
		return nil, false
	}
	if r.take('e') || r.take('E') {
		if !r.take('-') {
			r.take('+')
		}
		if !r.digits() {
			return nil, false
		}
	}
	return r.text[from:r.at], true
}

func (r *reader) digits() bool {
	from := r.at
	for r.at < len(r.text) && '0' <= r.text[r.at] && r.text[r.at] <= '9' {
		r.at++
	}
	return r.at > from
}

// skip consumes any value without decoding it.
func (r *reader) skip() bool {
	if r.at == len(r.text) {
		return false
	}
	switch r.text[r.at] {
	case '{':
		if !r.open('{') {
			return false
		}
		for first := true; ; first = false {
			if more, ok := r.next('}', first); !more {
				return ok
			}
			if _, ok := r.bytes(); !ok || !r.colon() || !r.skip() {
				return false
			}
		}
	case '[':
		return r.elements(r.skip)
	case '"':
		_, ok := r.bytes()
		return ok
	case 't':
		return r.literal("true")
	case 'f':
		return r.literal("false")
	case 'n':
		return r.literal("null")
	}
	_, ok := r.number()
	return ok
}
