package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	protovalidation "k8s.io/kube-openapi/pkg/util/proto/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/server/openapi"
)

// Clients of both forms can resolve every reference, and protobuf has the same content as JSON.
func TestCustomResourcesAreReadable(t *testing.T) {
	s := openapi.New(openapi.Options{})
	s.Set(append(crdGroups(t), shopGroups(t)...))
	for _, version := range []string{"v1", "v1beta1"} {
		path := "/openapi/v3/apis/" + crdGroup + "/" + version
		text := body(t, get(t, s, path))
		checkReferences(t, text, "#/components/schemas/", "components", "schemas")
		want, err := openapi_v3.ParseDocument(text)
		if err != nil {
			t.Fatal(err)
		}
		var got openapi_v3.Document
		r := get(t, s, path, "Accept", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf")
		if err := proto.Unmarshal(body(t, r), &got); err != nil || !proto.Equal(want, &got) {
			t.Errorf("%s differs from its JSON: %v", path, err)
		}
	}
	text := body(t, get(t, s, "/openapi/v2"))
	checkReferences(t, text, "#/definitions/", "definitions")
	want, err := openapi_v2.ParseDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	var got openapi_v2.Document
	r := get(t, s, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	if err := proto.Unmarshal(body(t, r), &got); err != nil || !proto.Equal(want, &got) {
		t.Errorf("the v2 document differs from its JSON: %v", err)
	}
}

// Only the documents of a group version with a changed describer are made again.
func TestAChangedDescriberChangesOneDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a new document has a new Last-Modified
		s, groups := openapi.New(openapi.Options{}), crowd(t, 4)
		calls := make([]*counted, len(groups))
		for i := range groups {
			calls[i] = &counted{Describer: groups[i].Resources[0].Object}
			groups[i].Resources[0].Object = calls[i]
		}
		s.Set(groups)
		before := modified(t, s)
		v2 := body(t, get(t, s, "/openapi/v2"))

		time.Sleep(time.Hour)
		changed := slices.Clone(groups)
		r := changed[2].Resources[0]
		r.Object = newCRDObject(t, &apiextensionsv1.JSONSchemaProps{Type: "object", Description: "Another one."})
		changed[2].Resources = []openapi.Resource{r}
		for i := range calls {
			calls[i].n.Store(0)
		}
		s.Set(changed)
		after := modified(t, s)
		for name, was := range before {
			if got := after[name] != was; got != (name == "apis/g2.example.com/v1") {
				t.Errorf("%s made anew: %t", name, got)
			}
		}
		text := body(t, get(t, s, "/openapi/v2"))
		if bytes.Contains(v2, []byte("Another one.")) || !bytes.Contains(text, []byte("Another one.")) {
			t.Error("the document of OpenAPI v2 does not follow")
		}
		for i := range calls {
			if n := calls[i].n.Load(); n != 0 {
				t.Errorf("what did not change was described %d times for the change of another: group %d", n, i)
			}
		}
		s.Set(groups)
		if !bytes.Equal(body(t, get(t, s, "/openapi/v2")), v2) {
			t.Error("the same resources have another document of OpenAPI v2")
		}
		const name = "apis/g2.example.com/v1"
		for what, change := range map[string]func(r *openapi.Resource){
			"the kind of lists":     func(r *openapi.Resource) { r.ListKind = "Other" },
			"the selectable fields": func(r *openapi.Resource) { r.SelectableFields = []string{"spec.other"} },
		} {
			was := index(t, s)[name]
			r := groups[2].Resources[0]
			change(&r)
			changed[2].Resources = []openapi.Resource{r}
			s.Set(changed)
			if index(t, s)[name] == was {
				t.Errorf("%s changed, and the document did not", what)
			}
			s.Set(groups)
		}
	})
}

// counted counts its calls.
type counted struct {
	schema.Describer
	n atomic.Int32
}

func (c *counted) OpenAPI() *spec.Schema {
	c.n.Add(1)
	return c.Describer.OpenAPI()
}

// modified returns when each document was made.
func modified(t *testing.T, s *openapi.Service) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, address := range index(t, s) {
		out[name] = get(t, s, address).Header.Get("Last-Modified")
	}
	return out
}

