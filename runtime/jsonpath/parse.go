package jsonpath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse compiles a path, which is written without braces. Errors name the mistake, in words for users.
func Parse(path string) (*Path, error) {
	actions, err := parse(path)
	if err != nil {
		return nil, err
	}
	return &Path{actions}, nil
}

// parse returns the steps of a path, and after them the steps of any text after braces: "a}{b" is two actions.
func parse(path string) ([]steps, error) {
	p := &parser{rest: path + "}"}
	var actions []steps
	for {
		action, err := p.action()
		if err != nil {
			return nil, err
		}
		actions = append(actions, action)
		_, behind, ok := strings.Cut(p.rest, "{")
		if !ok {
			return actions, nil
		}
		p.rest = behind
	}
}

// parseFirst is parse for a part of a path of which only the first action is used.
func parseFirst(path string) (steps, error) {
	actions, err := parse(path)
	if err != nil {
		return nil, err
	}
	return actions[0], nil
}

// parser holds the rest of a path, including its closing brace.
type parser struct {
	rest  string
	steps steps // of the current action
}

func (p *parser) add(s ...step) { p.steps = append(p.steps, s...) }

// action parses up to the closing brace.
func (p *parser) action() (steps, error) {
	p.steps = nil
	for !strings.HasPrefix(p.rest, "}") {
		if err := p.next(); err != nil {
			return nil, err
		}
	}
	p.rest = p.rest[1:]
	return p.steps, nil
}

// next parses one step.
func (p *parser) next() error {
	if inner, ok := strings.CutPrefix(p.rest, "[?("); ok {
		return p.filter(inner)
	}
	if behind, ok := strings.CutPrefix(p.rest, ".."); ok {
		return p.descent(behind)
	}
	switch r, _ := utf8.DecodeRuneInString(p.rest); {
	case p.rest == "" || isEndOfLine(r):
		return errors.New("unclosed action")
	case r == ' ' || r == '@' || r == '$':
		p.rest = p.rest[1:]
	case r == '[':
		return p.brackets()
	case r == '"' || r == '\'':
		return p.quoted(byte(r))
	case r == '.':
		p.rest = p.rest[1:]
		p.name()
	case r == '+' || r == '-' || unicode.IsDigit(r):
		return p.number()
	case isAlphaNumeric(r):
		switch w := p.take(func(r rune) bool { return !isTerminator(r) }); w {
		case "true", "false":
			p.add(constant{w == "true"})
		default:
			p.add(word(w))
		}
	default:
		return fmt.Errorf("unrecognized character in action: %#U", r)
	}
	return nil
}

// take consumes characters as long as wanted returns true.
func (p *parser) take(wanted func(r rune) bool) string {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !wanted(r) })
	if end < 0 {
		end = len(p.rest)
	}
	text := p.rest[:end]
	p.rest = p.rest[end:]
	return text
}

func (p *parser) descent(behind string) error {
	if n := len(p.steps); n > 0 && p.steps[n-1] == (descent{}) {
		return errors.New("invalid multiple recursive descent")
	}
	p.add(descent{})
	p.rest = behind
	if r, _ := utf8.DecodeRuneInString(behind); isAlphaNumeric(r) {
		p.name()
	}
	return nil
}

