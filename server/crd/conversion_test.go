package crd_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/crd"
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
			if size.(int64) == 66 { // panics at what is no integer
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
	group, err := crd.GroupOf(d, convertBox)
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

// The program's function converts, and each version is judged by its own schema and has subresources of its own.
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
		{step{method: "PATCH", path: boxesIn("v1") + "/b", contentType: merge, body: `{"spec":{"copies":2}}`}, 200, `"size":20`},        // which is too large, and stays
		{step{method: "PATCH", path: boxesIn("v1") + "/b", contentType: merge, body: `{"spec":{"size":21}}`}, 422, `spec.size in body`}, // in the words of v1
		{step{method: "PATCH", path: boxesIn("v2") + "/b", contentType: merge, body: `{"spec":{"box":{"width":"x"}}}`}, 422, `spec.box.width in body must be of type integer`},
		{step{method: "POST", path: boxesIn("v1"), body: box("v1", "c", `{"size":11}`)}, 422, `spec.size in body should be less than or equal to 10`},
		{step{method: "POST", path: boxesIn("v1"), body: box("v1", "c", `{"size":"text"}`)}, 422, `Box.serving.example.com \"c\" is invalid: spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"`},
		{step{method: "POST", path: boxesIn("v1"), body: box("v1", "c", `"text"`)}, 422, `spec in body must be of type object`},
		{step{method: "GET", path: boxesIn("v1") + "?fieldSelector=spec.size%3D3"}, 400, `field label not supported: spec.size`}, // it is not where the field is stored
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

// A scale that is elsewhere in what is stored is not served, instead of something else.
func TestGoConversionWithoutScale(t *testing.T) {
	t.Parallel()
	s := newBoxes(t, func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Subresources.Scale.SpecReplicasPath = ".spec.size"
	})
	if a := (step{method: "POST", path: boxesIn("v1"), body: box("v1", "a", `{"size":3}`)}).do(t, s.Client(), s.URL); a.code != http.StatusCreated {
		t.Fatalf("%d %s", a.code, a.text)
	}
	if a := (step{method: "GET", path: boxesIn("v1") + "/a/scale"}).do(t, s.Client(), s.URL); a.code != http.StatusNotFound {
		t.Errorf("%d %s", a.code, a.text)
	}
}

// An object that cannot be converted is not taken, and does not keep others from being read.
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

// What is stored in one version is read in all when another becomes the one that is stored.
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
	// From the next update on it is what the stored version has.
	if a := (step{method: "PATCH", path: older + "/a", contentType: merge, body: `{"spec":{"size":4}}`}).do(t, h.Client(), h.URL); a.code != http.StatusOK {
		t.Fatalf("%d %s", a.code, a.text)
	}
	if a := (step{method: "GET", path: gadgets + "/a"}).do(t, h.Client(), h.URL); !strings.Contains(a.text, `"spec":{"color":"red","nick":"none","size":4}`) {
		t.Errorf("%d %s", a.code, a.text)
	}
}

// A version may be stored and not served.
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
		{step{method: "POST", path: older, body: olderGadget("a", `,"spec":{"size":100,"old":"x"}`)}, 201, `"spec":{"color":"red","nick":"none","size":100}`}, // as it is stored
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