// A client that validates with OpenAPI v2, as old versions of kubectl do, accepts valid objects, and finds the errors that this
// form can describe.
func TestClientsThatValidateByV2(t *testing.T) {
	s := openapi.New(openapi.Options{})
	s.Set(crdGroups(t))
	d, err := openapi_v2.ParseDocument(body(t, get(t, s, "/openapi/v2")))
	if err != nil {
		t.Fatal(err)
	}
	models, err := openapiproto.NewOpenAPIData(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ version, spec, wrong string }{
		{"v1", `{"color":"red","maybe":null}`, ""},
		{"v1", `{"color":"red"}`, ""}, // maybe is required, but OpenAPI v2 cannot say that it may be null
		{"v1", `{"maybe":"x"}`, `missing required field "color"`},
		{"v1", `{"color":"red","unknown":1}`, `unknown field "unknown"`},
		{"v1", `{"color":"red","replicas":"many"}`, `invalid type for`},
		{"v1", `{"color":"red","port":1,"pattern":"2","limited":3,"other":"x"}`, ""},
		{"v1", `{"color":"red","maybeObject":null,"maybeList":null,"maybeValues":{"b":"c"}}`, ""},
		{"v1", `{"color":"red","maybeObject":{"a":"b"},"maybeList":["a"]}`, ""},
		{"v1", `{"color":"red","free":{"known":"a","more":{"b":[1]}},"freeAny":[1,{}],"freeList":["a"]}`, ""},
		{"v1", `{"color":"red","embedded":{"apiVersion":"v1","kind":"X","data":{"a":1}},"embeddedList":[{"x":{"y":1}}]}`, ""},
		{"v1", `{"color":"red","embeddedKnown":{"apiVersion":"v1","kind":"Pod","spec":{"x":"y"},"metadata":{"labels":{"a":"b"}}}}`, ""},
		{"v1", `{"color":"red","embeddedKnown":{"apiVersion":"v1","kind":"Pod","spec":{"x":"y"},"data":1}}`, `unknown field "data"`},
		{"v1", `{"color":"red","choice":{"b":"x"},"any":{"a":1},"whole":{"a":"b"},"nested":[[{"deep":null}]]}`, ""},
		{"v1", `{"color":"red","parts":[{"count":1}]}`, `missing required field "name"`},
		{"v1beta1", `{"what":{"ever":[1]}}`, ""},
	} {
		var object map[string]any
		if err := json.Unmarshal([]byte(`{"apiVersion":"`+crdGroup+`/`+c.version+`","kind":"Gadget","metadata":{"name":"a"},"spec":`+c.spec+`}`), &object); err != nil {
			t.Fatal(err)
		}
		model := models.LookupModel("com.example.shapes." + c.version + ".Gadget")
		if model == nil {
			t.Fatalf("%s has no model", c.version)
		}
		errs := fmt.Sprint(protovalidation.ValidateModel(object, model, "Gadget"))
		if c.wrong == "" && errs != "[]" || !strings.Contains(errs, c.wrong) {
			t.Errorf("%s %s: %s, want %q", c.version, c.spec, errs, c.wrong)
		}
	}
}

// The documents of every structural schema can be read by clients, in both forms.
func TestOddSchemasAreReadable(t *testing.T) {
	s, like := openapi.New(openapi.Options{}), crowd(t, 1)[0]
	for _, text := range []string{
		`null`, `{"type":"object"}`, `{"type":"object","properties":{}}`, `{"type":"object","required":["a"],"description":""}`,
		`{"type":"object","properties":{"a":{"x-kubernetes-preserve-unknown-fields":true}}}`,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"x-kubernetes-preserve-unknown-fields":true}}}}`,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"array","items":{"x-kubernetes-int-or-string":true}}}}}`,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"array","nullable":true,"items":{"type":"object"}}}}}`,
		`{"type":"object","properties":{"a":{"type":"string","enum":["a",null,1],"nullable":true,"default":null,"example":null}}}`,
		`{"type":"object","properties":{"a":{"type":"integer","default":9007199254740993,"enum":[9007199254740993,1]}}}`,
		`{"type":"object","properties":{"a":{"type":"number","default":1e300,"minimum":-1.5,"multipleOf":0.1}}}`,
		`{"type":"object","properties":{"$ref":{"type":"string"},"x-a":{"type":"string"},"properties":{"type":"object"},"type":{"type":"string"},"":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"$ref":{"type":"string"},"allOf":{"type":"array","items":{"type":"string"}}}}}}`,
		`{"type":"object","properties":{"a/b":{"type":"string"},"a.b":{"type":"string"},"ä~1\"":{"type":"string"},"default":{"type":"string"},"items":{"type":"string"}}}`,
		`{"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"labels":{"type":"object"}}}}}}}`,
		`{"type":"object","properties":{"a":{"type":"string","format":"int-or-string","title":"t","externalDocs":{"url":"x"},"example":{"a":[1,"b",null]}}}}`,
		`{"type":"object","properties":{"a":{"type":"object","not":{"required":["a"]},"allOf":[{"anyOf":[{"properties":{"b":{"enum":["x"]}}}]}],"properties":{"b":{"type":"string"}}}}}`,
	} {
		var props *apiextensionsv1.JSONSchemaProps
		if err := json.Unmarshal([]byte(text), &props); err != nil {
			t.Fatal(err)
		}
		gv := like
		gv.Resources = slices.Clone(like.Resources)
		gv.Resources[0].Object = newCRDObject(t, props)
		s.Set([]openapi.GroupVersion{gv})
		path := "/openapi/v3/apis/g0.example.com/v1"
		if r := get(t, s, path); r.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", text, r.StatusCode, body(t, r))
		}
		v2 := body(t, get(t, s, "/openapi/v2"))
		if !bytes.Contains(v2, []byte("/apis/g0.example.com/v1/gadgets")) {
			t.Errorf("%s is left out of OpenAPI v2", text)
		}
		want, err := openapi_v2.ParseDocument(v2)
		if err != nil {
			t.Fatal(err)
		}
		var got openapi_v2.Document
		r := get(t, s, "/openapi/v2", "Accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
		if err := proto.Unmarshal(body(t, r), &got); err != nil || !proto.Equal(want, &got) {
			t.Errorf("%s: the forms of OpenAPI v2 differ: %v", text, err)
		}
	}
}

// Describers that cannot be compared are always different.
func TestDescribersThatCannotBeCompared(t *testing.T) {
	s, groups := openapi.New(openapi.Options{}), crowd(t, 1)
	groups[0].Resources[0].Object = odder{"x": groups[0].Resources[0].Object}
	for range 2 {
		s.Set(slices.Clone(groups))
		if r := get(t, s, index(t, s)["apis/g0.example.com/v1"]); r.StatusCode != http.StatusOK {
			t.Error(r.StatusCode)
		}
	}
}

type odder map[string]schema.Describer

func (o odder) OpenAPI() *spec.Schema                     { return o["x"].OpenAPI() }
func (o odder) MergeSchema(meta spec.Schema) *spec.Schema { return o["x"].MergeSchema(meta) }
