package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/weight"
	nodes "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// JSON returns the format application/json. A pretty response is indented by two spaces and has no newline at its end, as in
// kube-apiserver. A text that would become many times as large is not indented.
func JSON() Format { return jsonFormat{} }

type jsonFormat struct{}

func (jsonFormat) MediaType() string { return "application/json" }
func (jsonFormat) Streams() bool     { return true }

func (jsonFormat) ToJSON(body []byte, _ Validation) ([]byte, []error, error) { return body, nil, nil }

func (jsonFormat) FromJSON(text []byte, pretty bool) ([]byte, error) {
	text = bytes.TrimRight(text, "\n")
	if !pretty || sprawls(text) {
		return append(text[:len(text):len(text)], '\n'), nil
	}
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", "  "); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// YAML returns the format application/yaml: one document, restricted to the part of YAML that JSON can express. Responses have
// their keys in alphabetical order. A watch cannot be written in YAML. A value that the YAML library cannot write, or only with
// many times its size, is written in YAML's flow style, which is JSON.
func YAML() Format { return yamlFormat{} }

type yamlFormat struct{}

func (yamlFormat) MediaType() string { return "application/yaml" }
func (yamlFormat) Streams() bool     { return false }

func (yamlFormat) ToJSON(body []byte, v Validation) ([]byte, []error, error) {
	if manyDocuments(body) {
		return nil, nil, errors.New("error converting YAML to JSON: the body has more than one document")
	}
	if err := checkAliases(body); err != nil {
		return nil, nil, err
	}
	if v == Ignore {
		text, err := yaml.YAMLToJSON(body)
		return text, nil, err
	}
	text, strict := yaml.YAMLToJSONStrict(body)
	if strict == nil {
		return text, nil, nil
	}
	text, err := yaml.YAMLToJSON(body) // a second attempt, because the only errors may be duplicate keys
	if err != nil {
		return nil, nil, err
	}
	return text, []error{shortened(strict)}, nil
}

func (yamlFormat) FromJSON(text []byte, _ bool) ([]byte, error) {
	readable := readableAsYAML(bytes.TrimRight(text, "\n"))
	if !sprawls(readable) {
		out, err := yaml.JSONToYAML(readable)
		if err == nil || !json.Valid(text) {
			return out, err
		}
	}
	return append(readable[:len(readable):len(readable)], '\n'), nil // JSON is YAML too, in its flow style
}

// AppendIndented appends the JSON text of a value on indented lines; all lines but the first begin with prefix. A text that would
// become many times as large is appended unchanged.
func AppendIndented(dst, text []byte, prefix string) ([]byte, error) {
	if sprawls(text) {
		return append(dst, text...), nil
	}
	out := bytes.NewBuffer(dst)
	err := json.Indent(out, text, prefix, "  ")
	return out.Bytes(), err
}

// layoutGrowth limits the bytes that indenting may add to a text: 1 MiB plus so many times its size.
const layoutGrowth = 16

// sprawls reports whether an indented text would consist mostly of indentation, as with some thousand levels of nesting, where
// each line would be as long as the text itself.
func sprawls(text []byte) bool {
	limit := 1<<20 + layoutGrowth*len(text)
	added, depth := 0, 0
	for i := 0; i < len(text) && added <= limit; i++ {
		switch text[i] {
		case '"':
			end, ok := skipString(text, i)
			if !ok {
				return false
			}
			i = end - 1
		case '{', '[':
			depth++
			added += 2 * depth
		case '}', ']':
			added += 2 * depth
			depth--
		case ',':
			added += 2 * depth
		}
	}
	return added > limit
}

// maxDuplicates limits the duplicate keys that are reported for a YAML body. JSON bodies have the same limit.
const maxDuplicates = 100

// shortened returns the YAML library's error, which lists duplicate keys on lines below a heading, cut to maxDuplicates keys.
func shortened(err error) error {
	lines := strings.SplitAfterN(err.Error(), "\n", maxDuplicates+2)
	if len(lines) < maxDuplicates+2 {
		return err
	}
	return errors.New(strings.Join(lines[:maxDuplicates+1], "") + "  ...")
}

// aliasGrowth limits the size of a body with its aliases expanded: 1 MiB plus so many times the body's size.
const aliasGrowth = 4

// checkAliases returns an error for a body that becomes too large when its aliases are expanded. The YAML library limits the
// number of values only, but each alias of a long string adds the length of that string to the JSON. The nodes are parsed by the
// library's newer version, which shows aliases without expanding them.
func checkAliases(body []byte) error {
	if bytes.IndexByte(body, '&') < 0 || bytes.IndexByte(body, '*') < 0 || !weight.Aliases(body) {
		return nil
	}
	var doc nodes.Node
	if err := nodes.Unmarshal(body, &doc); err != nil {
		return err
	}
	limit := 1<<20 + aliasGrowth*len(body)
	if expanded(&doc, limit, map[*nodes.Node]int{}) >= limit {
		return errors.New("yaml: document contains excessive aliasing")
	}
	return nil
}

// expanded returns the approximate size of n with its aliases expanded, or limit if the size is larger.
func expanded(n *nodes.Node, limit int, known map[*nodes.Node]int) int {
	if size, ok := known[n]; ok {
		return size
	}
	if n.Kind == nodes.AliasNode {
		return expanded(n.Alias, limit, known)
	}
	known[n] = 0 // for an alias of a node that contains it: the YAML library returns an error for it
	size := len(n.Value) + 8
	for _, c := range n.Content {
		if size = min(limit, size+expanded(c, limit, known)); size == limit {
			break
		}
	}
	known[n] = size
	return size
}

// manyDocuments reports whether there is content after a second document start. Markers only count at the beginning of a line,
// where YAML allows no other use of them.
func manyDocuments(body []byte) bool {
	open, closed := false, false
	for line := range bytes.Lines(body) {
		rest := bytes.TrimRight(line, "\r\n")
		switch {
		case marker(rest, "---"):
			closed = closed || open
			open = true
			rest = rest[3:]
		case marker(rest, "..."):
			closed = closed || open
			rest = rest[3:]
		case !open && bytes.HasPrefix(rest, []byte("%")):
			continue
		}
		rest = bytes.TrimSpace(rest)
		if len(rest) == 0 || rest[0] == '#' {
			continue
		}
		if closed {
			return true
		}
		open = true
	}
	return false
}

func marker(line []byte, m string) bool {
	return bytes.HasPrefix(line, []byte(m)) && (len(line) == 3 || line[3] == ' ' || line[3] == '\t')
}
