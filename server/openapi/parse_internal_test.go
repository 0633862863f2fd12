package openapi

import (
	"fmt"
	"testing"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
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
