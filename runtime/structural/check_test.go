package structural_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/structural"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestCheck checks the errors that authors of definitions read.
func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		schema  string
		options structural.Options
		want    []string
	}{
		"nothing": {`{}`, structural.Options{}, []string{`s.type: Required value: must not be empty at the root`}},
		"types": {
			`{"type":"object","properties":{"a":{},"b":{"type":"array"},"c":{"type":"array","items":{}},"d":{"type":"text"},"e":{"type":"null"}}}`,
			structural.Options{},
			[]string{
				`s.properties[a].type: Required value: must not be empty for specified object fields`,
				`s.properties[b].items: Required value: must be specified`,
				`s.properties[c].items.type: Required value: must not be empty for specified array items`,
				`s.properties[d].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`,
				`s.properties[e].type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string"`,
				`s.properties[e].type: Forbidden: type cannot be set to null, use nullable as an alternative`,
			},
		},
		"no structure that is tolerated": {
			`{"properties":{"a":{"type":"array"},"b":{"default":{"c":1},"anyOf":[{"type":"string"}],"uniqueItems":true,"additionalProperties":{"id":"x"}}}}`,
			structural.Options{Tolerance: structural.Tolerance{NonStructural: true}},
			[]string{
				`s.properties[b].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
				`s.properties[b].additionalProperties.id: Forbidden: id is not supported`,
			},
		},
		"types that are tolerated": {`{"type":"object","properties":{"d":{"type":"text"}}}`, structural.Options{Tolerance: structural.Tolerance{UnknownTypes: true}}, nil},
		"the root": {`{"type":"array","nullable":true,"items":{"type":"string"}}`, structural.Options{StatusSubresource: true}, []string{
			`s.type: Invalid value: "array": only "object" is allowed as the type at the root of the schema if the status subresource is enabled`,
			`s.nullable: Forbidden: nullable cannot be true at the root`,
			`s.type: Invalid value: "array": must be object at the root`,
		}},
		"conditions that are structure": {
			`{"type":"object","properties":{"a":{"type":"object","anyOf":[{"type":"object","description":"d","default":{}},{"properties":{"b":{"minLength":1}}}]}}}`,
			structural.Options{},
			[]string{
				`s.properties[a].anyOf[0].default: Forbidden: must be undefined to be structural`,
				`s.properties[a].anyOf[0].description: Forbidden: must be empty to be structural`,
				`s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural`,
			},
		},
		"conditions about what is not specified": {`{"type":"object","not":{"properties":{"b":{"minLength":1}}}}`, structural.Options{},
			[]string{`s.properties[b]: Required value: because it is defined in s.not.properties[b]`}},
		"an int or string": {`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]},
			"b":{"x-kubernetes-int-or-string":true,"allOf":[{"anyOf":[{"type":"integer"},{"type":"string"}]},{"pattern":"^a"}]}}}`, structural.Options{}, nil},
		"an int or string, reversed": {`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, structural.Options{},
			[]string{
				`s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural`,
				`s.properties[a].anyOf[1].type: Forbidden: must be empty to be structural`,
			}},
		"metadata": {`{"type":"object","properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}`, structural.Options{},
			[]string{`s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`}},
		"names": {`{"type":"object","properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","maxLength":3}}}}}`, structural.Options{}, nil},
		"keywords": {`{"type":"object","id":"x","properties":{"a":{"type":"array","items":{"type":"string"},"uniqueItems":true},"b":{"type":"string","$ref":"x"},
			"c":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":{"type":"string"}}}}`, structural.Options{},
			[]string{
				`s.id: Forbidden: id is not supported`,
				`s.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
				`s.properties[b].$ref: Forbidden: $ref is not supported`,
				`s.properties[c].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`,
			}},
		"a keyword that is only told by itself": {`{"type":"object","$schema":"x"}`, structural.Options{},
			[]string{`s: Invalid value: "": OpenAPIV3Schema 'schema' is not supported`}},
		"a pattern": {`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`, structural.Options{},
			[]string{"s.properties[a].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"}},
		"list types": {
			`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"},"x-kubernetes-list-type":"set"},"b":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"map"},
			"c":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","l"],"items":{"type":"object","nullable":true,"properties":{"k":{"type":"string","nullable":true}}}},
			"d":{"type":"string","x-kubernetes-list-type":"bag"},"e":{"type":"object","x-kubernetes-map-type":"bag"},"f":{"type":"array","items":{"type":"string"},"x-kubernetes-list-map-keys":["k"]}}}`,
			structural.Options{},
			[]string{
				`s.properties[a].items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`,
				`s.properties[b].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`,
				`s.properties[b].items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map`,
				`s.properties[c].x-kubernetes-list-map-keys: Invalid value: ["k","l"]: entries must all be names of item properties`,
				`s.properties[c].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map`,
				`s.properties[c].items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
				`s.properties[c].items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable`,
				`s.properties[d].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified`,
				`s.properties[d].x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"`,
				`s.properties[e].x-kubernetes-map-type: Unsupported value: "bag": supported values: "atomic", "granular"`,
				`s.properties[f].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty`,
			},
		},
		"list types that are tolerated": {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","nullable":true},"x-kubernetes-list-type":"set"}}}`,
			structural.Options{Tolerance: structural.Tolerance{NonAtomicSets: true, LooseKeys: true}}, nil},
		"defaults": {
			`{"type":"object","properties":{"a":{"type":"integer","default":"x"},"b":{"type":"object","default":{"x":1}},"metadata":{"type":"object","properties":{"name":{"type":"string","default":"x"}}},
			"c":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"a/b"}}}}}}}`,
			structural.Options{},
			[]string{
				`s.properties[a].default: Invalid value: "string":  in body must be of type integer: "string"`,
				`s.properties[b].default: Invalid value: {"x":1}: must not have unknown fields`,
				`s.properties[c].properties[metadata].properties[name].default: Invalid value: "a/b": must result in valid metadata: metadata.name: Invalid value: "a/b": may not contain '/'`,
				`s.properties[metadata].properties[name].default: Forbidden: must not be set in top-level metadata`,
			},
		},
		"rules": {`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string"}},"x-kubernetes-validations":[{"rule":" "},{"rule":"a\nb"},{"rule":"a","message":"x\ny"},
			{"rule":"a","reason":"Because","fieldPath":".c"},{"rule":"a","fieldPath":".b"}]}}}`, structural.Options{},
			[]string{
				`s.properties[a].x-kubernetes-validations[0].rule: Required value: rule is not specified`,
				`s.properties[a].x-kubernetes-validations[1].message: Required value: message must be specified if rule contains line breaks`,
				`s.properties[a].x-kubernetes-validations[2].message: Invalid value: "x\ny": must not contain line breaks`,
				`s.properties[a].x-kubernetes-validations[3].reason: Unsupported value: "Because": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"`,
				`s.properties[a].x-kubernetes-validations[3].fieldPath: Invalid value: ".c": must be a valid path`,
			}},
		"a rule about an additional property": {`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"string"},"x-kubernetes-validations":[
			{"rule":"a","fieldPath":"['x']"},{"rule":"a","fieldPath":".x.y"}]}}}`, structural.Options{},
			[]string{`s.properties[a].x-kubernetes-validations[1].fieldPath: Invalid value: ".x.y": must be a valid path`}},
		"paths in what is not supported": {`{"type":"object","properties":{"a":{"type":"object","x-kubernetes-preserve-unknown-fields":false,"x-kubernetes-validations":[{"rule":"a","fieldPath":".c"}]},
			"b":{"type":"object","properties":{"x":{"type":"string"}},"x-kubernetes-validations":[{"rule":"a","fieldPath":".c"}]}}}`, structural.Options{},
			[]string{
				`s.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined`,
				`s.properties[b].x-kubernetes-validations[0].fieldPath: Invalid value: ".c": must be a valid path`,
			}},
		"an int or string that says false about nothing": {`{"type":"object","properties":{"a":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer","additionalProperties":false},{"type":"string"}]}}}`,
			structural.Options{}, nil},
		"defaults of elements in metadata": {`{"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{
			"finalizers":{"type":"array","items":{"type":"string","default":"a/b"}},"labels":{"type":"array","items":{"type":"string","default":"a/b"}}}}}}}}`, structural.Options{},
			[]string{`s.properties[a].properties[metadata].properties[labels].items.default: Invalid value: "a/b": must result in valid metadata: metadata: Invalid value: {"labels":["a/b"]}: json: cannot unmarshal array into Go struct field ObjectMeta.labels of type map[string]string`}},
	} {
		t.Run(name, func(t *testing.T) {
			got := messages(structural.Check(field.NewPath("s"), mustProps(t, test.schema), test.options))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTolerated checks that only the faults of the old schemas are tolerated.
func TestTolerated(t *testing.T) {
	for schema, want := range map[string]structural.Tolerance{
		`{"type":"object"}`: {},
		`{"type":"object","properties":{"a":{"type":"text"}}}`:                                                                           {UnknownTypes: true},
		`{"type":"object","properties":{"a":{"type":"object","default":{"x":1}}}}`:                                                       {UnprunedDefaults: true},
		`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}}}`:                 {NonAtomicSets: true},
		`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","nullable":true}}}}`: {LooseKeys: true},
	} {
		if got := structural.Tolerated(nil, mustProps(t, schema)); got != want {
			t.Errorf("%s: got %+v", schema, got)
		}
		if errs := structural.Check(nil, mustProps(t, schema), structural.Options{Tolerance: want}); len(errs) > 0 {
			t.Errorf("%s: %v", schema, errs)
		}
		if errs := structural.Check(nil, mustProps(t, schema), structural.Options{}); len(errs) == 0 && want != (structural.Tolerance{}) {
			t.Errorf("%s: nothing to tolerate", schema)
		}
	}
}

// TestWarnings checks that there is a warning for each use of a format, and one for all sets.
func TestWarnings(t *testing.T) {
	got := structural.Warnings(mustProps(t, `{"type":"object","properties":{"a":{"type":"string","format":"x"},"b":{"type":"integer","format":"date"},"c":{"type":"string","format":"x"},
		"d":{"type":"string","format":"date-time"},"e":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}},"f":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}}}`))
	want := []string{`unrecognized format "x"`, `unrecognized format "date"`, `unrecognized format "x"`,
		`x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL validation rules`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDepth checks that the depth of schemas is bounded.
func TestDepth(t *testing.T) {
	nested := func(depth int) *props {
		p := &props{Type: "object"}
		for range depth {
			p = &props{Type: "object", Properties: map[string]props{"a": *p}}
		}
		return p
	}
	if _, err := structural.Compile(nested(structural.MaxDepth)); err != nil {
		t.Error(err)
	}
	if errs := structural.Check(nil, nested(structural.MaxDepth), structural.Options{}); len(errs) > 0 {
		t.Error(errs)
	}
	want := fmt.Sprintf("schemas cannot be nested more than %d deep", structural.MaxDepth)
	if _, err := structural.Compile(nested(structural.MaxDepth + 1)); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if errs := structural.Check(nil, nested(structural.MaxDepth+1), structural.Options{}); len(errs) != 1 || !strings.Contains(errs[0].Detail, want) {
		t.Errorf("got %v", errs)
	}
}
