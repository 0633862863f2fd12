package servertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	nodes "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"
)

// manifest is one document of a file.
type manifest struct {
	file string
	// line is the first line of the text in the file, from 1. It is 0 if there is no file. number is the number of the document
	// among the non-empty ones, from 1. It is 0 if there is only one.
	line, number int
	text         []byte // as in the file: YAML or JSON
	body         []byte // JSON
}

// manifestsOf returns the non-empty documents of a YAML file, or the values of a JSON file.
func manifestsOf(file string, content []byte) ([]manifest, error) {
	split := yamlDocuments
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("{")) {
		split = jsonValues
	}
	out, err := split(content)
	for i := range out {
		out[i].file = file
		if len(out) > 1 {
			out[i].number = i + 1
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return out, nil
}

func jsonValues(content []byte) (out []manifest, err error) {
	d := json.NewDecoder(bytes.NewReader(content))
	for {
		from := d.InputOffset()
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			if errors.Is(err, io.EOF) {
				return out, nil
			}
			return nil, err
		}
		rest := content[from:]
		from += int64(len(rest) - len(bytes.TrimLeft(rest, " \t\r\n")))
		out = append(out, manifest{line: 1 + bytes.Count(content[:from], []byte("\n")), text: one, body: one})
	}
}

// yamlDocuments splits content at lines of "---", which a comment may follow, as kubectl does.
func yamlDocuments(content []byte) (out []manifest, err error) {
	begin, line, at := 0, 1, 1 // line is the line number of begin
	add := func(end int) error {
		text := content[begin:end]
		body, err := yaml.YAMLToJSONStrict(text)
		if err != nil {
			return errors.New(movedLines(err.Error(), line-1))
		}
		if string(body) != "null" { // empty, or only comments
			out = append(out, manifest{line: line, text: text, body: body})
		}
		return nil
	}
	for pos := 0; pos < len(content); {
		next := len(content)
		if i := bytes.IndexByte(content[pos:], '\n'); i >= 0 {
			next = pos + i + 1
		}
		if rest, ok := bytes.CutPrefix(content[pos:next], []byte("---")); ok {
			if rest = bytes.TrimSpace(rest); len(rest) == 0 || rest[0] == '#' {
				if err := add(pos); err != nil {
					return nil, err
				}
				begin, line = next, at+1
			}
		}
		pos, at = next, at+1
	}
	return out, add(len(content))
}

// movedLines adds by to the line numbers in the text of a parser.
func movedLines(text string, by int) string {
	return regexp.MustCompile(`\bline \d+`).ReplaceAllStringFunc(text, func(s string) string {
		n, err := strconv.Atoi(strings.TrimPrefix(s, "line "))
		if err != nil {
			return s
		}
		return fmt.Sprintf("line %d", n+by)
	})
}

// place returns the place of a field that an error names, such as "boats.yaml:12". With "" it returns the place of the document.
// If the document lacks the field, the line is that of the nearest parent.
func (m manifest) place(field string) string {
	if m.line == 0 {
		return m.file
	}
	text := fmt.Sprintf("%s:%d", m.file, m.lineOf(field))
	if m.number > 0 {
		text += fmt.Sprintf(" (document %d)", m.number)
	}
	return text
}

func (m manifest) lineOf(field string) int {
	var root nodes.Node
	if nodes.Unmarshal(m.text, &root) != nil || len(root.Content) == 0 {
		return m.line // for example because of tabs in JSON
	}
	at := root.Content[0]
	line := at.Line
	for _, name := range fieldNames(field) {
		key, value := memberOf(at, name)
		if value == nil {
			break
		}
		at, line = value, key.Line
	}
	return m.line + line - 1
}

// memberOf returns the member or item with a name, and the node that has its line.
func memberOf(n *nodes.Node, name string) (key, value *nodes.Node) {
	if n.Kind == nodes.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case nodes.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == name {
				return n.Content[i], n.Content[i+1]
			}
		}
	case nodes.SequenceNode:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

// fieldNames returns the names in a path such as spec.versions[0].name, as they are in a file. Paths of kube-apiserver refer to
// an internal form of definitions, in which parts that all versions share are at the top.
func fieldNames(path string) []string {
	for internal, written := range map[string]string{
		"spec.validation.":                         "spec.versions[0].schema.",
		"spec.subresources":                        "spec.versions[0].subresources",
		"spec.additionalPrinterColumns":            "spec.versions[0].additionalPrinterColumns",
		"spec.selectableFields":                    "spec.versions[0].selectableFields",
		"spec.conversion.webhookClientConfig":      "spec.conversion.webhook.clientConfig",
		"spec.conversion.conversionReviewVersions": "spec.conversion.webhook.conversionReviewVersions",
	} {
		if rest, ok := strings.CutPrefix(path, internal); ok {
			path = written + rest
			break
		}
	}
	path = strings.Replace(path, "].JSONPath", "].jsonPath", 1)
	var names []string
	for path != "" {
		if strings.HasPrefix(path, "[") {
			name, rest, _ := strings.Cut(path[1:], "]")
			names, path = append(names, name), strings.TrimPrefix(rest, ".")
			continue
		}
		end := strings.IndexAny(path, ".[")
		if end < 0 {
			return append(names, path)
		}
		names, path = append(names, path[:end]), strings.TrimPrefix(path[end:], ".")
	}
	return names
}
