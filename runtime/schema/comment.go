package schema

import (
	"encoding/json"
	"go/ast"
	"strconv"
	"strings"
)

// markers are the "+name=value" lines of a comment by name, in order. A marker without a value has the value "".
type markers map[string][]string

func (m markers) has(name string) bool { return len(m[name]) > 0 }

// value returns the last value of a marker, without its quotes if it has any, and whether the marker is there.
func (m markers) value(name string) (string, bool) {
	values := m[name]
	if len(values) == 0 {
		return "", false
	}
	return values[len(values)-1], true
}

// newComment parses a doc comment, or if there is none, the comment at the end of the line.
func newComment(doc, line *ast.CommentGroup) *comment {
	if doc == nil {
		doc = line
	}
	c := &comment{}
	if doc != nil {
		c.text, c.markers = parseComment(strings.Split(strings.TrimSuffix(doc.Text(), "\n"), "\n"), doc)
	}
	return c
}

// parseComment returns the description and the markers in a comment. The lines of a paragraph are joined, indented lines stay
// separate, and blank lines separate paragraphs. Text after a line of three dashes is ignored: it is only for readers of the
// source.
func parseComment(lines []string, doc *ast.CommentGroup) (string, markers) {
	found := markers{}
	for _, l := range rawLines(doc) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(l), "+"); ok {
			name, value, _ := strings.Cut(rest, "=")
			name = strings.TrimSpace(name)
			found[name] = append(found[name], strings.TrimSpace(value))
		}
	}
	var out strings.Builder
	pending := "" // the separator between the text so far and the next line
	for _, l := range lines {
		l = strings.TrimRight(l, " \t")
		text := strings.TrimLeft(l, " \t")
		switch {
		case text == "---":
			return out.String(), found
		case text == "":
			if out.Len() > 0 {
				pending = "\n\n"
			}
		case strings.HasPrefix(text, "+"), strings.HasPrefix(text, "TODO"):
		case text != l:
			if pending != "\n\n" && out.Len() > 0 {
				pending = "\n"
			}
			out.WriteString(pending + l)
			pending = "\n"
		default:
			out.WriteString(pending + l)
			pending = " "
		}
	}
	return out.String(), found
}

// rawLines returns the lines of a comment group without the comment signs. Unlike CommentGroup.Text it keeps lines that look like
// directives.
func rawLines(doc *ast.CommentGroup) []string {
	var out []string
	for _, c := range doc.List {
		text := strings.TrimSuffix(strings.TrimPrefix(c.Text, "/*"), "*/")
		for l := range strings.SplitSeq(text, "\n") {
			out = append(out, strings.TrimPrefix(l, "//"))
		}
	}
	return out
}

// defaultValue returns the value of a +default marker, which is JSON.
func (m markers) defaultValue() (any, bool) {
	text, ok := m.value("default")
	if !ok {
		return nil, false
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, false
	}
	return v, true
}

// enum returns the values of an enumeration of strings, or nil if the type is not marked as one.
func (m markers) enum() []any {
	var out []any
	for _, value := range m["enum"] {
		if text, err := strconv.Unquote(value); err == nil {
			out = append(out, text)
		}
	}
	return out
}
