package crd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// manyEnums defines choices with n fields that have an enum of m values each.
func manyEnums(n, m int) *apiextensionsv1.CustomResourceDefinition {
	var values []apiextensionsv1.JSON
	for i := range m {
		values = append(values, apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `"v%d"`, i)})
	}
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for i := range n {
		fields[fmt.Sprint("p", i)] = apiextensionsv1.JSONSchemaProps{Type: "string", Enum: values}
	}
	return definitionOf("choices", "Choice", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: fields}},
		}
	})
}

// TestDocumentsOfLargeDefinitions checks what the first request for a document costs. It must not run in parallel with other tests.
func TestDocumentsOfLargeDefinitions(t *testing.T) {
	s := newSite(t, nil)
	s.want(http.StatusOK, "GET", "/openapi/v2", "") // the documents of the other kinds
	s.establish(manyRules(900, func(i int) string { return fmt.Sprintf("self < %d", i+100) }))
	s.establish(manyEnums(400, 300))
	for _, path := range []string{"/openapi/v3/apis/example.com/v1", "/openapi/v2"} {
		var doc string
		used := allocated(func() { doc = s.want(http.StatusOK, "GET", path, "") })
		t.Logf("%s of %d KB: %d MiB", path, len(doc)>>10, used>>20)
		if used > mostAllocated+16<<20 { // the cache of the definitions and the race detector allocate meanwhile
			t.Errorf("%s: %d MiB are allocated", path, used>>20)
		}
		if !json.Valid([]byte(doc)) {
			t.Errorf("%s is no JSON", path)
		}
	}
}

// TestDocumentsOfManyDefinitions checks that each of many small definitions costs little in the document of OpenAPI v2. It must not
// run in parallel with other tests.
func TestDocumentsOfManyDefinitions(t *testing.T) {
	s := newSite(t, nil)
	s.want(http.StatusOK, "GET", "/openapi/v2", "")
	const count, each = 50, 7 << 19 // 3.5 MiB
	for i := range count {
		s.establish(definitionOf(fmt.Sprintf("smalls%d", i), fmt.Sprintf("Small%d", i), func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Group = fmt.Sprintf("g%d.example.com", i)
			d.Name = d.Spec.Names.Plural + "." + d.Spec.Group
		}))
	}
	used := allocated(func() { s.want(http.StatusOK, "GET", "/openapi/v2", "") })
	if t.Logf("%d MiB", used>>20); used > count*each {
		t.Errorf("%d KiB for each definition", used>>10/count)
	}
}

// TestLabelsOfLargeDefinitions checks what a label costs for a definition as large as may be. Each part of the update visits every
// field, which is a struct of 700 bytes. What follows in the background is measured too. It must not run in parallel with other
// tests.
func TestLabelsOfLargeDefinitions(t *testing.T) {
	for _, c := range []struct{ fields, values, most int }{
		{400, 300, 220},
		{12000, 5, 500}, // twice as many fields as the largest known definition has
	} {
		s := newSite(t, nil)
		d := manyEnums(c.fields, c.values)
		s.establish(d)
		used := allocated(func() {
			s.want(http.StatusOK, "PATCH", crdsPath+"/"+d.Name, `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", merge)
		})
		t.Logf("%d fields, %d KB: %d MiB", c.fields, len(text(t, d))>>10, used>>20)
		if used > uint64(c.most)<<20 {
			t.Errorf("more than %d MiB", c.most)
		}
	}
}
