package structural_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apijson "k8s.io/apimachinery/pkg/util/json"
)

// TestOpenAPISaysTheSame checks that a schema and its published form have the same JSON, except for nulls and keywords that have
// no effect.
func TestOpenAPISaysTheSame(t *testing.T) {
	rounds := 1000
	if testing.Short() {
		rounds = 200
	}
	for seed := range rounds {
		p := decodedProps(t, newRandom(uint64(2_000_000+seed)).structure(4))
		before, _ := json.Marshal(p)
		published, err := structural.OpenAPI(p)
		if err != nil {
			t.Fatalf("%v\nschema %s", err, before)
		}
		got, err := json.Marshal(published)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(plainSchema(t, before), plainSchema(t, got)); diff != "" {
			t.Fatalf("(-written +published): %s\nschema %s", diff, before)
		}
		if after, _ := json.Marshal(p); !bytes.Equal(after, before) {
			t.Fatal("the schema was changed")
		}
	}
}

func plainSchema(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := apijson.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return withoutNothing(v)
}

// withoutNothing removes the keywords that have no effect.
func withoutNothing(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutNothing(v[i])
		}
	case map[string]any:
		for key, x := range v {
			if list, ok := x.([]any); x == nil || ok && len(list) == 0 || x == false && key != "default" && key != "example" && key != "additionalProperties" {
				delete(v, key)
				continue
			}
			v[key] = withoutNothing(x)
		}
	}
	return v
}

func TestOpenAPIOfWhatIsNone(t *testing.T) {
	if s, err := structural.OpenAPI(nil); s != nil || err != nil {
		t.Errorf("%v %v", s, err)
	}
	deep := &props{Type: "object"}
	for range structural.MaxDepth + 1 {
		deep = &props{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: deep}}
	}
	wrong := &apiextensionsv1.JSON{Raw: []byte("{")}
	for name, p := range map[string]*props{
		"too deep": deep, "a default that is no JSON": {Default: wrong}, "an example that is no JSON": {Example: wrong},
		"an alternative that is no JSON": {Enum: []apiextensionsv1.JSON{*wrong}},
		"one below":                      {Properties: map[string]props{"a": {AnyOf: []props{{Not: &props{Default: wrong}}}}}},
	} {
		if s, err := structural.OpenAPI(p); s != nil || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
