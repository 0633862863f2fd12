package canonical

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// boolean is the rule of booleans.
type boolean struct{}

func (boolean) match(r *reader, at int) (end int, is facts) {
	switch {
	case r.has(at, "true"):
		return at + len("true"), 0
	case r.has(at, "false"):
		return at + len("false"), nothing
	}
	return no, 0
}

// integer is the rule of integers with the given number of bits.
type integer struct {
	bits     int
	unsigned bool
}

// shortDigits is the largest number of digits that fit into every integer of 64 bits.
const shortDigits = 18

func (n integer) match(r *reader, at int) (end int, is facts) {
	from := at
	if r.byteAt(at) == '-' && !n.unsigned {
		at++
	}
	first := at
	var value uint64
	for c := r.byteAt(at); '0' <= c && c <= '9'; c = r.byteAt(at) {
		value = value*10 + uint64(c-'0')
		at++
	}
	switch digits := at - first; {
	case digits == 0, r.text[first] == '0' && at > from+1: // 007, -0
		return no, 0
	case digits > shortDigits || n.bits < 64 && value>>(n.bits-1) != 0:
		if !n.parses(string(r.text[from:at])) {
			return no, 0
		}
	}
	if value == 0 {
		return at, nothing
	}
	return at, 0
}

// parses reports whether a number is in the range of the type.
func (n integer) parses(text string) bool {
	var err error
	if n.unsigned {
		_, err = strconv.ParseUint(text, 10, n.bits)
	} else {
		_, err = strconv.ParseInt(text, 10, n.bits)
	}
	return err == nil
}

// str is the rule of strings.
type str struct{}

func (str) match(r *reader, at int) (end int, is facts) {
	end = anyString(r.text, at)
	if end == at+2 {
		return end, nothing
	}
	return end, 0
}

// anyString returns the offset after the canonical string that begins at an offset, or no. It recognises only the common escapes,
// so it returns no for others.
func anyString(text []byte, at int) int { return scanString(text, at, true) }

// plainString is anyString for a string without escapes.
func plainString(text []byte, at int) int { return scanString(text, at, false) }

func scanString(text []byte, at int, escapes bool) int {
	if at >= len(text) || text[at] != '"' {
		return no
	}
	for at = plainRun(text, at+1); at < len(text); at = plainRun(text, at) {
		size := 0
		switch c := text[at]; {
		case c == '"':
			return at + 1
		case c >= utf8.RuneSelf:
			size = wideRune(text[at:])
		case c == '\\' && escapes:
			size = escape(text[at:])
		}
		if size == 0 {
			return no
		}
		at += size
	}
	return no
}

// The lowest bit and the highest bit of each byte of a word.
const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plainRun returns the offset of the first byte, from the offset at, that cannot stand unescaped in every string: a control
// character, a quote, a backslash, one of <, > and &, which encoding/json escapes, or a byte beyond ASCII. It returns the length
// of text if there is none. It examines eight bytes at a time, because most bytes of a text are plain.
func plainRun(text []byte, at int) int {
	for ; len(text)-at >= 8; at += 8 {
		w := binary.LittleEndian.Uint64(text[at:])
		odd := w & highs
		odd |= ^((w | highs) - ' '*lows)            // below the space
		odd |= highs - ((w | 0x04*lows) ^ '&'*lows) // & and the quote, which differ in one bit
		odd |= highs - ((w | 0x02*lows) ^ '>'*lows) // < and >
		odd |= highs - (w ^ '\\'*lows)
		// A byte beyond ASCII may also mark the bytes after it as odd. The first odd byte is always right.
		if odd &= highs; odd != 0 {
			return at + bits.TrailingZeros64(odd)/8
		}
	}
	for ; at < len(text); at++ {
		switch c := text[at]; {
		case c < ' ', c >= utf8.RuneSelf, c == '"', c == '\\', c == '<', c == '>', c == '&':
			return at
		}
	}
	return at
}

// wideRune returns the length of the multi-byte rune at the beginning of text. It returns 0 if that rune is invalid or is escaped
// by encoding/json.
func wideRune(text []byte) int {
	c, size := utf8.DecodeRune(text)
	if c == utf8.RuneError && size == 1 || c == '\u2028' || c == '\u2029' {
		return 0
	}
	return size
}

// escape returns the length of the escape at the beginning of text, or 0 if encoding/json may not write this escape.
func escape(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case '"', '\\', 'n', 'r', 't':
		return 2
	case 'u':
		const size = len(`\u003c`)
		if len(text) >= size {
			switch string(text[:size]) {
			case `\u003c`, `\u003e`, `\u0026`:
				return size
			}
		}
	}
	return 0
}

// base64Bytes is the rule of slices of bytes.
type base64Bytes struct{}

func (base64Bytes) match(r *reader, at int) (end int, is facts) {
	if r.has(at, null) {
		return at + len(null), nothing
	}
	if r.byteAt(at) != '"' {
		return no, 0
	}
	at++
	size := bytes.IndexByte(r.text[at:], '"')
	if size < 0 || !isBase64(r.text[at:at+size]) {
		return no, 0
	}
	if size == 0 {
		return at + 1, empty
	}
	return at + size + 1, 0
}

// isBase64 reports whether text is the output of the standard base64 encoding for some bytes.
func isBase64(text []byte) bool {
	if len(text)%4 != 0 {
		return false
	}
	digits := bytes.TrimRight(text, "=")
	padding := len(text) - len(digits)
	last := 0
	for _, c := range digits {
		switch {
		case 'A' <= c && c <= 'Z':
			last = int(c - 'A')
		case 'a' <= c && c <= 'z':
			last = int(c-'a') + 26
		case '0' <= c && c <= '9':
			last = int(c-'0') + 52
		case c == '+':
			last = 62
		case c == '/':
			last = 63
		default:
			return false
		}
	}
	switch padding {
	case 0:
		return true
	case 1:
		return last&0b11 == 0
	case 2:
		return last&0b1111 == 0
	}
	return false
}
