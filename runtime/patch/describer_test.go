package patch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/patch"
	apischema "github.com/keelson-dev/keelson/runtime/schema"
	"github.com/keelson-dev/keelson/runtime/structural"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/yaml"
)

// The definition of a custom resource, and what kube-apiserver publishes for it.
const (
	gadgetDefinition = "../../server/openapi/testdata/crds/definitions.yaml"
	gadgetDocument   = "../../server/openapi/testdata/crds/v1.json"
)

var crdGadgetKind = schema.GroupVersionKind{Group: "shapes.example.com", Version: "v1", Kind: "Gadget"}

// objectSchema is the schema of a kind without a Go type.
type objectSchema struct{ *structural.Schema }

var (
	_ runtime.ObjectSchema = objectSchema{}
	_ apischema.Describer  = objectSchema{}
)

func (o objectSchema) Conform(object map[string]any, stored bool, report int) ([]string, error) {
	return o.Schema.Conform(object, structural.ConformOptions{Report: report, DropInvalidMetadata: stored})
}
func (o objectSchema) SetDefaults(object map[string]any, grows func(int) error) error {
	return o.Schema.SetDefaultsWithin(object, grows)
}
func (o objectSchema) OpenAPI() *spec.Schema { panic("objects are merged by another schema") }

// gadgets returns a scheme with the custom resource.
func gadgets(t testing.TB) *runtime.Scheme {
	t.Helper()
	text, err := os.ReadFile(gadgetDefinition)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ = bytes.Cut(text, []byte("\n---\n"))
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, crd); err != nil {
		t.Fatal(err)
	}
	compiled, err := structural.Compile(crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	s := runtime.NewScheme()
	if err := runtime.Register(s, crdGadgetKind, runtime.KindOptions[*unstructured.Unstructured]{Schema: objectSchema{compiled}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// theirGadgets returns the models that apimachinery makes from what kube-apiserver publishes.
func theirGadgets(t testing.TB) managedfields.TypeConverter {
	t.Helper()
	text, err := os.ReadFile(gadgetDocument)
	if err != nil {
		t.Fatal(err)
	}
	var document struct{ Definitions map[string]*spec.Schema }
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	b := apischema.NewBuilder(apischema.Options{})
	b.AddType(reflect.TypeFor[metav1.ObjectMeta]())
	b.AddType(reflect.TypeFor[metav1.ListMeta]())
	for name, definition := range b.Definitions() {
		document.Definitions[name] = &definition
	}
	converter, err := managedfields.NewTypeConverter(document.Definitions, false)
	if err != nil {
		t.Fatal(err)
	}
	return converter
}

func gadget(t testing.TB, spec string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: configuration(t,
		`{"apiVersion":"shapes.example.com/v1","kind":"Gadget","metadata":{"name":"a","finalizers":["x/a"]},"spec":`+spec+`}`)}
}

// TestModelsOfDescribers checks that objects of a kind with a schema merge like those of a custom resource in kube-apiserver.
func TestModelsOfDescribers(t *testing.T) {
	ours, theirs := patch.NewModels(gadgets(t)), theirGadgets(t)
	specs := []string{
		`{}`, `null`, `{"color":"red","size":2,"replicas":1,"ratio":1.5,"flag":true}`,
		`{"tags":["a","b"]}`, `{"tags":["b","c"]}`, `{"tags":["a","a"]}`, `{"tags":"a"}`, `{"tags":null}`,
		`{"parts":[{"name":"a","protocol":"TCP","count":1},{"name":"b","protocol":"UDP"}]}`,
		`{"parts":[{"name":"a","count":2}]}`, `{"parts":[{"count":2}]}`, `{"parts":[{"name":"a"},{"name":"a"}]}`, `{"parts":[null]}`,
		`{"whole":{"a":"1"}}`, `{"whole":{"b":"2"}}`, `{"any":{"a":1}}`, `{"any":{"a":{"b":[1]}}}`, `{"any":{"a":{"c":1}}}`,
		`{"none":{}}`, `{"none":{"a":1}}`, `{"maybeValues":{"x":null,"y":"a"}}`, `{"maybe":null,"maybeObject":null,"maybeList":null}`,
		`{"maybe":"a","maybeObject":{"a":"b"},"maybeList":["a"]}`,
		`{"port":1,"pattern":"a","limited":"b","other":3}`, `{"port":"x","pattern":1,"limited":2,"other":"y"}`, `{"port":{"a":1}}`, `{"port":[1]}`,
		`{"nested":[[{"deep":"a"}],[{"deep":null}]]}`, `{"nested":[[{"deep":"b"}]]}`, `{"nested":[[{"what":"b"}]]}`,
		`{"choice":{"a":"x"}}`, `{"choice":{"b":"x"}}`, `{"choice":{"c":"x"}}`,
		`{"free":{"known":"a","x":{"y":[1,2]}}}`, `{"free":{"x":{"z":1}}}`, `{"freeAny":{"a":[1]}}`, `{"freeAny":[1]}`, `{"freeAny":"a"}`, `{"freeList":["a"]}`,
		`{"embedded":{"apiVersion":"v1","kind":"X","metadata":{"finalizers":["x/a"],"labels":{"a":"b"}},"data":{"a":1}}}`,
		`{"embedded":{"apiVersion":"v1","kind":"X","metadata":{"finalizers":["x/b"],"labels":{"c":"d"}},"data":{"b":1}}}`,
		`{"embedded":{"metadata":{"unknown":1}}}`, `{"embedded":{"metadata":{"labels":{"a":1}}}}`,
		`{"embeddedKnown":{"apiVersion":"v1","kind":"Pod","metadata":{"ownerReferences":[{"uid":"1","name":"a","kind":"K","apiVersion":"v1"}]},"spec":{"x":"y"}}}`,
		`{"embeddedKnown":{"metadata":{"ownerReferences":[{"uid":"2"}]},"spec":{"x":"z"}}}`, `{"embeddedKnown":{"other":1}}`,
		`{"embeddedMaybe":{"spec":{"a":1}}}`, `{"embeddedMaybe":{"spec":{"b":1}}}`,
		`{"embeddedList":[{"kind":"A","x":1},{"kind":"B","metadata":{"name":"b"}}]}`, `{"defaulted":{"b":{"c":["y"]}}}`, `{"defaulted":{"a":2}}`,
		`{"ruled":{"min":1}}`, `{"ruled":{"max":1}}`, `{"unknown":1}`, `{"when":"2020-01-01T00:00:00Z","odd":"x","secret":"y"}`, `[1]`, `"a"`,
	}
	accepted, pairs := 0, 0
	for _, a := range specs {
		left := compared(t, "object "+a, ours, theirs, gadget(t, a))
		if left == nil {
			continue
		}
		accepted++
		for _, b := range specs {
			right := compared(t, "object "+b, ours, theirs, gadget(t, b))
			if right == nil {
				continue
			}
			var merged [2]string
			for i := range merged {
				m, err := left[i].Merge(right[i])
				if err != nil {
					merged[i] = err.Error()
					continue
				}
				difference, err := left[i].Compare(right[i])
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(m.AsValue().Unstructured())
				if err != nil {
					t.Fatal(err)
				}
				merged[i] = string(text) + "\n" + difference.String()
			}
			pairs++
			if diff := cmp.Diff(merged[1], merged[0]); diff != "" {
				t.Errorf("%s and %s (-theirs +ours):\n%s", a, b, diff)
			}
		}
	}
	if accepted < 35 || accepted == len(specs) {
		t.Errorf("%d of %d objects fit, %d pairs", accepted, len(specs), pairs)
	}
}

// compared returns an object as typed values of both models, nil if it fits neither.
func compared(t *testing.T, what string, ours, theirs managedfields.TypeConverter, obj *unstructured.Unstructured) []*typed.TypedValue {
	t.Helper()
	our, err := ours.ObjectToTyped(obj)
	their, theirErr := theirs.ObjectToTyped(obj)
	if (err == nil) != (theirErr == nil) {
		t.Fatalf("%s: %v, theirs %v", what, err, theirErr)
	}
	if err != nil {
		if err.Error() != theirErr.Error() {
			t.Errorf("%s: %v, theirs %v", what, err, theirErr)
		}
		return nil
	}
	mine, err := our.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	other, err := their.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	if !mine.Equals(other) {
		t.Errorf("%s: fields %s, theirs %s", what, mine, other)
	}
	return []*typed.TypedValue{our, their}
}

// TestApplyDescribed checks that server-side apply merges lists and maps by the schema, and finds the conflicts.
func TestApplyDescribed(t *testing.T) {
	f := fieldManager(t, patch.FieldManagerOptions{Scheme: gadgets(t), Kind: crdGadgetKind})
	config := func(text string) map[string]any { return gadget(t, text).Object }
	live, err := f.Apply(nil, config(`{"tags":["a"],"parts":[{"name":"a","count":1}],"whole":{"a":"1"},"free":{"x":{"a":1}},"embedded":{"kind":"X","apiVersion":"v1","metadata":{"finalizers":["x/a"]}}}`), "one", false)
	if err != nil {
		t.Fatal(err)
	}
	live, err = f.Apply(live, config(`{"tags":["b"],"parts":[{"name":"b","count":2},{"name":"a","protocol":"UDP"}],"free":{"x":{"b":1}},"embedded":{"metadata":{"finalizers":["x/b"]}}}`), "two", false)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(live.(*unstructured.Unstructured).Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"color":"red","defaulted":{"a":1,"b":{"c":["x"]}},` + // these and others below are defaults
		`"embedded":{"apiVersion":"v1","kind":"X","metadata":{"finalizers":["x/a","x/b"]}},"flag":false,"free":{"x":{"a":1,"b":1}},` +
		`"parts":[{"count":1,"name":"a","protocol":"TCP"},{"count":2,"name":"b","protocol":"TCP"},{"name":"a","protocol":"UDP"}],` +
		`"ratio":1.5,"replicas":1,"tags":["a","b"],"whole":{"a":"1"}}`
	if string(text) != want {
		t.Errorf("spec %s\nwant %s", text, want)
	}
	for name, c := range map[string]struct{ spec, path string }{
		"a map as a whole":       {`{"whole":{"b":"2"}}`, ".spec.whole"},
		"an element's field":     {`{"parts":[{"name":"a","count":2}]}`, `.spec.parts[name="a",protocol="TCP"].count`},
		"what is not in a field": {`{"free":{"x":{"a":2}}}`, ".spec.free.x.a"},
	} {
		_, err := f.Apply(live, config(c.spec), "two", false)
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), c.path) {
			t.Errorf("%s: %v, want a conflict at %s", name, err, c.path)
		}
	}
	var bad *patch.Error
	if _, err := f.Apply(live, config(`{"unknown":1}`), "two", false); !errors.As(err, &bad) || !strings.Contains(err.Error(), "field not declared in schema") {
		t.Errorf("an unknown field: %v", err)
	}
}
