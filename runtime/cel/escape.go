package cel

import "strings"

// isKeyword reports whether the language reserves the word, so that no field or variable can have this name.
// https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax
func isKeyword(word string) bool {
	switch word {
	case "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop", "package", "namespace", "return", "var", "void", "while":
		return true
	}
	return false
}

// Escape returns the name that expressions use for a property. It replaces __ by __underscores__, a dot by __dot__, a dash by
// __dash__ and a slash by __slash__, and puts a keyword between two pairs of underscores. The result is false if the property has
// no such name: the property is empty, begins with a digit, or has a character other than those and letters, digits and
// underscores.
func Escape(property string) (string, bool) {
	if property == "" || '0' <= property[0] && property[0] <= '9' {
		return "", false
	}
	if isKeyword(property) {
		return "__" + property + "__", true
	}
	var b strings.Builder
	for i := 0; i < len(property); i++ {
		switch c := property[i]; {
		case c == '_' && i+1 < len(property) && property[i+1] == '_':
			b.WriteString("__underscores__")
			i++
		case c == '.':
			b.WriteString("__dot__")
		case c == '-':
			b.WriteString("__dash__")
		case c == '/':
			b.WriteString("__slash__")
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_':
			b.WriteByte(c)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// Unescape returns the property whose name in expressions is name; it reverses [Escape]. The result is false if the name has an
// escape sequence that Escape does not make.
func Unescape(name string) (string, bool) {
	var b strings.Builder
	for rest := name; ; {
		// A sequence is two underscores, at least one other character, and two underscores again.
		from, to := sequence(rest)
		if from < 0 {
			b.WriteString(rest)
			return b.String(), true
		}
		b.WriteString(rest[:from])
		switch word := rest[from+2 : to-2]; {
		case word == "underscores":
			b.WriteString("__")
		case word == "dot":
			b.WriteByte('.')
		case word == "dash":
			b.WriteByte('-')
		case word == "slash":
			b.WriteByte('/')
		case isKeyword(word) && to-from == len(name):
			b.WriteString(word)
		default:
			return "", false
		}
		rest = rest[to:]
	}
}

// sequence returns the position of the first escape sequence. from is -1 if there is none.
func sequence(s string) (from, to int) {
	for i := 0; i+4 < len(s); i++ {
		if s[i] != '_' || s[i+1] != '_' || s[i+2] == '_' {
			continue
		}
		end := strings.IndexByte(s[i+2:], '_')
		if end < 0 {
			return -1, -1
		}
		if at := i + 2 + end; at+1 < len(s) && s[at+1] == '_' {
			return i, at + 2
		}
	}
	return -1, -1
}
