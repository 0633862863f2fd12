package codec

import (
	"bytes"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// AppendYAMLItem appends the JSON text of one value as an item of a YAML block sequence at the left margin, ending with a
// newline: "- a: 1\n  b: 2\n". The text is valid as an item of a list, also below a member of an object, so that a list can be
// written one item at a time. An item that YAML would write in flow style when it is alone in a list is written in flow style
// after "- ", whatever the other items are. item is not changed.
func AppendYAMLItem(dst, item []byte) ([]byte, error) {
	if !json.Valid(item) {
		return nil, fmt.Errorf("write YAML: an item of %d bytes is no JSON", len(item))
	}
	list := append(append(append(make([]byte, 0, len(item)+2), '['), item...), ']')
	if readable := readableAsYAML(list); !sprawls(readable) {
		if out, err := yaml.JSONToYAML(readable); err == nil {
			return append(dst, out...), nil
		}
	}
	var line bytes.Buffer // a line break would need indentation
	if err := json.Compact(&line, item); err != nil {
		return nil, err
	}
	dst = append(append(dst, "- "...), readableAsYAML(line.Bytes())...)
	return append(dst, '\n'), nil
}
