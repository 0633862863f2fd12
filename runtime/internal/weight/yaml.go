package weight

import (
	"bytes"
	"strings"
)

// YAML weighs what the YAML library makes of a text: its nodes, and maps of what they are twice. The tokens are counted by the
// rules of its scanner (https://pkg.go.dev/go.yaml.in/yaml/v2), as far as they say where scalars end: what is in a literal
// is one scalar.
func YAML(body []byte, l Limit) (err error) {
	s := scanYAML(body, l)
	if err := s.escapes(body); err != nil {
		return err
	}
	if isUTF16(body) {
		return s.done(s.add(len(body) / 2 * yamlNode))
	}
	for err == nil {
		err = s.token()
	}
	return s.done(err)
}

// escapes counts the characters that JSON makes six of, and as such those after a backslash: \0 is one.
func (s *yamlScanner) escapes(text []byte) error {
	if err := s.escaped(text); err != nil {
		return err
	}
	return s.add(escapeSize * bytes.Count(text, []byte(`\`)))
}

// Aliases reports whether there may be an alias in a text.
func Aliases(body []byte) bool {
	s := scanYAML(body, Limit{})
	for s.token() == nil && !s.aliases {
	}
	return s.aliases || s.at < len(body) || isUTF16(body)
}

func scanYAML(body []byte, l Limit) *yamlScanner {
	return &yamlScanner{scale: newScale(l), text: body, indent: -1, keyAllowed: true}
}

func isUTF16(body []byte) bool {
	return bytes.HasPrefix(body, []byte("\xff\xfe")) || bytes.HasPrefix(body, []byte("\xfe\xff"))
}

// What the library makes of a text: a node, with its place in the node around it, and of maps one whose keys are any values
// and one with strings. A quarter of it counts: it is made once, and dropped before the JSON that it becomes is decoded, where of other values
// there are several copies.
const (
	yamlNode  = 144 / 4
	yamlMap   = 2 * mapHead / 4
	yamlFirst = 2 * mapGroup * (2*slot + 1) / 4 // entries of a map up to the eighth
	yamlEntry = 4 * (2*slot + 1) / 4
)

// yamlScanner goes through a text. What the library refuses it may take for anything: there the library stops.
type yamlScanner struct {
	scale

	text    []byte
	at      int
	line    int
	column  int    // in characters
	flow    []byte // the flow collections around, by their first characters
	indent  int    // of the block collection at hand
	indents []int  // and of those around it
	aliases bool   // there was one

	keyAllowed bool // a simple key may begin here
	key        struct {
		possible     bool // outside of flow collections a simple key has begun
		line, column int
		at           int
	}
}

// peek is the byte n bytes on; 0 is the end.
func (s *yamlScanner) peek(n int) byte {
	if s.at+n < len(s.text) {
		return s.text[s.at+n]
	}
	return 0
}

// breakAt is the length of the line break n bytes on; 0: there is none.
func (s *yamlScanner) breakAt(n int) int {
	switch s.peek(n) {
	case '\r':
		if s.peek(n+1) == '\n' {
			return 2
		}
		return 1
	case '\n':
		return 1
	case 0xc2:
		if s.peek(n+1) == 0x85 {
			return 2
		}
	case 0xe2:
		if s.peek(n+1) == 0x80 && s.peek(n+2)&^1 == 0xa8 {
			return 3
		}
	}
	return 0
}

func (s *yamlScanner) blankAt(n int) bool { return s.peek(n) == ' ' || s.peek(n) == '\t' }

func (s *yamlScanner) blankOrEndAt(n int) bool {
	return s.blankAt(n) || s.peek(n) == 0 || s.breakAt(n) > 0
}

// skip passes characters.
func (s *yamlScanner) skip(n int) {
	for ; n > 0 && s.at < len(s.text); n-- {
		switch c := s.text[s.at]; {
		case c < 0x80:
			s.at++
		case c&0xe0 == 0xc0:
			s.at += 2
		case c&0xf0 == 0xe0:
			s.at += 3
		default:
			s.at += 4
		}
		s.column++
	}
}

// skipBreak passes a line break, if there is one.
func (s *yamlScanner) skipBreak() bool {
	n := s.breakAt(0)
	if n == 0 {
		return false
	}
	s.at += n
	s.line++
	s.column = 0
	return true
}

func (s *yamlScanner) skipLine() {
	for s.peek(0) != 0 && s.breakAt(0) == 0 {
		s.skip(1)
	}
}

// toToken passes what is between tokens.
func (s *yamlScanner) toToken() {
	for {
		if s.column == 0 && bytes.HasPrefix(s.text[min(s.at, len(s.text)):], []byte("\xef\xbb\xbf")) {
			s.skip(1)
		}
		for s.peek(0) == ' ' || (len(s.flow) > 0 || !s.keyAllowed) && s.peek(0) == '\t' {
			s.skip(1)
		}
		if s.peek(0) == '#' {
			s.skipLine()
		}
		if !s.skipBreak() {
			return
		}
		if len(s.flow) == 0 {
			s.keyAllowed = true
		}
	}
}

// roll begins a block collection, if the column is further to the right than that of the one around it.
func (s *yamlScanner) roll(column int) (bool, error) {
	if len(s.flow) > 0 || s.indent >= column {
		return false, nil
	}
	if s.indents = append(s.indents, s.indent); len(s.indents) > mostDepth {
		return false, errEnd
	}
	s.indent = column
	return true, nil
}

func (s *yamlScanner) unroll(column int) {
	for len(s.flow) == 0 && s.indent > column && len(s.indents) > 0 {
		s.indent = s.indents[len(s.indents)-1]
		s.indents = s.indents[:len(s.indents)-1]
	}
}

// saveKey notes that what begins here may be a key.
func (s *yamlScanner) saveKey() {
	if s.keyAllowed && len(s.flow) == 0 {
		s.key.possible, s.key.line, s.key.column, s.key.at = true, s.line, s.column, s.at
	}
}

func (s *yamlScanner) removeKey() {
	if len(s.flow) == 0 {
		s.key.possible = false
	}
}

// token passes a token and weighs what it makes.
func (s *yamlScanner) token() error {
	s.toToken()
	s.unroll(s.column)
	c := s.peek(0)
	inFlow := len(s.flow) > 0
	switch {
	case c == 0:
		return errEnd
	case s.column == 0 && c == '%':
		s.unroll(-1)
		s.removeKey()
		s.keyAllowed = false
		s.skipLine()
		return nil
	case s.column == 0 && s.documentMark():
		s.unroll(-1)
		s.removeKey()
		s.keyAllowed = false
		s.skip(3)
		return s.add(yamlNode)
	case c == '[' || c == '{':
		return s.open(c)
	case c == ']' || c == '}':
		s.removeKey()
		if inFlow {
			s.flow = s.flow[:len(s.flow)-1]
		}
		s.keyAllowed = false
		s.skip(1)
		return nil
	case c == ',':
		s.removeKey()
		s.keyAllowed = true
		s.skip(1)
		return nil
	case c == '-' && s.blankOrEndAt(1):
		return s.blockEntry()
	case c == '?' && (inFlow || s.blankOrEndAt(1)):
		return s.complexKey()
	case c == ':' && (inFlow || s.blankOrEndAt(1)):
		return s.value()
	}
	return s.content(c)
}

func (s *yamlScanner) documentMark() bool {
	c := s.peek(0)
	return (c == '-' || c == '.') && s.peek(1) == c && s.peek(2) == c && s.blankOrEndAt(3)
}

func (s *yamlScanner) open(c byte) error {
	s.saveKey()
	if s.flow = append(s.flow, c); len(s.flow) > mostDepth {
		return errEnd
	}
	s.keyAllowed = true
	s.skip(1)
	size := yamlNode
	if c == '{' {
		if size = yamlNode + yamlMap; s.peek(0) != '}' {
			size += yamlFirst
		}
	}
	return s.add(size)
}

// blockEntry passes the mark of an item.
func (s *yamlScanner) blockEntry() error {
	size := yamlNode
	if len(s.flow) == 0 {
		rolled, err := s.roll(s.column)
		if err != nil {
			return err
		}
		if rolled {
			size += yamlNode
		}
	}
	s.removeKey()
	s.keyAllowed = true
	s.skip(1)
	return s.add(size)
}

// complexKey passes a question mark.
func (s *yamlScanner) complexKey() error {
	rolled, err := s.roll(s.column)
	if err != nil {
		return err
	}
	s.removeKey()
	s.keyAllowed = len(s.flow) == 0
	s.skip(1)
	return s.pair(rolled)
}

// value passes a colon.
func (s *yamlScanner) value() (err error) {
	inFlow := len(s.flow) > 0
	rolled := false
	const longestKey = 1024
	switch {
	case inFlow:
		s.keyAllowed = false // whether a simple key was before it matters to block collections only
	case s.key.possible && s.key.line == s.line && s.at-s.key.at <= 4*longestKey:
		rolled, err = s.roll(s.key.column)
		s.key.possible, s.keyAllowed = false, false
	default:
		rolled, err = s.roll(s.column)
		s.keyAllowed = true
	}
	if err != nil {
		return err
	}
	s.skip(1)
	return s.pair(rolled)
}

// pair weighs a member: its entries, a node in the place of what may be missing, and its map if that begins with it.
func (s *yamlScanner) pair(begins bool) error {
	size := yamlNode + yamlEntry
	if begins || len(s.flow) > 0 && s.flow[len(s.flow)-1] == '[' {
		size += yamlNode + yamlMap + yamlFirst
	}
	return s.add(size)
}

// content passes a scalar, or a part of one.
func (s *yamlScanner) content(c byte) error {
	if (c == '|' || c == '>') && len(s.flow) == 0 {
		s.removeKey()
		s.keyAllowed = true
		s.skip(1)
		s.block()
		return s.add(yamlNode)
	}
	s.saveKey()
	s.keyAllowed = false
	from := s.at
	switch c {
	case '*', '&':
		s.aliases = s.aliases || c == '*'
		s.skip(1)
		for isWord(s.peek(0)) {
			s.skip(1)
		}
	case '!':
		s.tag()
	case '\'':
		s.single()
	case '"':
		s.double()
	default:
		s.plain()
	}
	if s.at == from { // no token begins so
		s.skip(1)
	}
	return s.add(yamlNode)
}

// tag passes a tag.
func (s *yamlScanner) tag() {
	if s.skip(1); s.peek(0) == '<' {
		for s.peek(0) != '>' && !s.blankOrEndAt(0) {
			s.skip(1)
		}
		s.skip(1)
		return
	}
	for isWord(s.peek(0)) || s.peek(0) != 0 && strings.IndexByte(";/?:@&=+$,.!~*'()[]%", s.peek(0)) >= 0 {
		s.skip(1)
	}
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '-'
}

// single passes a scalar in single quotes.
func (s *yamlScanner) single() {
	s.skip(1)
	for s.peek(0) != 0 {
		switch {
		case s.peek(0) == '\'' && s.peek(1) == '\'':
			s.skip(2)
		case s.peek(0) == '\'':
			s.skip(1)
			return
		case !s.skipBreak():
			s.skip(1)
		}
	}
}

// double passes a scalar in double quotes.
func (s *yamlScanner) double() {
	s.skip(1)
	for s.peek(0) != 0 {
		switch {
		case s.peek(0) == '"':
			s.skip(1)
			return
		case s.peek(0) == '\\':
			s.skip(1)
			if !s.skipBreak() {
				s.skip(1)
			}
		case !s.skipBreak():
			s.skip(1)
		}
	}
}

// plain passes a scalar without quotes.
func (s *yamlScanner) plain() {
	inFlow, indent := len(s.flow) > 0, s.indent+1
	broken := false // there was a line break before what comes next
	for (s.column > 0 || !s.documentMark()) && s.peek(0) != '#' {
		for !s.blankOrEndAt(0) {
			c := s.peek(0)
			if c == ':' && s.blankOrEndAt(1) || inFlow && (c == ',' || c == '?' || c == '[' || c == ']' || c == '{' || c == '}') {
				break
			}
			broken = false
			s.skip(1)
		}
		if !s.blankAt(0) && s.breakAt(0) == 0 {
			break
		}
		for s.blankAt(0) || s.breakAt(0) > 0 {
			if s.skipBreak() {
				broken = true
			} else {
				s.skip(1)
			}
		}
		if !inFlow && s.column < indent {
			break
		}
	}
	if broken {
		s.keyAllowed = true
	}
}

// block passes a literal or folded scalar, of which the first character is passed.
func (s *yamlScanner) block() {
	indent := 0
	for range 2 { // in any order
		switch c := s.peek(0); {
		case c == '+' || c == '-':
			s.skip(1)
		case '1' <= c && c <= '9':
			indent = max(s.indent, 0) + int(c-'0')
			s.skip(1)
		}
	}
	s.skipLine() // of comments
	s.skipBreak()
	indent = s.blockBreaks(indent)
	for s.column == indent && s.peek(0) != 0 {
		s.skipLine()
		s.skipBreak()
		indent = s.blockBreaks(indent)
	}
}

// blockBreaks passes empty lines and the indentation, whose width it returns, and finds out if it is 0.
func (s *yamlScanner) blockBreaks(indent int) int {
	widest := 0
	for {
		for (indent == 0 || s.column < indent) && s.peek(0) == ' ' {
			s.skip(1)
		}
		widest = max(widest, s.column)
		if !s.skipBreak() {
			break
		}
	}
	if indent == 0 {
		indent = max(widest, s.indent+1, 1)
	}
	return indent
}
