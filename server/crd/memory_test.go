package crd_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestDefinitionsTakeLittle compares the memory of unused definitions with the size of their JSON. Their schemas must not be kept
// decoded, which takes ten times as much. It must not run in parallel with other tests.
func TestDefinitionsTakeLittle(t *testing.T) {
	s := newSite(t, nil)
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	large := func(i int) *apiextensionsv1.CustomResourceDefinition {
		fields := map[string]apiextensionsv1.JSONSchemaProps{}
		for f := range 600 {
			fields[fmt.Sprint("field", f)] = apiextensionsv1.JSONSchemaProps{Type: "string", Description: strings.Repeat("d", 60) + fmt.Sprint(i)}
		}
		return definitionOf(fmt.Sprint("larges", i), fmt.Sprint("Large", i), func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: fields}},
			}
		})
	}
	s.establish(large(0))
	before := heap()
	const count = 15
	size := 0
	for i := 1; i <= count; i++ {
		d := large(i)
		size += len(text(t, d))
		s.establish(d)
	}
	after := heap()
	runtime.KeepAlive(s)
	if grown := int64(after) - int64(before); grown > int64(6*size) {
		t.Errorf("%d definitions of %d KB take %d KB", count, size>>10, grown>>10)
	} else {
		t.Logf("%d definitions of %d KB take %d KB", count, size>>10, grown>>10)
	}
}
