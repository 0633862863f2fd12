package openapi

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
)

// schemaOfAll has all keywords whose values gnostic stores as text, at each place where a schema can be.
const schemaOfAll = `{"type":"object","description":"d","default":{"a":1},"example":{"a":[1,"b",null]},"enum":["a","true",1,1.5,true,null,{"a":"b"},["c"],"","a b: c\n"," ","---","x\u0001","é…😀","a"],
	"x-kubernetes-validations":[{"rule":"self.a == 'b'","message":"m"}],"x-kubernetes-map-type":"atomic","x-other":null,
	"properties":{"a":%[1]s,"b":{"$ref":"#/%[2]s/Other"},"none":{}},"additionalProperties":%[1]s,"items":%[1]s,"allOf":[%[1]s,{}],"required":["a"]%[3]s}`

// TestParsesLikeGnostic compares parseV2 and parseV3 with the parsers of gnostic.
func TestParsesLikeGnostic(t *testing.T) {
	t.Parallel()
	inner := `{"type":"string","enum":["x","y"],"example":"z","x-kubernetes-list-type":"set"}`
	v2 := fmt.Sprintf(schemaOfAll, fmt.Sprintf(schemaOfAll, inner, "definitions", ""), "definitions", "")
	more := `,"anyOf":[` + inner + `],"oneOf":[` + inner + `,{"$ref":"#/components/schemas/Other"}],"not":` + inner
	v3 := fmt.Sprintf(schemaOfAll, fmt.Sprintf(schemaOfAll, inner, "components/schemas", more), "components/schemas", more)
	for i, body := range []string{
		`{"swagger":"2.0","info":{"title":"t","version":"v"},"paths":{},"definitions":{"All":` + v2 + `,"Other":{"type":"object","additionalProperties":true}}}`,
		`{"swagger":"2.0","info":{"title":"t","version":"v"},"paths":{}}`,
		`{"swagger":"2.0","info":{"title":"t","version":"v"},"paths":{},"definitions":{}}`,
		`{"swagger":"2.0","info":{"title":"t","version":"v"},"paths":{},"definitions":{"A":5}}`,
		`{"swagger":"2.0","info":{"title":"t","version":"v"},"paths":{},"definitions":{"A":{"unknown":5,"enum":7,"properties":[],"items":[]}}}`,
	} {
		want, wrong := openapi_v2.ParseDocument([]byte(body))
		got, err := parseV2([]byte(body))
		compare(t, body, got, want, err, wrong, i == 0)
	}
	for i, body := range []string{
		`{"openapi":"3.0.0","info":{"title":"t","version":"v"},"paths":{},"components":{"schemas":{"All":` + v3 + `,"Other":{"type":"object","additionalProperties":false}}}}`,
		`{"openapi":"3.0.0","info":{"title":"t","version":"v"},"paths":{}}`,
		`{"openapi":"3.0.0","info":{"title":"t","version":"v"},"paths":{},"components":{"schemas":{"A":5}}}`,
		`{"openapi":"3.0.0","info":{"title":"t","version":"v"},"paths":{},"components":{"schemas":{"A":{"unknown":5,"enum":7,"properties":[],"items":[]}}}}`,
	} {
		want, wrong := openapi_v3.ParseDocument([]byte(body))
		got, err := parseV3([]byte(body))
		compare(t, body, got, want, err, wrong, i == 0)
	}
}

func compare(t *testing.T, body string, got, want proto.Message, err, wrong error, valid bool) {
	t.Helper()
	if valid && wrong != nil {
		t.Fatal(wrong)
	}
	if (err == nil) != (wrong == nil) {
		t.Errorf("%s: error %v, want %v", body, err, wrong)
	} else if err == nil && !proto.Equal(got, want) {
		t.Errorf("%s: got\n%v, want\n%v", body, got, want)
	}
}

// TestNodes compares the nodes of JSON texts with those of the YAML parser.
func TestNodes(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		nil, true, false, 0, -5, 1.5, 1e21, -1e-7, 1e300, uint64(math.MaxUint64), json.Number("123456789012345678901234567890"), json.Number("1e5"), json.Number("1E400"), json.Number("-0"), json.Number("1.0"),
		"", "a", "true", "5", "null", "~", "a\"b\\c/d\n\t\u0001<&>\u2028", "é…😀", "yes", "0x1", "2026-01-02", strings.Repeat("long ", 50), "<<",
		[]any{}, map[string]any{}, []any{[]any{}, map[string]any{"a": []any{1, "b", nil}}}, map[string]any{"": map[string]any{"<<": "x", "5": 5}},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := nodesOf(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		var want yaml.Node
		if err := yaml.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if a, b := describe(got), describe(want.Content[0]); a != b {
			t.Errorf("%s: %s, want %s", text, a, b)
		}
	}
	for _, text := range []string{"", "{", "[", `"`, `"\`, "{}x", "[1,", `{"a"}`, `{"a":}`, `{"a":1,}`, "[,]", " {}", "{a:1}", `"\x"`} {
		if _, err := nodesOf([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// describe returns the kinds, tags and values of a node.
func describe(n *yaml.Node) string {
	out := fmt.Sprintf("%d %s %q (", n.Kind, n.Tag, n.Value)
	for _, inside := range n.Content {
		out += describe(inside)
	}
	return out + ")"
}
