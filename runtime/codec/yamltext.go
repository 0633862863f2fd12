package codec

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxSimpleKey is the largest length in bytes of a key that is written without a question mark. YAML allows 1024 characters, and
// escaping can turn one byte into six.
const maxSimpleKey = 160

// readableAsYAML returns JSON text that a YAML reader decodes to the same value. JSON is not quite a subset of YAML: some
// characters that JSON strings may contain must be escaped in YAML, or are line breaks there; YAML does not have two of JSON's
// escapes (surrogate pairs and the slash); and a long key needs a question mark before it. text is not changed; it is returned
// itself if it contains none of these.
func readableAsYAML(text []byte) []byte {
	if bytes.IndexFunc(text, func(r rune) bool { return r == '\\' || r >= 0x7f }) < 0 && !hasLongKey(text) {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for i := 0; i < len(text); {
		if text[i] != '"' {
			out = append(out, text[i])
			i++
			continue
		}
		end, ok := skipString(text, i)
		if !ok {
			return append(out, text[i:]...) // not JSON
		}
		if isLongKey(text, i, end) {
			out = append(out, "? "...)
		}
		out = appendReadable(out, text[i:end])
		i = end
	}
	return out
}

// hasLongKey reports whether isLongKey returns true for any string.
func hasLongKey(text []byte) bool {
	for i := 0; i < len(text); {
		if text[i] != '"' {
			i++
			continue
		}
		end, ok := skipString(text, i)
		if !ok || isLongKey(text, i, end) {
			return ok
		}
		i = end
	}
	return false
}

// isLongKey reports whether the string text[from:to] is a key longer than maxSimpleKey.
func isLongKey(text []byte, from, to int) bool {
	if to-from <= maxSimpleKey {
		return false
	}
	rest := bytes.TrimLeft(text[to:], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// appendReadable appends a JSON string.
func appendReadable(out, text []byte) []byte {
	for i := 0; i < len(text); {
		switch b := text[i]; {
		case b == '\\':
			var n int
			out, n = appendEscape(out, text[i:])
			i += n
		case b < 0x7f:
			out = append(out, b)
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			if mustEscape(r) {
				out = fmt.Appendf(out, `\u%04x`, r)
			} else {
				out = utf8.AppendRune(out, r)
			}
			i += n
		}
	}
	return out
}

// mustEscape reports whether YAML 1.1 requires r to be escaped, or treats it as a line break.
func mustEscape(r rune) bool {
	switch r {
	case 0x7f, '\u2028', '\u2029', '\ufeff', '\ufffe', '\uffff':
		return true
	}
	return r >= 0x80 && r <= 0x9f
}

// appendEscape appends the JSON escape at the beginning of text in a form that YAML has, and returns the length of the escape in
// text.
func appendEscape(out, text []byte) ([]byte, int) {
	if len(text) < 2 {
		return append(out, text...), len(text)
	}
	if text[1] == '/' {
		return append(out, '/'), 2
	}
	r, ok := escapedUnit(text)
	switch {
	case !ok:
		return append(out, text[:2]...), 2
	case !utf16.IsSurrogate(r):
		return append(out, text[:6]...), 6
	}
	if low, ok := escapedUnit(text[6:]); ok {
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair), 12
		}
	}
	return utf8.AppendRune(out, utf8.RuneError), 6 // as encoding/json reads half of a pair
}

// escapedUnit reads the \uXXXX at the beginning of text.
func escapedUnit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
