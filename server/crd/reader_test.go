package crd_test

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// withDefault gives the objects of a definition a field grade with a default.
func withDefault(grade string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(d *apiextensionsv1.CustomResourceDefinition) {
		preserve := true
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{
			Type: "object", XPreserveUnknownFields: &preserve,
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"grade": {Type: "string", Default: &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", grade)}},
			},
		}
	}
}

// TestReaderWhileTheDefinitionChanges checks that a reader of a definition's objects never gets an error or an empty list while
// the schema changes, and finally sees each schema.
func TestReaderWhileTheDefinitionChanges(t *testing.T) {
	t.Parallel()
	const objects, changes = 3, 6
	s := newSite(t, nil)
	s.establish(definitionOf("boats", "Boat"))
	for i := range objects {
		s.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/boats", object("Boat", fmt.Sprint("b", i)))
	}
	r := s.srv.Readers().Reader(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"})
	grades := func() (string, error) {
		l, err := r.List(t.Context(), runtime.Query{})
		if err != nil || len(l.Items) != objects {
			return "", fmt.Errorf("a list has %d objects, %v", len(l.Items), err)
		}
		all := ""
		for _, obj := range l.Items {
			all += gradeOf(obj) + " "
		}
		return all, nil
	}
	if _, err := grades(); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	var reading sync.WaitGroup
	defer reading.Wait()
	defer over.Store(true)
	reading.Go(func() {
		for !over.Load() && !t.Failed() {
			if _, err := grades(); err != nil {
				t.Error(err)
			}
			if _, err := r.Get(t.Context(), "default", "b1", runtime.Freshness{}); err != nil {
				t.Errorf("Get: %v", err)
			}
			if r.Changed().Revision == 0 {
				t.Error("Changed is 0")
			}
		}
	})
	for i := range changes {
		d := s.get("boats.example.com")
		withDefault(fmt.Sprint("g", i))(d)
		s.want(http.StatusOK, "PUT", crdsPath+"/"+d.Name, text(t, d))
		want := fmt.Sprintf("g%d g%d g%d ", i, i, i)
		eventually(t, func() bool {
			got, err := grades()
			return err == nil && got == want
		}, func() string { return "the schema " + want + "is shown" })
	}
}

// TestIndexWhileTheDefinitionChanges checks that an index of the objects finally has the last schema, even if a definition is
// changed again before its change is served, so that nothing is written between the two schemas.
func TestIndexWhileTheDefinitionChanges(t *testing.T) {
	t.Parallel()
	const objects, rounds, changes = 3, 30, 3
	s := newSite(t, nil)
	s.establish(definitionOf("boats", "Boat"))
	for i := range objects {
		s.want(http.StatusCreated, "POST", "/apis/example.com/v1/namespaces/default/boats", object("Boat", fmt.Sprint("b", i)))
	}
	r := s.srv.Readers().Reader(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"})
	index, changed, since := map[string]string{}, runtime.LastChange{}, int64(0)
	update := func() {
		now := r.Changed()
		if now == changed && now.Revision != 0 {
			return
		}
		c, err := r.Changes(t.Context(), since, runtime.Freshness{})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range c.All {
			index[one.Name] = gradeOf(one.Object)
		}
		changed, since = now, c.Revision
	}
	for round := range rounds {
		last := ""
		for i := range changes {
			last = fmt.Sprint("g", round, "-", i)
			d := s.get("boats.example.com")
			withDefault(last)(d)
			s.want(http.StatusOK, "PUT", crdsPath+"/"+d.Name, text(t, d))
			update()
		}
		eventually(t, func() bool {
			update()
			l, err := r.List(t.Context(), runtime.Query{})
			return err == nil && len(l.Items) == objects && gradeOf(l.Items[0]) == last
		}, func() string { return "the schema with " + last + " is shown" })
		update()
		for i := range objects {
			if grade := index[fmt.Sprint("b", i)]; grade != last {
				t.Errorf("the index has b%d with the grade %q, want %q", i, grade, last)
			}
		}
	}
}

// gradeOf returns the value of the field of withDefault.
func gradeOf(obj runtime.Object) string {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Sprintf("a %T", obj)
	}
	grade, _, _ := unstructured.NestedString(u.Object, "grade")
	return grade
}
