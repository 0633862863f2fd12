package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/registry"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// TestYAMLDuplicatesAreWarnings: each duplicate key of a YAML body is one warning, with the text of kube-apiserver.
func TestYAMLDuplicatesAreWarnings(t *testing.T) {
	h := newHouse(t, tune{})
	w := h.ask("POST", base, "metadata:\n  name: a\nspec:\n  size: 1\n  size: 2\n  color: x\n  color: z\n  foo: 1\n", "Content-Type: application/yaml")
	want := []string{`299 - "line 5: key \"size\" already set in map"`, `299 - "line 7: key \"color\" already set in map"`, `299 - "unknown field \"spec.foo\""`}
	if got := w.Header()["Warning"]; w.Code != 201 || !slices.Equal(got, want) {
		t.Errorf("%d %s\ngot  %q\nwant %q", w.Code, w.Body, got, want)
	}
}

// TestYAMLOfControlCharacters: after a write, the answer can contain strings that YAML must escape.
func TestYAMLOfControlCharacters(t *testing.T) {
	h := newHouse(t, tune{})
	w := h.ask("POST", base, `{"metadata":{"name":"a"},"spec":{"color":"x\u007f\u0085\ufeff\uffffy"}}`, "Accept: application/yaml")
	if w.Code != 201 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, target := range []string{base + "/a", base} {
		w := h.ask("GET", target, "", "Accept: application/yaml")
		var got struct {
			Spec  WidgetSpec
			Items []Widget
		}
		if err := yaml.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Fatalf("%d %v %s", w.Code, err, w.Body)
		}
		if len(got.Items) > 0 {
			got.Spec = got.Items[0].Spec
		}
		if want := "x\u007f\u0085\ufeff\uffffy"; got.Spec.Color != want {
			t.Errorf("%s: color %q, want %q", target, got.Spec.Color, want)
		}
	}
}

// TestLayoutOfADeepObject: an object that is nested thousands of levels deep is not answered with gigabytes of indentation. A
// program can store such a value in the managedFields of any kind.
func TestLayoutOfADeepObject(t *testing.T) {
	h := newHouse(t, tune{})
	const depth = 9000
	items := make([]string, 20_000)
	for i := range items {
		items[i] = fmt.Sprintf(`"v:%d":{}`, i)
	}
	fields := strings.Repeat(`{"f:f":`, depth) + "{" + strings.Join(items, ",") + "}" + strings.Repeat("}", depth)
	obj := &Widget{}
	obj.Name, obj.ManagedFields = "a", []metav1.ManagedFieldsEntry{{
		Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "example.com/v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}}
	call := &registry.Call{Context: t.Context(), Attributes: authz.Attributes{User: &authn.User{Name: "u"}, Namespace: "default"}}
	if _, err := h.registry.CreateRecord(call, obj, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{base + "/a", base} {
		plain := h.ask("GET", target, "").Body.Len()
		for _, head := range []string{"Accept: application/yaml", "User-Agent: curl/8"} {
			w := h.ask("GET", target, "", head)
			// In a list, such an item is written without indentation.
			if most := plain + 100; w.Code != 200 || w.Body.Len() > most || target != base && w.Body.Len() != plain {
				t.Errorf("%s, %s: %d, %d bytes of %d", target, head, w.Code, w.Body.Len(), plain)
			}
		}
	}
}
