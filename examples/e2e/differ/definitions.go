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

const (
	ownGroup = "${ns}.differ.example.com"
	ownName  = "things." + ownGroup
)

// definitionKinds are the kinds of cases that change definitions: CustomResourceDefinition itself, and a kind with a definition
// that belongs to the case.
func definitionKinds() []*kind {
	return []*kind{
		{resource: "customresourcedefinitions", kind: "CustomResourceDefinition", group: "apiextensions.k8s.io", versions: []string{"v1"}, weight: 3, subresources: []string{"status"},
			sample: func() obj {
				return obj{"spec": obj{"group": ownGroup, "scope": "Namespaced", "names": obj{"plural": "things", "kind": "Thing"}, "versions": []any{servedVersion("v1", true, plainSchema())}}}
			},
			fields: definitionFields()},
		{resource: "things", kind: "Thing", group: ownGroup, versions: []string{"v1", "v1", "v2"}, namespaced: true, steady: true, weight: 2, subresources: []string{"status", "scale"},
			sample:    func() obj { return obj{"spec": obj{"a": "x"}} },
			fields:    []field{{"spec.a", []any{"x", "y", 1, nil, unset{}}}, {"spec.b", []any{1, 2, "x", unset{}}}, {"status.c", []any{1, "x"}}, {"spec.list", []any{[]any{"a", "a"}, []any{"b"}}}},
			selectors: []string{"spec.a=x"}},
	}
}

func plainSchema() obj {
	return obj{"type": "object", "properties": obj{"spec": obj{"type": "object", "properties": obj{"a": obj{"type": "string"}, "b": obj{"type": "integer"}, "list": obj{"type": "array", "items": obj{"type": "string"}}}}, "status": obj{"type": "object", "properties": obj{"c": obj{"type": "integer"}}}}}
}

func servedVersion(name string, storage bool, schema obj) obj {
	return obj{"name": name, "served": true, "storage": storage, "schema": obj{"openAPIV3Schema": schema}}
}

// withSchema is a list of one version with something changed in its schema.
func withSchema(path string, value any) []any {
	s := plainSchema()
	set(s, path, value)
	return []any{servedVersion("v1", true, s)}
}

// withVersion is a list of one version with something changed in it.
func withVersion(path string, value any) []any {
	v := servedVersion("v1", true, plainSchema())
	set(v, path, value)
	return []any{v}
}

