package crd_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// manyRules defines measures with n fields that have a rule each.
func manyRules(n int, rule func(i int) string) *apiextensionsv1.CustomResourceDefinition {
	fields := map[string]apiextensionsv1.JSONSchemaProps{}
	for i := range n {
		fields[fmt.Sprint("p", i)] = apiextensionsv1.JSONSchemaProps{Type: "integer", XValidations: apiextensionsv1.ValidationRules{{Rule: rule(i)}}}
	}
	return definitionOf("measures", "Measure", func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: fields}},
		}
	})
}

// TestRulesAreCompiledOnce checks the cost of a definition with as many rules as may be: its creation costs no more than any other
// request, and neither an update that leaves the schema as it is nor the first object compiles the rules again. It must not run in
// parallel with other tests.
func TestRulesAreCompiledOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		rule func(i int) string
	}{
		{"nested rules", 550, func(i int) string {
			return fmt.Sprintf("[1,2,3].all(x,[1,2].all(y,[1].exists(z,z+x+y<%d)))", i+100)
		}},
		{"short rules", 900, func(i int) string { return fmt.Sprintf("self < %d", i+100) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, nil)
			d := manyRules(c.n, c.rule)
			body := text(t, d)
			created := allocated(func() { s.establish(d) })
			path := "/apis/" + d.Spec.Group + "/v1/namespaces/default/measures"
			made := allocated(func() {
				s.want(http.StatusCreated, "POST", path, `{"apiVersion":"`+d.Spec.Group+`/v1","kind":"Measure","metadata":{"name":"a"},"spec":{"p1":7}}`)
			})
			patched := allocated(func() {
				s.want(http.StatusOK, "PATCH", crdsPath+"/"+d.Name, `{"metadata":{"labels":{"a":"b"}}}`, "Content-Type", merge)
			})
			t.Logf("%d KB: %d MiB to create, %d MiB for the first object, %d MiB to label", len(body)>>10, created>>20, made>>20, patched>>20)
			if created > mostAllocated || made > 16<<20 || patched > 40<<20 {
				t.Error("which is too much")
			}
			if c.name == "short rules" {
				got := s.want(http.StatusUnprocessableEntity, "POST", path, `{"apiVersion":"`+d.Spec.Group+`/v1","kind":"Measure","metadata":{"name":"b"},"spec":{"p3":700000}}`)
				if !strings.Contains(got, "spec.p3: Invalid value: 700000: failed rule: self") {
					t.Error(got)
				}
			}
		})
	}
}
