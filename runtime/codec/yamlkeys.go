package codec

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	nodes "go.yaml.in/yaml/v3"
)

// sameKeys returns a problem for each key of a YAML body that is another key of its mapping in JSON: 1 and "1" are two keys in YAML.
// The YAML library keeps the value of either key. Keys of one type that are equal are not returned; the library reports them. Like
// the library, sameKeys returns at most maxDuplicates keys.
func sameKeys(body []byte) (problems []error) {
	if !regexp.MustCompile(`(?mi)(^|[\s{,?-])([-+.0-9][-+.\w]*|true|false|yes|no|on|off)\s*(:|$)`).Match(body) {
		return nil // all keys are strings
	}
	var doc nodes.Node
	if nodes.Unmarshal(body, &doc) != nil {
		return nil // the older version of the library has read the body
	}
	for _, key := range repeatedKeys(nil, &doc) {
		name, _ := keyInJSON(key)
		problems = append(problems, fmt.Errorf("yaml: line %d: key %q already set in map by a key of another type", key.Line, name))
	}
	return problems
}

// repeatedKeys appends the keys below n that are in a mapping before with another type, and returns the slice. Aliases are not
// followed: the keys of what they mean are checked where it is written.
func repeatedKeys(found []*nodes.Node, n *nodes.Node) []*nodes.Node {
	if n.Kind == nodes.MappingNode {
		types := map[string][]string{} // by the key in JSON
		for i := 0; i+1 < len(n.Content) && len(found) < maxDuplicates; i += 2 {
			key := n.Content[i]
			if key.Kind != nodes.ScalarNode {
				continue
			}
			name, tag := keyInJSON(key)
			if before := types[name]; len(before) > 0 && !slices.Contains(before, tag) {
				found = append(found, key)
			}
			types[name] = append(types[name], tag)
		}
	}
	for _, c := range n.Content {
		if len(found) >= maxDuplicates {
			break
		}
		found = repeatedKeys(found, c)
	}
	return found
}

// keyInJSON returns the text of a key in JSON, and the tag of its type in YAML.
func keyInJSON(key *nodes.Node) (name, tag string) {
	const boolean = "!!bool"
	tag = key.ShortTag()
	var value any
	if key.Decode(&value) != nil {
		return key.Value, tag
	}
	switch v := value.(type) {
	case int, int64, uint64, bool:
		return fmt.Sprint(v), tag
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 32), tag // as sigs.k8s.io/yaml does
	case string:
		if key.Style != 0 { // it is in quotes
			return v, tag
		}
		switch v { // YAML 1.1 has more words for booleans
		case "yes", "Yes", "YES", "on", "On", "ON":
			return "true", boolean
		case "no", "No", "NO", "off", "Off", "OFF":
			return "false", boolean
		}
	}
	return key.Value, tag
}
