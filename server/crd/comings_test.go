package crd_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// comings is the number of names in use: request metrics of each name are kept, as in kube-apiserver.
const comings = 5

// comingDefinition returns a definition with a group and names that were used before, and with new fields.
func comingDefinition(i int) *apiextensionsv1.CustomResourceDefinition {
	plural, group := fmt.Sprint("comings", i%comings), fmt.Sprintf("coming%d.example.com", i%comings)
	return definitionOf(plural, fmt.Sprint("Coming", i%comings), func(d *apiextensionsv1.CustomResourceDefinition) {
		d.Name, d.Spec.Group = plural+"."+group, group
		d.Spec.Names.ShortNames = []string{fmt.Sprint("c", i%comings)}
		fields := map[string]apiextensionsv1.JSONSchemaProps{}
		for f := range 100 {
			fields[fmt.Sprint("field", f, "of", i)] = apiextensionsv1.JSONSchemaProps{Type: "string"}
		}
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
				Type: "object", Properties: fields, XValidations: apiextensionsv1.ValidationRules{{Rule: fmt.Sprintf("size(self.field1of%d) < 9", i)}},
			}},
		}
	})
}

// TestComingsAndGoings creates and deletes many definitions, with objects that are written and watched. Afterwards only series of
// metrics with their names are left: no goroutine, no OpenAPI document, no group in discovery, and next to no memory. It must not
// run in parallel with other tests.
func TestComingsAndGoings(t *testing.T) {
	count := 60
	if testing.Short() {
		count = 15
	}
	s := newSite(t, nil)
	next := 0
	comeAndGo := func() {
		d := comingDefinition(next)
		group, plural := d.Spec.Group, d.Spec.Names.Plural
		s.establish(d)
		path := "/apis/" + group + "/v1/namespaces/default/" + plural
		s.want(http.StatusCreated, "POST", path, fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"%s","metadata":{"name":"a"},"spec":{"field1of%d":"x"}}`, group, d.Spec.Names.Kind, next))
		s.want(http.StatusUnprocessableEntity, "POST", path, fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"%s","metadata":{"name":"b"},"spec":{"field1of%d":"too long it is"}}`, group, d.Spec.Names.Kind, next))
		s.want(http.StatusOK, "GET", "/openapi/v3/apis/"+group+"/v1", "")
		watch, err := s.c.Get(s.srv.URL + path + "?watch=true")
		if err != nil {
			t.Fatal(err)
		}
		defer watch.Body.Close()
		s.want(http.StatusOK, "DELETE", crdsPath+"/"+d.Name, "")
		plain := fmt.Sprintf("%s.%s", plural, group)
		eventually(t, func() bool { return s.get(plain) == nil }, func() string { return plain + " is gone" })
		eventually(t, func() bool { return s.do("GET", path, "", nil) == http.StatusNotFound }, func() string { return path + " is not served" })
		next++
	}
	// state describes what is left of the definitions, and returns the number of series.
	state := func() (string, int) {
		var groups, documents, metrics string
		s.do("GET", "/apis", "", &groups)
		s.do("GET", "/openapi/v3", "", &documents)
		s.do("GET", "/metrics", "", &metrics)
		return groups + documents, strings.Count(metrics, "\n")
	}
	heap := func() uint64 {
		var m runtime.MemStats
		for range 3 {
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for range comings {
		comeAndGo()
	}
	was, series := state()
	goroutines, before := runtime.NumGoroutine(), heap()
	for range count {
		comeAndGo()
	}
	eventually(t, func() bool {
		is, n := state()
		return is == was && n <= 2*series // the series depend on the answers and their latency
	}, func() string {
		is, n := state()
		return fmt.Sprintf("%d series, after %d; and %s as before: %s", n, series, is, was)
	})
	eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+5 }, func() string {
		return fmt.Sprintf("%d goroutines are left, and there were %d", runtime.NumGoroutine(), goroutines)
	})
	// The storage and the cache of definitions keep a history: some writes of 8 KB for each definition.
	most := uint64(count) * 100 << 10
	eventually(t, func() bool { return heap() < before+most }, func() string {
		return fmt.Sprintf("the heap has %d KiB, and had %d KiB", heap()>>10, before>>10)
	})
	t.Logf("%d goroutines after %d; %d KiB after %d KiB; %d series", runtime.NumGoroutine(), goroutines, heap()>>10, before>>10, series)
	runtime.KeepAlive(s)
}
