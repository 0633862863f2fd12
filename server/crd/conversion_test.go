package crd_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/servertest"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// boxes have a size in v1, and a box in v2, which is stored.
const boxes = `
metadata: {name: boxes.serving.example.com}
spec:
  group: serving.example.com
  scope: Namespaced
  names: {plural: boxes, kind: Box}
  versions:
  - name: v1
    served: true
    storage: false
    selectableFields: [{jsonPath: .spec.size}]
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer, maximum: 10}, copies: {type: integer, default: 1}}
          status: {type: object, properties: {copies: {type: integer}}}
  - name: v2
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.box.width}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              box: {type: object, properties: {width: {type: integer}, height: {type: integer, default: 7}}}
              copies: {type: integer}
          status: {type: object, properties: {copies: {type: integer}}}
`

// convertBox moves size and width. A width of 66 cannot be converted.
func convertBox(in *unstructured.Unstructured, to schema.GroupVersion) (*unstructured.Unstructured, error) {
	spec, ok := in.Object["spec"].(map[string]any)
	if !ok {
		return in, nil
	}
	switch to.Version {
	case "v2":
		if size, ok := spec["size"]; ok {
			if size.(int64) == 66 { // panics if it is not an integer
				return nil, errors.New("66 is not converted")
			}
			height := map[string]any{"width": size}
			if box, ok := spec["box"].(map[string]any); ok {
				height["height"] = box["height"]
			}
			spec["box"] = height
			delete(spec, "size")
		}
	case "v1":
		if box, ok := spec["box"].(map[string]any); ok {
			if width, ok := box["width"]; ok {
				spec["size"] = width
			}
			delete(spec, "box")
		}
	}
	in.SetLabels(map[string]string{"converted": to.Version})
	return in, nil
}

func newBoxes(t testing.TB, change ...func(*apiextensionsv1.CustomResourceDefinition)) *servertest.Server {
	t.Helper()
	d := definitionText(t, boxes)
	for _, f := range change {
		f(d)
	}
	group, err := groupOf(d, convertBox)
	if err != nil {
		t.Fatal(err)
	}
	return servertest.New(t, group)
}

