package structural_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smdschema "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// TestPrune checks the removed fields and their paths.
func TestPrune(t *testing.T) {
	for name, test := range map[string]struct {
		schema, value, want string
		unknown             []string
	}{
		"members": {`{"type":"object","properties":{"spec":{"type":"object","properties":{"parts":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}}}}}`,
			`{"apiVersion":"v1","kind":"X","metadata":{"y":1},"spec":{"parts":[{"a":"1","x":1,"w":2}],"z":{}},"b":1}`,
			`{"apiVersion":"v1","kind":"X","metadata":{"y":1},"spec":{"parts":[{"a":"1"}]}}`,
			[]string{"b", "spec.parts[0].w", "spec.parts[0].x", "spec.z"}},
		"what is preserved": {`{"type":"object","properties":{"a":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"b":{"type":"object","properties":{"c":{"type":"string"}}}}}}}`,
			`{"a":{"x":{"y":1},"b":{"c":"1","d":1}}}`, `{"a":{"x":{"y":1},"b":{"c":"1"}}}`, []string{"a.b.d"}},
		"elements of what is preserved": {`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","properties":{"b":{"type":"object"}}}}}}`,
			`{"a":[{"x":1,"b":{"y":1}}]}`, `{"a":[{"x":1,"b":{}}]}`, []string{"a[0].b.y"}},
		"additional properties": {`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"object"}},"b":{"type":"object","additionalProperties":true}}}`,
			`{"a":{"x":{"y":1}},"b":{"x":{"y":1},"z":1}}`, `{"a":{"x":{}},"b":{"x":{},"z":1}}`, []string{"a.x.y", "b.x.y"}},
		"an embedded resource": {`{"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"object"}}}}}`,
			`{"a":{"apiVersion":"v1","kind":"X","metadata":{"name":"a","b":1},"spec":{"x":1},"status":{}}}`,
			`{"a":{"apiVersion":"v1","kind":"X","metadata":{"name":"a","b":1},"spec":{}}}`, []string{"a.spec.x", "a.status"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustCompile(t, test.schema)
			value := decodeObject(t, []byte(test.value))
			unknown := s.PruneObject(value, 100)
			if diff := cmp.Diff(decode(t, []byte(test.want)), any(value)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.unknown, unknown); diff != "" {
				t.Error(diff)
			}
			first := s.PruneObject(decodeObject(t, []byte(test.value)), 1)
			if diff := cmp.Diff(test.unknown[:1], first); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestManyUnknown checks that the first of many paths are always the same.
func TestManyUnknown(t *testing.T) {
	object := map[string]any{}
	for i := range 26 * 26 {
		object[string([]byte{byte('a' + i/26), byte('a' + i%26)})] = i
	}
	got := mustCompile(t, `{"type":"object"}`).PruneObject(object, 3)
	if diff := cmp.Diff([]string{"aa", "ab", "ac"}, got); diff != "" || len(object) != 0 {
		t.Error(diff, len(object))
	}
}

// TestSetDefaults checks that absent values, and nulls that are not nullable, are set.
func TestSetDefaults(t *testing.T) {
	for name, test := range map[string]struct{ schema, value, want string }{
		"members": {`{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"object","default":{},"properties":{"c":{"type":"integer","default":1}}},"d":{"type":"object","properties":{"e":{"type":"string","default":"y"}}}}}`,
			`{}`, `{"a":"x","b":{"c":1}}`},
		"what is there": {`{"type":"object","properties":{"a":{"type":"string","default":"x"}}}`, `{"a":""}`, `{"a":""}`},
		"nulls": {`{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"string","nullable":true,"default":"x"},"c":{"type":"string"},"d":{"type":"string","nullable":true}}}`,
			`{"a":null,"b":null,"c":null,"d":null}`, `{"a":"x","b":null,"d":null}`},
		"nulls in lists and maps": {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","default":"x"}},"b":{"type":"object","additionalProperties":{"type":"string","default":"x"}},
			"c":{"type":"array","items":{"type":"string"}},"d":{"type":"object","additionalProperties":{"type":"string"}}}}`,
			`{"a":[null],"b":{"k":null},"c":[null],"d":{"k":null}}`, `{"a":["x"],"b":{"k":"x"},"c":[null],"d":{}}`},
		"null is no default": {`{"type":"object","properties":{"a":{"type":"string","nullable":true,"default":null}}}`, `{}`, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, value := mustCompile(t, test.schema), decode(t, []byte(test.value))
			s.DropNulls(value)
			s.SetDefaults(value)
			if diff := cmp.Diff(decode(t, []byte(test.want)), value); diff != "" {
				t.Error(diff)
			}
		})
	}
	s := mustCompile(t, `{"type":"object","properties":{"a":{"type":"object","default":{"b":[1]},"x-kubernetes-preserve-unknown-fields":true}}}`)
	first := map[string]any{}
	s.SetDefaults(first)
	first["a"].(map[string]any)["b"] = nil
	second := map[string]any{}
	s.SetDefaults(second)
	if diff := cmp.Diff(decode(t, []byte(`{"a":{"b":[1]}}`)), any(second)); diff != "" {
		t.Errorf("a default was changed by its user: %s", diff)
	}
}

// TestPrunedDefaults checks that a default brings no unknown members.
func TestPrunedDefaults(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{"type":"object","default":{"b":1,"c":2},"properties":{"b":{"type":"integer"}}}}}`)
	if diff := cmp.Diff(any(map[string]any{"b": int64(1)}), s.Properties["a"].Default); diff != "" {
		t.Error(diff)
	}
}

// TestEmbedded checks the metadata of embedded resources.
func TestEmbedded(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"l":{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}`)
	value := decodeObject(t, []byte(`{"l":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","creationTimestamp":null,"x":1,"labels":{"a":"b"}},"spec":{"y":1}}]}`))
	unknown, err := s.CoerceEmbedded(nil, value, structural.ConformOptions{Report: 10})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, []byte(`{"l":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"a":"b"}},"spec":{"y":1}}]}`)), any(value)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"l[0].metadata.x"}, unknown); diff != "" {
		t.Error(diff)
	}
	if errs := s.ValidateEmbedded(nil, value); len(errs) > 0 {
		t.Error(errs)
	}
	wrong := decodeObject(t, []byte(`{"l":[{"apiVersion":1,"metadata":{"labels":{"a":1}}}]}`))
	if _, err := s.CoerceEmbedded(field.NewPath("x"), apiruntime.DeepCopyJSON(wrong), structural.ConformOptions{}); err == nil || err.Error() != "x.l[0].apiVersion: Invalid value: 1: must be a string" {
		t.Errorf("got %v", err)
	}
	if _, err := s.CoerceEmbedded(nil, wrong, structural.ConformOptions{DropInvalidMetadata: true}); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(decode(t, []byte(`{"l":[{"metadata":{}}]}`)), any(wrong)); diff != "" {
		t.Error(diff)
	}
	maps := mustCompile(t, `{"type":"object","properties":{"m":{"type":"object","additionalProperties":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}`)
	if _, err := maps.CoerceEmbedded(nil, decode(t, []byte(`{"m":{"b":{"kind":1},"a":{"kind":1}}}`)), structural.ConformOptions{}); err == nil || err.Field != "m[a].kind" {
		t.Errorf("got %v", err)
	}
	bad := decode(t, []byte(`{"l":[{"kind":"a_b","metadata":{"name":"a/b"}}]}`))
	want := []string{
		`l[0].apiVersion: Required value`,
		`l[0].kind: Invalid value: "a_b": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
		`l[0].metadata.name: Invalid value: "a/b": may not contain '/'`,
	}
	if diff := cmp.Diff(want, messages(s.ValidateEmbedded(nil, bad))); diff != "" {
		t.Error(diff)
	}
}

// TestCanonical checks that an ObjectMeta would not change canonical metadata.
func TestCanonical(t *testing.T) {
	canonical := 0
	for seed := range uint64(4000) {
		meta := newRandom(3_000_000 + seed).metadata()
		if !structural.IsCanonical(meta) {
			continue
		}
		canonical++
		object := map[string]any{"metadata": apiruntime.DeepCopyJSONValue(meta)}
		unknown, err := structural.Recode(object)
		if err != nil || len(unknown) > 0 || !reflect.DeepEqual(object["metadata"], meta) {
			t.Errorf("%s becomes %s; %v, %v", asJSON(meta), asJSON(object["metadata"]), unknown, err)
		}
	}
	if canonical < 500 {
		t.Errorf("only %d", canonical)
	}
}

// TestAt finds the schemas of selectable fields and rules.
func TestAt(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{"color":{"type":"string"},"a.b":{"type":"integer"},
		"map":{"type":"object","additionalProperties":{"type":"boolean"}},"any":{"type":"object","additionalProperties":true},"list":{"type":"array","items":{"type":"string"}}}}}}`)
	for path, want := range map[string]struct {
		at, jsonType, err string
		brackets          bool
	}{
		".spec.color":         {at: "spec.color", jsonType: "string"},
		".spec.map.k":         {at: "spec.map[k]", jsonType: "boolean"},
		".spec.list":          {at: "spec.list", jsonType: "array"},
		".spec['a.b']":        {at: "spec.a.b", jsonType: "integer", brackets: true},
		".spec.map['it\\'s']": {at: "spec.map[it's]", jsonType: "boolean", brackets: true},
		"['spec'].color":      {at: "spec.color", jsonType: "string", brackets: true},
		".spec['color'":       {err: "unexpected end of JSON path", brackets: true},
		".spec[0]":            {err: "expected single quoted string but got 0", brackets: true},
		".spec['color'x":      {err: "expected ] but got x", brackets: true},
		".spec['\\x']":        {err: "invalid string literal: invalid escape char \\x", brackets: true},
		".spec['color'].x":    {err: "does not refer to a valid field", brackets: true},
		".spec.list[0]":       {err: "array notation is not allowed"},
		".spec.none":          {err: "does not refer to a valid field"},
		".spec.list.x":        {err: "does not refer to a valid field"},
		".spec.any.x.y":       {err: "does not refer to a valid field"},
		"spec":                {err: "expected [ or . but got: spec"},
		".spec.":              {err: "unexpected end of JSON path"},
	} {
		at, found, err := s.At(path, want.brackets)
		switch {
		case want.err != "":
			if err == nil || err.Error() != want.err {
				t.Errorf("%s: got %v", path, err)
			}
		case err != nil || at.String() != want.at || found.Type != want.jsonType:
			t.Errorf("%s: got %s, %v, %v", path, at, found, err)
		}
	}
}

// TestAll walks a schema in order.
func TestAll(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"b":{"type":"array","items":{"type":"string"}},"a":{"type":"object","additionalProperties":{"type":"integer"}}}}`)
	var got []string
	for path, node := range s.All(field.NewPath("s")) {
		got = append(got, path.String()+" "+node.Type)
	}
	want := []string{"s object", "s.properties[a] object", "s.properties[a].additionalProperties integer", "s.properties[b] array", "s.properties[b].items string"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for range s.All(nil) { // the loop ends at the break
		break
	}
}

// TestFingerprint checks that schemas that compile differently have different fingerprints.
func TestFingerprint(t *testing.T) {
	of := func(text string) structural.Fingerprint {
		fingerprint, err := structural.FingerprintOf(mustProps(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return fingerprint
	}
	const schema = `{"type":"object","description":"a","properties":{"x":{"type":"string","title":"t"},"y":{"type":"array","items":{"type":"string","description":"d"}}}}`
	if of(schema) != of(`{"type":"object","properties":{"y":{"type":"array","items":{"type":"string"}},"x":{"type":"string","example":1}}}`) {
		t.Error("words count")
	}
	for _, other := range []string{
		`{"type":"object","properties":{"x":{"type":"string","maxLength":1},"y":{"type":"array","items":{"type":"string"}}}}`,
		`{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"array","items":{"type":"string","nullable":true}}}}`,
		`{"type":"object","properties":{"x":{"type":"string","default":"description"},"y":{"type":"array","items":{"type":"string"}}}}`,
	} {
		if of(schema) == of(other) {
			t.Errorf("%s is the same", other)
		}
	}
	if nothing, err := structural.FingerprintOf(nil); err != nil || nothing == of(schema) {
		t.Error(err)
	}
}

// TestMergeSchema checks that structured-merge-diff merges by the schema, and accepts all schemas.
func TestMergeSchema(t *testing.T) {
	meta := *spec.RefSchema("#/definitions/ObjectMeta")
	model := func(s *structural.Schema) (typed.ParseableType, error) {
		types, err := schemaconv.ToSchemaFromOpenAPI(map[string]*spec.Schema{
			"Thing": s.MergeSchema(meta), "ObjectMeta": {SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"object"}}},
		}, false)
		if err != nil {
			return typed.ParseableType{}, err
		}
		parser := typed.Parser{Schema: smdschema.Schema{Types: types.Types}}
		return parser.Type("Thing"), nil
	}
	things, err := model(mustCompile(t, `{"type":"object","properties":{"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],
		"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"v":{"x-kubernetes-int-or-string":true},"w":{"type":"integer"}}}},
		"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},"a":{"type":"array","items":{"type":"string"}},
		"m":{"type":"object","x-kubernetes-map-type":"atomic","additionalProperties":{"type":"string"}},
		"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
		"f":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"spec":{"type":"string"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	parse := func(text string) *typed.TypedValue {
		value, err := things.FromUnstructured(decode(t, []byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	merged, err := parse(`{"apiVersion":"g/v1","kind":"Thing","metadata":{"name":"a"},"l":[{"k":"a","v":1},{"k":"b","v":"x"}],"s":["a"],"a":["a"],"m":{"a":"1"},"e":{"kind":"A","x":1}}`).
		Merge(parse(`{"apiVersion":"g/v1","kind":"Thing","l":[{"k":"b","w":2}],"s":["b"],"a":["b"],"m":{"b":"1"},"e":{"y":1},"f":{"kind":"F"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := decode(t, []byte(`{"apiVersion":"g/v1","kind":"Thing","metadata":{"name":"a"},"l":[{"k":"a","v":1},{"k":"b","v":"x","w":2}],"s":["a","b"],"a":["b"],"m":{"b":"1"},
		"e":{"kind":"A","x":1,"y":1},"f":{"kind":"F"}}`))
	if diff := cmp.Diff(want, merged.AsValue().Unstructured()); diff != "" {
		t.Error(diff)
	}
	schemas := 0
	corpus(t, func(g *golden) {
		s, err := structural.Compile(&g.Schema)
		if err != nil || len(g.Check) > 0 {
			return
		}
		schemas++
		if _, err := model(s); err != nil {
			t.Errorf("%v", err)
		}
	})
	if _, err := model(nil); err != nil || schemas < 100 {
		t.Error(err, schemas)
	}
}