// name parses the name of a member, or *.
func (p *parser) name() {
	escaped := false
	text := p.take(func(r rune) bool {
		switch {
		case escaped:
			escaped = false
			return true
		case r == '\\':
			escaped = true
			return true
		}
		return !isTerminator(r)
	})
	if text == "*" {
		p.add(all{})
		return
	}
	p.add(member(strings.ReplaceAll(text, `\`, "")))
}

func (p *parser) number() error {
	sign := ""
	if c := p.rest[0]; c == '+' || c == '-' {
		sign, p.rest = p.rest[:1], p.rest[1:]
	}
	text := sign + p.take(func(r rune) bool { return r == '.' || unicode.IsDigit(r) })
	if i, err := strconv.Atoi(text); err == nil {
		p.add(constant{i})
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("cannot parse number %s", text)
	}
	p.add(constant{f})
	return nil
}

// quoted parses a quoted text. A backslash escapes, as in Go.
func (p *parser) quoted(quote byte) error {
	end := 1
	for ; ; end++ {
		if end == len(p.rest) || p.rest[end] == '\n' {
			return errors.New("unterminated quoted string")
		}
		if p.rest[end] == quote && p.rest[end-1] != '\\' {
			break
		}
	}
	inner := p.rest[1:end]
	p.rest = p.rest[end+1:]
	var unquoted []byte
	for inner != "" {
		r, multibyte, behind, err := strconv.UnquoteChar(inner, quote)
		if err != nil {
			return fmt.Errorf("%q: %w", inner, err)
		}
		if inner = behind; multibyte {
			unquoted = utf8.AppendRune(unquoted, r)
		} else {
			unquoted = append(unquoted, byte(r))
		}
	}
	p.add(text(unquoted))
	return nil
}

// brackets parses the text between [ and ], which is not a filter.
func (p *parser) brackets() error {
	end := strings.IndexAny(p.rest, "]\n")
	if end < 0 || p.rest[end] == '\n' {
		return errors.New("unterminated array")
	}
	text := p.rest[1:end]
	p.rest = p.rest[end+1:]
	if strings.Contains(text, ",") {
		var u union
		for part := range strings.SplitSeq(text, ",") {
			s, err := parseFirst("[" + strings.Trim(part, " ") + "]")
			if err != nil {
				return err
			}
			u = append(u, s)
		}
		p.add(u)
		return nil
	}
	if n := len(text); n >= 2 && text[0] == '\'' && text[n-1] == '\'' && strings.Count(text, "'") == 2 {
		s, err := parseFirst("." + text[1:n-1])
		p.add(s...)
		return err
	}
	if text == "*" {
		text = ":"
	}
	x, err := parseIndex(text)
	p.add(x)
	return err
}

func parseIndex(text string) (index, error) {
	parts := strings.Split(text, ":")
	x := index{single: len(parts) == 1}
	if len(parts) > 3 {
		return x, fmt.Errorf("invalid array index %s", text)
	}
	for i, part := range parts {
		if strings.Trim(strings.TrimPrefix(part, "-"), "0123456789") != "" {
			return x, fmt.Errorf("invalid array index %s", text)
		}
		if part == "" {
			continue
		}
		value, err := strconv.Atoi(part)
		if err != nil {
			return x, fmt.Errorf("array index %s is not a number", part)
		}
		*[]*number{&x.start, &x.end, &x.step}[i] = number{value, true}
	}
	if x.single {
		x.end = number{x.start.value + 1, true}
	}
	return x, nil
}

// filter parses the text after [?( .
func (p *parser) filter(inner string) error {
	end := filterEnd(inner)
	if end < 0 {
		return errors.New("unterminated filter")
	}
	text := inner[:end]
	p.rest = inner[end+1:]
	if !strings.HasPrefix(p.rest, "]") {
		return errors.New("unclosed array expect ]")
	}
	p.rest = p.rest[1:]
	left, operator, right := splitFilter(text)
	f := filter{operator: operator}
	var err error
	if f.left, err = parseFirst(left); err == nil && operator != "" {
		f.right, err = parseFirst(right)
	}
	p.add(f)
	return err
}

// filterEnd returns the offset of the closing parenthesis, or -1. A parenthesis in the first quoted text does not count.
func filterEnd(inner string) int {
	var quote byte // of the first quoted text
	closed := false
	for i := range len(inner) {
		switch c := inner[i]; c {
		case '\n':
			return -1
		case '"', '\'':
			if quote == 0 {
				quote = c
			} else if c == quote && inner[i-1] != '\\' {
				closed = true
			}
		case ')':
			if closed == (quote != 0) {
				return i
			}
		}
	}
	return -1
}

// splitFilter splits a comparison. A filter without a comparison has the operator "".
func splitFilter(text string) (left, operator, right string) {
	const operators = "!<>="
	start := strings.IndexAny(text, operators)
	if start <= 0 {
		return text, "", ""
	}
	end := start + len(text[start:]) - len(strings.TrimLeft(text[start:], operators))
	if end == len(text) { // an operator must be followed by text
		end--
	}
	if end == start {
		return text, "", ""
	}
	return text[:start], text[start:end], text[end:]
}

// isTerminator reports whether r ends a name.
func isTerminator(r rune) bool {
	return isEndOfLine(r) || strings.ContainsRune(" \t.,[]$@{}", r)
}

func isEndOfLine(r rune) bool { return r == '\r' || r == '\n' }

func isAlphaNumeric(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
