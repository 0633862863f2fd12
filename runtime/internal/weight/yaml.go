package weight

import (
	"bytes"
	"strings"
)

// YAML measures the values that the YAML library makes of a text: its nodes, and two maps for each mapping. The tokens are
// counted by the rules of its scanner (https://pkg.go.dev/go.yaml.in/yaml/v2), as far as they determine where scalars end: a
// literal is one scalar.
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

// escapes adds the weight of characters that JSON escapes. Each character after a backslash counts as one: \0 is an example.
func (s *yamlScanner) escapes(text []byte) error {
	if err := s.escaped(text); err != nil {
		return err
	}
	return s.add(escapeSize * bytes.Count(text, []byte(`\`)))
}

// Aliases reports whether a text may contain an alias.
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

// The memory of the values that the library makes: each value is a node with a slot in its parent, and each mapping is also a map
// with keys of any type and a map with string keys. Only a quarter of this memory counts: it is allocated once, and freed before
// the resulting JSON is decoded, while there are several copies of other values.
const (
	yamlNode  = 144 / 4
	yamlMap   = 2 * mapHead / 4
	yamlFirst = 2 * mapGroup * (2*slot + 1) / 4 // entries of a map up to the eighth
	yamlEntry = 4 * (2*slot + 1) / 4
)

// yamlScanner goes through a text. It may misread a text that the library refuses, because the library stops there.
type yamlScanner struct {
	scale

	text    []byte
	at      int
	line    int
	column  int    // in characters
	flow    []byte // the first characters of the flow collections around the present place
	indent  int    // of the present block collection
	indents []int  // of the block collections around it
	aliases bool   // an alias was found

	keyAllowed bool // a simple key may begin here
	key        struct {
		possible     bool // a simple key has begun, outside of flow collections
		line, column int
		at           int
	}
}

// peek returns the byte n bytes ahead, or 0 at the end.
func (s *yamlScanner) peek(n int) byte {
	if s.at+n < len(s.text) {
		return s.text[s.at+n]
	}
	return 0
}

// breakAt returns the length of the line break n bytes ahead, or 0 if there is none.
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

// skip advances by n characters.
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

// skipBreak consumes a line break, if there is one.
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

// toToken advances to the next token.
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

// roll begins a block collection, if the column is further to the right than that of the present one.
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

// saveKey records that a simple key may begin here.
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

// token consumes a token and adds the weight of its values.
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

// blockEntry consumes the mark of an item.
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

// complexKey consumes a question mark.
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

// value consumes a colon.
func (s *yamlScanner) value() (err error) {
	inFlow := len(s.flow) > 0
	rolled := false
	const longestKey = 1024
	switch {
	case inFlow:
		s.keyAllowed = false // a simple key before the colon only matters to block collections
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

// pair adds the weight of a member: its map entries, a node in place of a missing part, and its map if the member is the first.
func (s *yamlScanner) pair(begins bool) error {
	size := yamlNode + yamlEntry
	if begins || len(s.flow) > 0 && s.flow[len(s.flow)-1] == '[' {
		size += yamlNode + yamlMap + yamlFirst
	}
	return s.add(size)
}

// content consumes a scalar, or a part of one.
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
	if s.at == from { // no token begins like this
		s.skip(1)
	}
	return s.add(yamlNode)
}

// tag consumes a tag.
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

// single consumes a scalar in single quotes.
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

// double consumes a scalar in double quotes.
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

// plain consumes a scalar without quotes.
func (s *yamlScanner) plain() {
	inFlow, indent := len(s.flow) > 0, s.indent+1
	broken := false // there was a line break before the next character
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

// block consumes a literal or folded scalar, whose first character is already consumed.
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
	s.skipLine() // the rest of the line may be a comment
	s.skipBreak()
	indent = s.blockBreaks(indent)
	for s.column == indent && s.peek(0) != 0 {
		s.skipLine()
		s.skipBreak()
		indent = s.blockBreaks(indent)
	}
}

// blockBreaks consumes empty lines and indentation, whose width it returns. If indent is 0, blockBreaks detects it.
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