func definitionFields() []field {
	a := "properties.spec.properties.a"
	other := servedVersion("v2", false, plainSchema())
	versions := []any{
		withVersion("subresources", obj{"status": obj{}}), withVersion("subresources", obj{"status": obj{}, "scale": obj{"specReplicasPath": ".spec.b", "statusReplicasPath": ".status.c"}}),
		withVersion("subresources", obj{"scale": obj{"specReplicasPath": "spec.b", "statusReplicasPath": ".spec.b"}}), withVersion("served", false), withVersion("storage", false), withVersion("name", "V1"), withVersion("name", "v2"),
		withVersion("additionalPrinterColumns", []any{obj{"name": "A", "type": "string", "jsonPath": ".spec.a"}}), withVersion("additionalPrinterColumns", []any{obj{"name": "A", "type": "text", "jsonPath": "spec.a"}, obj{"name": "", "type": "integer", "jsonPath": ".spec["}}),
		withVersion("selectableFields", []any{obj{"jsonPath": ".spec.a"}}), withVersion("selectableFields", []any{obj{"jsonPath": ".spec.list"}, obj{"jsonPath": ".metadata.name"}, obj{"jsonPath": ".spec.a"}, obj{"jsonPath": ".spec.a"}}),
		withVersion("schema", unset{}), withVersion("deprecated", true), withVersion("deprecationWarning", "old"), withVersion("unknown", 1),
		withSchema(a+".default", "d"), withSchema(a+".default", 1), withSchema(a+".enum", []any{"x", "y"}), withSchema(a+".pattern", "["), withSchema(a+".pattern", "^x"), withSchema(a+".type", "number"), withSchema(a+".type", "text"), withSchema(a+".type", unset{}),
		withSchema(a+".nullable", true), withSchema(a+".format", "date"), withSchema(a+".maxLength", 1), withSchema(a+".maxLength", -1), withSchema(a+".uniqueItems", true), withSchema(a+".$ref", "#/x"), withSchema(a+".x-kubernetes-int-or-string", true),
		withSchema(a+".x-kubernetes-validations", []any{obj{"rule": "self.size() < 3"}}), withSchema(a+".x-kubernetes-validations", []any{obj{"rule": "self.size("}}), withSchema(a+".x-kubernetes-validations", []any{obj{"rule": "self + 1 == 2", "message": "a\nb"}}), withSchema(a+".x-kubernetes-validations", []any{obj{"rule": "self == oldSelf", "optionalOldSelf": true}, obj{"message": "x"}}),
		withSchema(a+".x-kubernetes-validations", []any{obj{"rule": "true", "messageExpression": "1", "reason": "Unknown", "fieldPath": ".x"}}),
		withSchema("type", "array"), withSchema("x-kubernetes-preserve-unknown-fields", true), withSchema("x-kubernetes-preserve-unknown-fields", false), withSchema("additionalProperties", true), withSchema("properties.metadata", obj{"type": "object", "properties": obj{"name": obj{"type": "string", "maxLength": 1}}}),
		withSchema("properties.metadata", obj{"type": "object", "properties": obj{"labels": obj{"type": "object"}}}), withSchema("properties.apiVersion", obj{"type": "integer"}), withSchema("required", []any{"spec"}), withSchema("required", []any{"x", "x"}),
		withSchema("properties.spec.properties.list.x-kubernetes-list-type", "set"), withSchema("properties.spec.properties.list.x-kubernetes-list-type", "map"), withSchema("properties.spec.properties.list.items", unset{}), withSchema("properties.spec.properties.list.items", obj{"type": "object", "nullable": true}),
		withSchema("properties.spec.anyOf", []any{obj{"required": []any{"a"}}, obj{"properties": obj{"a": obj{"type": "string"}}}}), withSchema("properties.spec.not", obj{"required": []any{"b"}}), withSchema("properties.spec.x-kubernetes-embedded-resource", true), withSchema("properties.spec.additionalProperties", obj{"type": "string"}),
		[]any{}, nil, []any{servedVersion("v1", true, plainSchema()), other}, []any{servedVersion("v1", false, plainSchema()), servedVersion("v2", true, plainSchema())}, []any{servedVersion("v1", true, plainSchema()), servedVersion("v1", false, plainSchema())},
		[]any{servedVersion("v1", true, plainSchema()), servedVersion("v2", true, plainSchema())}, []any{servedVersion("v1", true, plainSchema()), servedVersion("v2", false, withSchema(a+".default", "d")[0].(obj)["schema"].(obj)["openAPIV3Schema"].(obj))},
	}
	return []field{
		{"spec.versions", versions}, {"spec.versions", versions}, {"spec.versions", versions}, {"spec.versions", versions},
		{"spec.names.shortNames", []any{[]any{"th"}, []any{"Bad Name"}, []any{"th", "th"}, nil}}, {"spec.names.categories", []any{[]any{"all"}, []any{"Bad Name"}}}, {"spec.names.kind", []any{"Thing", "thing", "Other", ""}}, {"spec.names.singular", []any{"thing", "Thing", "one"}},
		{"spec.names.listKind", []any{"ThingList", "Thing", "X"}}, {"spec.names.plural", []any{"other", "Things", ""}}, {"spec.scope", []any{"Cluster", "Namespaced", "x", ""}}, {"spec.group", []any{"other.example.com", "", "x"}},
		{"spec.preserveUnknownFields", []any{true, false}}, {"spec.unknown", []any{1}},
		{"spec.conversion", []any{obj{"strategy": "None"}, obj{"strategy": "Webhook"}, obj{"strategy": "x"}, obj{"strategy": "None", "webhook": obj{"conversionReviewVersions": []any{"v1"}, "clientConfig": obj{"url": "https://127.0.0.1:1/"}}}, obj{"strategy": "Webhook", "webhook": obj{"conversionReviewVersions": []any{"v9"}, "clientConfig": obj{"url": "http://x"}}}, obj{}, nil}},
		{"status.storedVersions", []any{[]any{"v1"}, []any{}, []any{"v1", "v2"}, []any{"v9"}}}, {"status.acceptedNames", []any{obj{"plural": "x", "kind": "X"}}},
	}
}
