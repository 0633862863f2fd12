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

// JSON returns the format application/json. A pretty response is indented by two spaces
// and, as kube-apiserver's, has no newline at its end; one that would become many times as large is not indented.
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

// YAML returns the format application/yaml: one document, of the part of YAML that JSON can say. Responses have
// their keys in alphabetical order; a watch cannot be written in YAML. What the YAML library cannot write, or only with
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
	text, err := yaml.YAMLToJSON(body) // once more, for what is wrong may be no more than keys that come twice
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

// AppendIndented appends a JSON value laid out on lines, of which all but the first begin with prefix. One that would become
// many times as large is appended as it is.
func AppendIndented(dst, text []byte, prefix string) ([]byte, error) {
	if sprawls(text) {
		return append(dst, text...), nil
	}
	out := bytes.NewBuffer(dst)
	err := json.Indent(out, text, prefix, "  ")
	return out.Bytes(), err
}

// layoutGrowth bounds what laying a text out on indented lines may add to it: 1 MiB and so many times its size.
const layoutGrowth = 16

// sprawls tells of a text that is mostly indentation when it is laid out: one nested some thousand levels deep, of which
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

// maxDuplicates is how many duplicate keys of a YAML body are reported, as many as of a JSON body.
const maxDuplicates = 100

// shortened returns the YAML library's list of duplicate keys, one a line below a heading, cut to maxDuplicates.
func shortened(err error) error {
	lines := strings.SplitAfterN(err.Error(), "\n", maxDuplicates+2)
	if len(lines) < maxDuplicates+2 {
		return err
	}
	return errors.New(strings.Join(lines[:maxDuplicates+1], "") + "  ...")
}

// aliasGrowth bounds what a body's aliases may make of it: 1 MiB and so many times its size.
const aliasGrowth = 4

// checkAliases refuses a body that its aliases blow up. The YAML library bounds the number of values, but an
// alias of a long string costs it nothing and the JSON its whole length. The nodes that are measured come from
// the library's newer version, which shows aliases before it follows them.
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

// expanded returns about how large n is with its aliases written out, or limit when it is more.
func expanded(n *nodes.Node, limit int, known map[*nodes.Node]int) int {
	if size, ok := known[n]; ok {
		return size
	}
	if n.Kind == nodes.AliasNode {
		return expanded(n.Alias, limit, known)
	}
	known[n] = 0 // for an alias of a node that contains it: the YAML library refuses those
	size := len(n.Value) + 8
	for _, c := range n.Content {
		if size = min(limit, size+expanded(c, limit, known)); size == limit {
			break
		}
	}
	known[n] = size
	return size
}

// manyDocuments reports whether content follows a second document start. The markers count only at the
// beginning of a line, where YAML allows them nowhere else.
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
