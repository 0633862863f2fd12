package openapi

import (
	"encoding/json"
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"
)

// errJSON is the error of a text that nodesOf cannot read.
var errJSON = errors.New("the text is not JSON as json.Marshal writes it")

// nodesOf returns the nodes of a JSON text without spaces, as yaml.Unmarshal makes them but without styles and positions. It takes a
// fraction of the time and the memory. If it returns an error, yaml.Unmarshal may still read the text.
func nodesOf(text []byte) (*yaml.Node, error) {
	r := &nodeReader{text: text, words: map[string]string{}}
	n, err := r.value()
	if err == nil && r.at != len(text) {
		err = errJSON
	}
	return n, err
}

// nodeReader reads a JSON text.
type nodeReader struct {
	text  []byte
	at    int
	words map[string]string // short strings, so that equal ones share memory
}

func (r *nodeReader) peek() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

// skip reports whether the text goes on with c, and skips it.
func (r *nodeReader) skip(c byte) bool {
	if r.peek() != c {
		return false
	}
	r.at++
	return true
}

func (r *nodeReader) value() (*yaml.Node, error) {
	switch c := r.peek(); {
	case c == '{':
		return r.members()
	case c == '[':
		return r.elements()
	case c == '"':
		return r.quoted()
	case c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z':
		return r.word()
	}
	return nil, errJSON
}

func (r *nodeReader) members() (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	r.at++
	if r.skip('}') {
		return n, nil
	}
	for {
		key, err := r.quoted()
		if err != nil || !r.skip(':') {
			return nil, errJSON
		}
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, key, value)
		if r.skip('}') {
			return n, nil
		}
		if !r.skip(',') {
			return nil, errJSON
		}
	}
}

func (r *nodeReader) elements() (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	r.at++
	if r.skip(']') {
		return n, nil
	}
	for {
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, value)
		if r.skip(']') {
			return n, nil
		}
		if !r.skip(',') {
			return nil, errJSON
		}
	}
}

// quoted reads a string.
func (r *nodeReader) quoted() (*yaml.Node, error) {
	if r.peek() != '"' {
		return nil, errJSON
	}
	begin, escaped := r.at, false
	for r.at++; r.peek() != '"'; r.at++ {
		if r.at >= len(r.text) {
			return nil, errJSON
		}
		if r.text[r.at] == '\\' {
			escaped = true
			r.at++
		}
	}
	r.at++
	text := r.text[begin+1 : r.at-1]
	if escaped {
		var s string
		if err := json.Unmarshal(r.text[begin:r.at], &s); err != nil {
			return nil, errJSON
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: r.shared(text)}, nil
}

// word reads a number, true, false or null.
func (r *nodeReader) word() (*yaml.Node, error) {
	begin := r.at
	for r.at < len(r.text) && !strings.ContainsRune(",]}:", rune(r.text[r.at])) {
		r.at++
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: r.shared(r.text[begin:r.at])}
	n.Tag = n.ShortTag()
	return n, nil
}

// maxShared is the length in bytes up to which equal strings share memory.
const maxShared = 64

func (r *nodeReader) shared(text []byte) string {
	if len(text) > maxShared {
		return string(text)
	}
	if s, ok := r.words[string(text)]; ok {
		return s
	}
	s := string(text)
	r.words[s] = s
	return s
}
