package schema_test

import (
	gocmp "cmp"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/schema"
	gvkschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// written is a Describer that returns the schema in its JSON; "" returns nil.
type written string

func (w written) OpenAPI() *spec.Schema {
	if w == "" {
		return nil
	}
	s := &spec.Schema{}
	if err := json.Unmarshal([]byte(w), s); err != nil {
		panic(err)
	}
	return s
}

func (w written) MergeSchema(meta spec.Schema) *spec.Schema {
	s := w.OpenAPI()
	if s != nil {
		s.SetProperty("metadata", meta)
	}
	return s
}

var fieldKind = gvkschema.GroupVersionKind{Group: "farm.example.com", Version: "v1", Kind: "Field"}

// describedField returns the definitions of a kind in all three forms.
func describedField(t *testing.T, k schema.Kind) (b *schema.Builder, name string, v3, v2, merge map[string]any) {
	t.Helper()
	b = schema.NewBuilder(schema.Options{GroupVersion: fieldKind.GroupVersion()})
	k.GVK = fieldKind
	name = b.AddKind(k)
	return b, name, plainJSON(t, b.Definitions()), plainJSON(t, b.DefinitionsV2()), plainJSON(t, b.MergeDefinitions())
}

// at returns the value at a path of an object.
func at(v any, path ...string) any {
	for _, name := range path {
		members, _ := v.(map[string]any)
		v = members[name]
	}
	return v
}

func TestNamesOfDescribedKinds(t *testing.T) {
	for _, c := range []struct {
		kind             schema.Kind
		list, items, key string
	}{
		{schema.Kind{}, "FieldList", "List of field. ", "com.example.farm.v1.FieldList"},
		{schema.Kind{Plural: "fields"}, "FieldList", "List of fields. ", "com.example.farm.v1.FieldList"},
		{schema.Kind{Plural: "fields", ListKind: "Acres"}, "Acres", "List of fields. ", "com.example.farm.v1.Acres"},
	} {
		c.kind.Object = written(`{"type":"object"}`)
		b, name, v3, v2, _ := describedField(t, c.kind)
		if name != "com.example.farm.v1.Field" || b.ListName(name) != c.key {
			t.Errorf("%q and %q", name, b.ListName(name))
		}
		for form, definitions := range map[string]map[string]any{"v3": v3, "v2": v2} {
			list := definitions[c.key]
			const more = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
			if at(list, "description") != c.list+" is a list of Field" || at(list, "properties", "items", "description") != c.items+more {
				t.Errorf("%s: %v", form, list)
			}
			want := []any{map[string]any{"group": "farm.example.com", "version": "v1", "kind": c.list}}
			if diff := cmp.Diff(want, at(list, "x-kubernetes-group-version-kind").([]any)); diff != "" {
				t.Errorf("%s:\n%s", form, diff)
			}
		}
	}
	if _, _, v3, _, _ := describedField(t, schema.Kind{Object: written("{}"), WithoutList: true}); v3["com.example.farm.v1.FieldList"] != nil {
		t.Error("a list although there is none")
	}
}

// In OpenAPI v2, an object that may have any fields has no properties, not even metadata, because clients would reject all other
// fields. Clients of OpenAPI v3 do not accept a kind without properties.
func TestDescribedAsAnyObject(t *testing.T) {
	kinds := []any{map[string]any{"group": "farm.example.com", "version": "v1", "kind": "Field"}}
	fields := []any{map[string]any{"fieldPath": "spec.crop"}}
	plain := map[string]any{"type": "object", "x-kubernetes-group-version-kind": kinds, "x-kubernetes-selectable-fields": fields}
	for _, text := range []string{"", `{"type":"object","description":"d","x-kubernetes-preserve-unknown-fields":true}`} {
		_, name, v3, v2, merge := describedField(t, schema.Kind{Object: written(text), SelectableFields: []string{"spec.crop"}})
		if diff := cmp.Diff(plain, v2[name].(map[string]any)); diff != "" {
			t.Errorf("v2 of %q:\n%s", text, diff)
		}
		if at(v3, name, "properties", "metadata") == nil || at(v3, name, "x-kubernetes-preserve-unknown-fields") != true {
			t.Errorf("v3 of %q: %v", text, v3[name])
		}
		if at(v3, name, "x-kubernetes-selectable-fields") == nil || at(v3, name+"List", "x-kubernetes-selectable-fields") == nil {
			t.Errorf("v3 of %q does not say what can be selected by", text)
		}
		if at(merge, name, "properties", "metadata") == nil {
			t.Errorf("objects of %q cannot be merged: %v", text, merge[name])
		}
	}
}

// A kind with a Go type is described by that type; the options for other kinds have no effect.
func TestGoTypesBeforeDescribers(t *testing.T) {
	type field struct {
		Crop string `json:"crop"`
	}
	_, name, v3, _, _ := describedField(t, schema.Kind{Type: reflect.TypeFor[field](), Object: written("{}"), ListKind: "Acres"})
	if at(v3, name, "properties", "crop") == nil || v3["com.example.farm.v1.FieldList"] == nil {
		t.Errorf("%v", v3)
	}
}

// Parts of a schema for which the forms of OpenAPI have other terms. Objects are merged by MergeSchema unchanged.
func TestFormsOfDescribedKinds(t *testing.T) {
	const conventions = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
	const ofEmbedded = `{"apiVersion":{"type":"string","description":"apiVersion defines the versioned schema of this representation of an object. ` + conventions +
		`#resources"},"kind":{"type":"string","description":"kind is a string value representing the type of this object. In CamelCase. ` + conventions +
		`#types-kinds"},"metadata":{"description":"Standard object's metadata. ` + conventions + `#metadata",`
	embeddedMeta := []string{
		ofEmbedded + `"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]}}`,
		ofEmbedded + `"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}}`,
	}
	const str, either = `{"type":"string"}`, `"anyOf":[{"type":"integer"},{"type":"string"}]`
	for in, want := range map[string][2]string{ // the form in v3 ("": the same as the key) and in v2
		`{"type":"string","default":"a","oneOf":[{"minLength":1}],"not":{"maxLength":3}}`: {"", str},
		`{"type":"string","nullable":true,"maxLength":3}`:                                 {"", `{"maxLength":3}`},
		`{"type":"array","nullable":true,"items":` + str + `}`:                            {"", `{}`},
		`{"type":"array"}`: {"", `{}`},
		`{"type":"object","properties":{"a":{"type":"string","nullable":true},"b":` + str + `},"required":["a","b"]}`: {"",
			`{"type":"object","properties":{"a":{},"b":` + str + `},"required":["b"]}`},
		`{"type":"object","additionalProperties":{"type":"string","nullable":true},"required":["a"]}`: {"", `{"type":"object","additionalProperties":{}}`},
		`{"type":"object","additionalProperties":{"type":"array","items":{"type":"string","default":"a"}}}`: {"",
			`{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`},
		`{"x-kubernetes-int-or-string":true}`:                                                   {`{"x-kubernetes-int-or-string":true,` + either + `}`, `{"x-kubernetes-int-or-string":true}`},
		`{"x-kubernetes-int-or-string":true,` + either + `}`:                                    {"", `{"x-kubernetes-int-or-string":true}`},
		`{"x-kubernetes-int-or-string":true,"allOf":[{` + either + `},{"maxLength":1}]}`:        {"", `{"x-kubernetes-int-or-string":true}`},
		`{"x-kubernetes-int-or-string":true,"anyOf":[{"maxLength":1}],"allOf":[{"minimum":1}]}`: {`{"x-kubernetes-int-or-string":true,"anyOf":[{"maxLength":1}],"allOf":[{` + either + `},{"minimum":1}]}`, `{"x-kubernetes-int-or-string":true}`},
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":` + str + `},"required":["a"]}`: {"",
			`{"x-kubernetes-preserve-unknown-fields":true,"required":["a"]}`},
		`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"required":["kind"]}`: {
			`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"required":["kind","apiVersion"],"properties":META}`,
			`{"x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true,"required":["kind"]}`},
		`{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true}}`: {
			`{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,"required":["kind","apiVersion"],"properties":META}}`,
			`{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,"required":["kind","apiVersion"],"properties":META}}`},
	} {
		_, name, v3, v2, merge := describedField(t, schema.Kind{Object: written(`{"type":"object","properties":{"x":` + in + `}}`)})
		for i, definitions := range []map[string]any{v3, v2} {
			text := gocmp.Or(want[i], in)
			text = strings.ReplaceAll(text, "META", embeddedMeta[i])
			if diff := cmp.Diff(anyJSON(t, text), at(definitions, name, "properties", "x")); diff != "" {
				t.Errorf("%s in OpenAPI v%d (-want +got):\n%s", in, 3-i, diff)
			}
		}
		if diff := cmp.Diff(anyJSON(t, in), at(merge, name, "properties", "x")); diff != "" {
			t.Errorf("%s is merged as something else:\n%s", in, diff)
		}
	}
}