func box(version, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"serving.example.com/%s","kind":"Box","metadata":{"name":%q},"spec":%s}`, version, name, spec)
}

func boxesIn(version string) string {
	return "/apis/serving.example.com/" + version + "/namespaces/default/boxes"
}

// The program's function converts. Each version has its own schema and subresources.
func TestGoConversion(t *testing.T) {
	t.Parallel()
	s := newBoxes(t)
	for _, c := range []struct {
		step
		code int
		want string // in the answer
	}{
		{step{method: "POST", path: boxesIn("v1"), body: box("v1", "a", `{"size":3}`)}, 201, `"spec":{"copies":1,"size":3}`},
		{step{method: "GET", path: boxesIn("v2") + "/a"}, 200, `"spec":{"box":{"height":7,"width":3},"copies":1}`},
		{step{method: "POST", path: boxesIn("v2"), body: box("v2", "b", `{"box":{"width":20,"height":2}}`)}, 201, `"spec":{"box":{"height":2,"width":20}}`},
		{step{method: "GET", path: boxesIn("v1") + "/b"}, 200, `"spec":{"size":20}`},
		{step{method: "GET", path: boxesIn("v1") + "/b"}, 200, `"labels":{"converted":"v1"}`},
		{step{method: "PATCH", path: boxesIn("v1") + "/b", contentType: merge, body: `{"spec":{"copies":2}}`}, 200, `"size":20`},        // too large, but unchanged
		{step{method: "PATCH", path: boxesIn("v1") + "/b", contentType: merge, body: `{"spec":{"size":21}}`}, 422, `spec.size in body`}, // with the error of v1
		{step{method: "PATCH", path: boxesIn("v2") + "/b", contentType: merge, body: `{"spec":{"box":{"width":"x"}}}`}, 422, `spec.box.width in body must be of type integer`},
		{step{method: "POST", path: boxesIn("v1"), body: box("v1", "c", `{"size":11}`)}, 422, `spec.size in body should be less than or equal to 10`},
		{step{method: "POST", path: boxesIn("v1"), body: box("v1", "c", `{"size":"text"}`)}, 422, `Box.serving.example.com \"c\" is invalid: spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"`},
		{step{method: "POST", path: boxesIn("v1"), body: box("v1", "c", `"text"`)}, 422, `spec in body must be of type object`},
		{step{method: "GET", path: boxesIn("v1") + "?fieldSelector=spec.size%3D3"}, 200, `"name":"a"`}, // the stored object has no such field
		{step{method: "GET", path: boxesIn("v1") + "?fieldSelector=spec.size%3D4"}, 200, `"items":[]`},
		{step{method: "GET", path: boxesIn("v2") + "?fieldSelector=spec.size%3D3"}, 400, `field label not supported: spec.size`},
		{step{method: "GET", path: boxesIn("v2") + "?fieldSelector=spec.box.width%3D20"}, 200, `"name":"b"`},
		{step{method: "GET", path: boxesIn("v1") + "?fieldSelector=spec.box.width%3D20"}, 400, `field label not supported: spec.box.width`},
		{step{method: "PATCH", path: boxesIn("v1") + "/a/status", contentType: merge, body: `{"status":{"copies":4}}`}, 200, `"status":{"copies":4}`},
		{step{method: "GET", path: boxesIn("v2") + "/a/status"}, 404, ``},
		{step{method: "GET", path: boxesIn("v1") + "/a/scale"}, 200, `"spec":{"replicas":1},"status":{"replicas":4}`},
		{step{method: "PATCH", path: boxesIn("v1") + "/a/scale", contentType: merge, body: `{"spec":{"replicas":5}}`}, 200, `"spec":{"replicas":5}`},
		{step{method: "GET", path: boxesIn("v2") + "/a/scale"}, 404, ``},
		{step{method: "PATCH", path: boxesIn("v1") + "/d?fieldManager=one", contentType: apply, body: box("v1", "d", `{"size":1}`)}, 201, `"f:size":{}`},
		{step{method: "PATCH", path: boxesIn("v1") + "/d?fieldManager=one", contentType: apply, body: box("v1", "d", `{}`)}, 200, `"spec":{"copies":1}`},
		{step{method: "GET", path: boxesIn("v1")}, 200, `"kind":"BoxList"`},
	} {
		a := c.step.do(t, s.Client(), s.URL)
		if a.code != c.code || !strings.Contains(a.text, c.want) {
			t.Errorf("%s %s %s: %d %s\nwant %d %s", c.method, c.path, c.body, a.code, a.text, c.code, c.want)
		}
	}
}

// A scale uses the paths of the requested version.
func TestGoConversionOfAScale(t *testing.T) {
	t.Parallel()
	s := newBoxes(t, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Subresources.Scale.SpecReplicasPath = ".spec.size"
	})
	for _, c := range []struct {
		step
		want string
	}{
		{step{method: "POST", path: boxesIn("v1"), body: box("v1", "a", `{"size":3}`)}, `"size":3`},
		{step{method: "GET", path: boxesIn("v1") + "/a/scale"}, `"spec":{"replicas":3}`},
		{step{method: "PATCH", path: boxesIn("v1") + "/a/scale", contentType: merge, body: `{"spec":{"replicas":4}}`}, `"spec":{"replicas":4}`},
		{step{method: "GET", path: boxesIn("v2") + "/a"}, `"width":4`},
	} {
		if a := c.step.do(t, s.Client(), s.URL); a.code/100 != 2 || !strings.Contains(a.text, c.want) {
			t.Errorf("%s %s: %d %s\nwant %s", c.method, c.path, a.code, a.text, c.want)
		}
	}
}

// An object that cannot be converted is not stored, and does not prevent the reading of others.
func TestGoConversionFails(t *testing.T) {
	t.Parallel()
	s := newBoxes(t, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["size"] = apiextensionsv1.JSONSchemaProps{Type: "integer"}
	})
	a := step{method: "POST", path: boxesIn("v1"), body: box("v1", "a", `{"size":66}`)}.do(t, s.Client(), s.URL)
	if a.code/100 != 4 || !strings.Contains(a.text, "66 is not converted") {
		t.Errorf("%d %s", a.code, a.text)
	}
	if a = (step{method: "GET", path: boxesIn("v1") + "/a"}).do(t, s.Client(), s.URL); a.code != http.StatusNotFound {
		t.Errorf("%d %s", a.code, a.text)
	}
}

// When another version becomes the stored one, objects stored in the old version are still readable in all versions.
func TestStoredVersionMoves(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	d := definitionFile(t, "gadgets.yaml")
	h.define(d)
	if a := (step{method: "POST", path: gadgets, body: gadget("a", `,"spec":{"size":3,"code":"ab"}`)}).do(t, h.Client(), h.URL); a.code != http.StatusCreated {
		t.Fatalf("%d %s", a.code, a.text)
	}
	d = d.DeepCopy()
	d.Spec.Versions[0].Storage, d.Spec.Versions[1].Storage = false, true
	h.define(d)
	for path, want := range map[string]string{
		gadgets + "/a": `"spec":{"code":"ab","color":"red","nick":"none","size":3}`,
		older + "/a":   `"spec":{"color":"red","nick":"none","size":3}`,
		gadgets + "?fieldSelector=spec.color%3Dred": `"name":"a"`,
	} {
		if a := (step{method: "GET", path: path}).do(t, h.Client(), h.URL); a.code != http.StatusOK || !strings.Contains(a.text, want) {
			t.Errorf("%s: %d %s", path, a.code, a.text)
		}
	}
	// After the next update the object is stored in the new version.
	if a := (step{method: "PATCH", path: older + "/a", contentType: merge, body: `{"spec":{"size":4}}`}).do(t, h.Client(), h.URL); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.text)
	}
	if a := (step{method: "GET", path: gadgets + "/a"}).do(t, h.Client(), h.URL); !strings.Contains(a.text, `"spec":{"color":"red","nick":"none","size":4}`) {
		t.Errorf("%d %s", a.code, a.text)
	}
}

// The stored version need not be served.
func TestStoredVersionIsNotServed(t *testing.T) {
	t.Parallel()
	d := definitionFile(t, "gadgets.yaml")
	d.Spec.Versions[0].Served = false
	s := serveDefinition(t, d)
	for _, c := range []struct {
		step
		code int
		want string
	}{
		{step{method: "POST", path: older, body: olderGadget("a", `,"spec":{"size":100,"old":"x"}`)}, 201, `"spec":{"color":"red","nick":"none","size":100}`}, // the object as it is stored
		{step{method: "GET", path: older + "/a"}, 200, `"spec":{"color":"red","nick":"none","size":100}`},
		{step{method: "GET", path: gadgets + "/a"}, 404, "404 page not found"},
		{step{method: "GET", path: "/apis/serving.example.com"}, 200, `"versions":[{"groupVersion":"serving.example.com/v1beta1","version":"v1beta1"}]`},
		{step{method: "GET", path: "/apis/serving.example.com/v1beta1"}, 200, `"singularName":"gadget"`},
		{step{method: "GET", path: "/openapi/v3/apis/serving.example.com/v1beta1"}, 200, `com.example.serving.v1beta1.Gadget`},
	} {
		a := c.step.do(t, s.Client(), s.URL)
		if a.code != c.code || !strings.Contains(a.text, c.want) {
			t.Errorf("%s %s: %d %s\nwant %d %s", c.method, c.path, a.code, a.text, c.code, c.want)
		}
	}
}

// An object is validated as it was sent, not as a conversion returns it.
func TestWhatWasSentIsJudged(t *testing.T) {
	t.Parallel()
	s := newBoxes(t, func(d *apiextensionsv1.CustomResourceDefinition) {
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Required = []string{"size"}
		spec.Properties["label"] = apiextensionsv1.JSONSchemaProps{Type: "string"} // which v2 does not have
		spec.XValidations = apiextensionsv1.ValidationRules{{Rule: "!has(self.label) || self.label != 'bad'", Message: "a bad label"}}
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		short := int64(3)
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["phase"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: &short}
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = apiextensionsv1.ValidationRules{
			{Rule: "self.metadata.name == oldSelf.metadata.name && self.metadata.name.startsWith('a')", Message: "a bad name"},
		}
	}, func(d *apiextensionsv1.CustomResourceDefinition) {
		spec := d.Spec.Versions[1].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["box"].Properties["width"] = apiextensionsv1.JSONSchemaProps{Type: "integer", Default: &apiextensionsv1.JSON{Raw: []byte("1")}}
	})
	v1, v2 := boxesIn("v1"), boxesIn("v2")
	latest := func(spec string) string {
		return strings.Replace(box("v1", "a", spec), `"name":"a"`, `"name":"a","resourceVersion":"2","labels":{"converted":"v1"}`, 1)
	}
	const missing, bad = "spec.size: Required value", "a bad label"
	for _, c := range []struct {
		step
		code int
		want string // in the answer
	}{
		{step{method: "POST", path: v1, body: box("v1", "a", `{"size":3}`)}, 201, `"size":3`},
		{step{method: "POST", path: v1, body: box("v1", "b", `{}`)}, 422, missing},
		{step{method: "POST", path: v1, body: box("v1", "b", `{"size":1,"label":"bad"}`)}, 422, bad},
		{step{method: "POST", path: v1, body: box("v1", "b", `{"size":1,"label":"good"}`)}, 201, `"size":1`},
		{step{method: "PUT", path: v1 + "/a", body: latest(`{"copies":2}`)}, 422, missing},
		{step{method: "PUT", path: v1 + "/a", body: latest(`{"size":4,"copies":2,"label":"bad"}`)}, 422, bad},
		{step{method: "PUT", path: v1 + "/a", body: latest(`{"size":4,"copies":2}`)}, 200, `"size":4`},
		{step{method: "PATCH", path: v1 + "/a", contentType: merge, body: `{"spec":{"size":null}}`}, 422, missing},
		{step{method: "PATCH", path: v1 + "/a", contentType: merge, body: `{"spec":{"label":"bad"}}`}, 422, bad},
		{step{method: "PATCH", path: v1 + "/c?fieldManager=one", contentType: apply, body: box("v1", "c", `{}`)}, 422, missing},
		{step{method: "PATCH", path: v1 + "/b", contentType: merge, body: `{"spec":{"copies":2}}`}, 422, "a bad name"},
		{step{method: "PATCH", path: v1 + "/a/status", contentType: merge, body: `{"status":{"copies":"x"},"spec":{"label":"bad"}}`}, 422, "copies in body must be of type integer"},
		{step{method: "PATCH", path: v1 + "/a/status", contentType: merge, body: `{"status":{"phase":"long"}}`}, 422, "status.phase: Too long"},
		{step{method: "PATCH", path: v1 + "/a/status", contentType: merge, body: `{"status":{"copies":3},"spec":{"label":"bad"}}`}, 200, `"status":{"copies":3}`},
		{step{method: "PATCH", path: v1 + "/a/scale", contentType: merge, body: `{"spec":{"replicas":9}}`}, 200, `"spec":{"replicas":9}`},
		{step{method: "GET", path: v2 + "/a"}, 200, `"spec":{"box":{"height":7,"width":4},"copies":9}`},
	} {
		a := c.step.do(t, s.Client(), s.URL)
		if a.code != c.code || !strings.Contains(a.text, c.want) {
			t.Errorf("%s %s %s: %d %s\nwant %d %s", c.method, c.path, c.body, a.code, a.text, c.code, c.want)
		}
	}
}

// An update that changes nothing does not change metadata either. The registry fills in metadata that was not sent.
func TestMetadataOfWhatWasSent(t *testing.T) {
	t.Parallel()
	s := newBoxes(t, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = apiextensionsv1.ValidationRules{{Rule: "self.metadata == oldSelf.metadata", Message: "metadata changed"}}
	})
	path := boxesIn("v1")
	if a := (step{method: "POST", path: path, body: box("v1", "a", `{"size":3}`)}).do(t, s.Client(), s.URL); a.code != http.StatusCreated {
		t.Fatalf("%d %s", a.code, a.text)
	}
	for metadata, code := range map[string]int{
		`"name":"a","resourceVersion":"2","labels":{"converted":"v1"}`:         200,
		`"name":"a","resourceVersion":"2"`:                                     422,
		`"name":"a","resourceVersion":"2","labels":{"converted":"other"}`:      422,
		`"name":"a","resourceVersion":"2","annotations":{"a":"b"},"labels":{}`: 422,
	} {
		body := strings.Replace(box("v1", "a", `{"size":3,"copies":1}`), `"name":"a"`, metadata, 1)
		if a := (step{method: "PUT", path: path + "/a", body: body}).do(t, s.Client(), s.URL); a.code != code {
			t.Errorf("%s: %d %s", metadata, a.code, a.text)
		}
	}
}

// A null in an apply is validated also in a version without a conversion, which prunes the null.
func TestANullThatWasApplied(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	d := definitionFile(t, "gadgets.yaml")
	for i := range d.Spec.Versions {
		spec := d.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"]
		if spec.Properties == nil {
			continue
		}
		spec.Properties["m"] = apiextensionsv1.JSONSchemaProps{
			Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &apiextensionsv1.JSONSchemaProps{Type: "number"}},
		}
		d.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["spec"] = spec
	}
	h.define(d)
	for path, object := range map[string]func(name, rest string) string{gadgets: gadget, older: olderGadget} {
		a := step{method: "PATCH", path: path + "/n?fieldManager=one", contentType: apply, body: object("n", `,"spec":{"size":3,"m":{"a":1,"b":null}}`)}.do(t, h.Client(), h.URL)
		if a.code != http.StatusUnprocessableEntity || !strings.Contains(a.text, `spec.m.b in body must be of type number: \"null\"`) {
			t.Errorf("%s: %d %s", path, a.code, a.text)
		}
	}
	// The result is converted to another version here, because the fields of the manager are of that version.
	a := step{method: "PATCH", path: older + "/o?fieldManager=one", contentType: apply, body: olderGadget("o", `,"spec":{"size":3}`)}.do(t, h.Client(), h.URL)
	if a.code != http.StatusCreated {
		t.Fatal(a.code, a.text)
	}
	a = step{method: "PATCH", path: gadgets + "/o?fieldManager=one", contentType: apply, body: gadget("o", `,"spec":{"size":3,"m":{"b":null}}`)}.do(t, h.Client(), h.URL)
	if a.code != http.StatusUnprocessableEntity || !strings.Contains(a.text, `spec.m.b in body must be of type number: \"null\"`) {
		t.Errorf("in another version than before: %d %s", a.code, a.text)
	}
}
