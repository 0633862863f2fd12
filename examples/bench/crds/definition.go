package main

import (
	"encoding/json"
	"fmt"
)

// These are the sizes of the definitions: how many are in a group, and the number of YAML lines of a schema. Every second
// definition has rules.
const (
	perGroup    = 10
	schemaLines = 200
)

// object is a JSON object.
type object = map[string]any

func group(i int) string  { return fmt.Sprintf("g%d.crds.example.com", i/perGroup) }
func plural(i int) string { return fmt.Sprintf("things%d", i) }
func kind(i int) string   { return fmt.Sprintf("Thing%d", i) }
func name(i int) string   { return plural(i) + "." + group(i) }

// collection returns the path of the objects of definition i.
func collection(i int) string {
	return fmt.Sprintf("/apis/%s/v1/namespaces/default/%s", group(i), plural(i))
}

// definition returns definition i. Each has a different schema.
func definition(i int) []byte {
	text, err := json.Marshal(object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": name(i)},
		"spec": object{
			"group": group(i), "scope": "Namespaced", "names": object{"plural": plural(i), "kind": kind(i)},
			"versions": []object{{
				"name": "v1", "served": true, "storage": true, "subresources": object{"status": object{}},
				"schema": object{"openAPIV3Schema": schema(i)},
			}},
		},
	})
	if err != nil {
		panic(err) // maps, strings and numbers can be encoded
	}
	return text
}

// schema returns a schema with a spec and a status that have fields of all types.
func schema(i int) object {
	spec, status := object{}, object{}
	lines := 13 // lines around the fields
	for f := 0; lines < schemaLines; f++ {
		fields := spec
		if f%5 == 4 {
			fields = status
		}
		property, more := field(i, f)
		fields[fmt.Sprintf("field%d", f)] = property
		lines += 1 + more
	}
	top := object{"type": "object", "properties": spec, "required": []string{"field0"}}
	if i%2 == 1 {
		top["x-kubernetes-validations"] = []object{
			{"rule": "self.field0 == oldSelf.field0", "message": "field0 cannot change"},
			{"rule": fmt.Sprintf("!has(self.field1) || self.field1 <= %d", 1000+i)},
			{"rule": "!has(self.field2) || self.field2.all(x, x.startsWith('a'))"},
		}
	}
	return object{"type": "object", "description": "What a thing is.", "properties": object{
		"spec": top, "status": object{"type": "object", "properties": status},
	}}
}

// field returns a property, and the number of its lines after its name.
func field(i, f int) (property object, lines int) {
	switch f % 4 {
	case 0:
		return object{"type": "string", "maxLength": 64, "description": fmt.Sprintf("The text number %d of things number %d, as whoever made it has written it.", f, i)}, 3
	case 1:
		return object{"type": "integer", "format": "int32", "minimum": 0}, 3
	case 2:
		return object{"type": "array", "maxItems": 16, "items": object{"type": "string", "maxLength": 64}}, 5
	}
	return object{"type": "boolean", "default": true}, 2
}

// thing returns an object of definition i.
func thing(i int, name string) []byte {
	text, err := json.Marshal(object{
		"apiVersion": group(i) + "/v1", "kind": kind(i), "metadata": object{"name": name},
		"spec": object{"field0": "text", "field1": 7, "field2": []string{"a", "ab"}},
	})
	if err != nil {
		panic(err)
	}
	return text
}
