package main

import (
	_ "embed"
	"strings"

	"sigs.k8s.io/yaml"
)

// definitionsText has the CustomResourceDefinitions of customKinds, with GROUP for their group.
//
//go:embed definitions.yaml
var definitionsText string

// definitions returns the CustomResourceDefinitions of a group as JSON, by name.
func definitions(group string) map[string]string {
	all := map[string]string{}
	for text := range strings.SplitSeq(definitionsText, "\n---\n") {
		converted, err := yaml.YAMLToJSON([]byte(strings.ReplaceAll(text, "GROUP", group)))
		if err != nil {
			panic(err) // the text is part of the program
		}
		v, err := decodeJSON(converted)
		if err != nil {
			panic(err)
		}
		name := v.(obj)["metadata"].(obj)["name"].(string)
		all[name] = string(converted)
	}
	return all
}
