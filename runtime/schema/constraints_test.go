package schema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/keelson-dev/keelson/runtime/schema"
	gvkschema "k8s.io/apimachinery/pkg/runtime/schema"
)

type limited struct {
	Size   int32             `json:"size" minimum:"1" maximum:"10"`
	Ratio  *float64          `json:"ratio,omitempty" minimum:"0" exclusiveMinimum:"true" maximum:"1.5" exclusiveMaximum:"true" multipleOf:"0.5"`
	Count  *int64            `json:"count,omitempty" default:"3" minimum:"0"`
	Color  string            `json:"color" enum:"red,green" default:"red"`
	Code   uint8             `json:"code,omitempty" enum:"1,2"`
	Name   string            `json:"name,omitempty" required:"true" minLength:"1" maxLength:"63" pattern:"^[a-z]+$"`
	Addr   string            `json:"addr,omitempty" format:"ipv4" immutable:"true"`
	Tags   []string          `json:"tags,omitempty" minItems:"1" maxItems:"1" uniqueItems:"true"`
	Labels map[string]string `json:"labels,omitempty" maxProperties:"8" minProperties:"2"`
	Lists  [][]string        `json:"lists,omitempty" maxItems:"4" items:"minItems:\"1\" items:\"maxLength:\\\"9\\\" enum:\\\"a,b\\\"\""`
	Counts map[string]int32  `json:"counts,omitempty" additionalProperties:"minimum:\"1\""`
	Inner  *inner            `json:"inner,omitempty" default:"{\"a\":1}" immutable:"true"`
	Plain  int32             `json:"plain"`
	Wrong  int32             `json:"wrong" minimum:"x"`
}

type inner struct {
	A int `json:"a,omitempty" maximum:"2"`
}

// TestConstraints checks that every constraint is in its place, in both versions of OpenAPI.
func TestConstraints(t *testing.T) {
	b := schema.NewBuilder(schema.Options{GroupVersion: gvkschema.GroupVersion{Group: "example.com", Version: "v1"}})
	name := b.AddType(reflect.TypeFor[limited]())
	want := map[string]string{
		"size":   `{"description":"Minimum 1, maximum 10.","type":"integer","format":"int32","maximum":10,"minimum":1}`,
		"ratio":  `{"description":"More than 0, less than 1.5, a multiple of 0.5.","type":"number","format":"double","maximum":1.5,"exclusiveMaximum":true,"minimum":0,"exclusiveMinimum":true,"multipleOf":0.5}`,
		"count":  `{"description":"Minimum 0, default 3.","type":"integer","format":"int64","default":3,"minimum":0}`,
		"color":  `{"description":"Default \"red\".","type":"string","default":"red","enum":["red","green"]}`,
		"code":   `{"type":"integer","format":"int32","enum":[1,2]}`,
		"name":   `{"description":"1 to 63 characters, pattern '^[a-z]+$'.","type":"string","maxLength":63,"minLength":1,"pattern":"^[a-z]+$"}`,
		"addr":   `{"description":"Format ipv4, immutable.","type":"string","format":"ipv4"}`,
		"tags":   `{"description":"Exactly 1 item, no item twice.","type":"array","maxItems":1,"minItems":1,"uniqueItems":true,"items":{"type":"string"}}`,
		"labels": `{"description":"2 to 8 entries.","type":"object","maxProperties":8,"minProperties":2,"additionalProperties":{"type":"string"}}`,
		"lists":  `{"description":"At most 4 items, each at least 1 item, each at most 9 characters, one of [a b].","type":"array","maxItems":4,"items":{"type":"array","minItems":1,"items":{"type":"string","maxLength":9,"enum":["a","b"]}}}`,
		"counts": `{"description":"Each minimum 1.","type":"object","additionalProperties":{"type":"integer","format":"int32","minimum":1}}`,
		"inner":  `{"description":"Default {\"a\":1}, immutable.","default":{"a":1},"allOf":[{"$ref":"REF"}]}`,
		"plain":  `{"type":"integer","format":"int32","default":0}`,
		"wrong":  `{"type":"integer","format":"int32","default":0}`,
	}
	v3 := b.Definitions()
	for version, definitions := range map[string]map[string]any{"v3": plainJSON(t, v3), "v2": plainJSON(t, schema.V2(v3))} {
		s := definitions[name].(map[string]any)
		for field, text := range want {
			if field == "inner" {
				text = strings.ReplaceAll(text, "REF", schema.RefPrefix+"com.example.v1.inner")
				if version == "v2" {
					text = strings.NewReplacer(`"allOf":[{`, "", `}]}`, "}", "components/schemas", "definitions").Replace(text)
				}
			}
			got, want := s["properties"].(map[string]any)[field], anyJSON(t, text).(map[string]any)
			if version == "v2" {
				delete(want, "default")
			}
			if !reflect.DeepEqual(got, any(want)) {
				t.Errorf("%s %s:\ngot  %v\nwant %v", version, field, got, want)
			}
		}
		if got, want := s["required"], anyJSON(t, `["size","name","plain","wrong"]`); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: required %v, want %v", version, got, want)
		}
	}
}

// TestConstraintsAfterText checks that constraints are in a paragraph of their own after the author's text.
func TestConstraintsAfterText(t *testing.T) {
	docs, err := schema.ParseDocs(fstest.MapFS{"a.go": {Data: []byte(`package schema_test

type limited struct {
	// Size is how large it is.
	Size int
}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	b := schema.NewBuilder(schema.Options{GroupVersion: gvkschema.GroupVersion{Group: "example.com", Version: "v1"}, Docs: docs})
	name := b.AddType(reflect.TypeFor[limited]())
	if got, want := b.Definitions()[name].Properties["size"].Description, "Size is how large it is.\n\nMinimum 1, maximum 10."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func plainJSON(t *testing.T, v any) map[string]any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return anyJSON(t, string(text)).(map[string]any)
}

func anyJSON(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
