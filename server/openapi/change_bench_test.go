package openapi_test

import (
	"fmt"
	"slices"
	"testing"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/keelson-dev/keelson/server/openapi"
)

// crowd are custom resources, each in a group of its own.
func crowd(t testing.TB, groups int) []openapi.GroupVersion {
	t.Helper()
	var like openapi.Resource
	for _, gv := range crdGroups(t) {
		if gv.Version == "v1" {
			like = gv.Resources[0]
		}
	}
	var out []openapi.GroupVersion
	for g := range groups {
		gv := apischema.GroupVersion{Group: fmt.Sprintf("g%d.example.com", g), Version: "v1"}
		r := like
		r.Kind = gv.WithKind("Gadget")
		r.Subresources = slices.Clone(like.Subresources)
		for i := range r.Subresources {
			if r.Subresources[i].Kind == like.Kind {
				r.Subresources[i].Kind = r.Kind
			}
		}
		out = append(out, openapi.GroupVersion{Group: gv.Group, Version: gv.Version, Resources: []openapi.Resource{r}})
	}
	return out
}

// Measures a change of one of 500 custom resources, alone and with the documents that clients request afterwards. Of the
// unchanged documents nothing is made again, except the list and the OpenAPI v2 document, which is joined again.
func BenchmarkChangeOneOf500(b *testing.B) {
	groups, s := crowd(b, 500), openapi.New(openapi.Options{})
	s.Set(groups)
	for _, path := range []string{"", "/openapi/v3", "/openapi/v3/apis/g7.example.com/v1", "/openapi/v2"} {
		b.Run("then"+path, func(b *testing.B) {
			if path != "" {
				get(b, s, path)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				r := groups[7].Resources[0]
				r.SelectableFields = []string{fmt.Sprintf("spec.f%d", i)}
				now := append([]openapi.GroupVersion{}, groups...)
				now[7].Resources = []openapi.Resource{r}
				s.Set(now)
				if path != "" {
					get(b, s, path, "Accept-Encoding", "gzip")
				}
			}
		})
	}
}
