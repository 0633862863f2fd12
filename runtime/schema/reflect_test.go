package schema_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime/schema"
)

// describe returns the definition of T as JSON.
func describe[T any](t *testing.T) string {
	t.Helper()
	body, err := json.Marshal(definition[T](t))
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func definition[T any](t *testing.T) spec.Schema {
	t.Helper()
	b := schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Group: "example.com", Version: "v1"}})
	name := b.AddType(reflect.TypeFor[T]())
	s, ok := b.Definitions()[name]
	if !ok {
		t.Fatalf("%s is not defined", name)
	}
	return s
}

func TestGoTypesBecomeSchemas(t *testing.T) {
	type holder[T any] struct {
		V T `json:"v,omitempty"`
	}
	for what, check := range map[string]struct{ got, want string }{
		"bool":             {describe[holder[bool]](t), `{"type":"boolean"}`},
		"int":              {describe[holder[int]](t), `{"type":"integer","format":"int64"}`},
		"int8":             {describe[holder[int8]](t), `{"type":"integer","format":"int32"}`},
		"uint16":           {describe[holder[uint16]](t), `{"type":"integer","format":"int32"}`},
		"uint32":           {describe[holder[uint32]](t), `{"type":"integer","format":"int64"}`},
		"float32":          {describe[holder[float32]](t), `{"type":"number","format":"float"}`},
		"json.Number":      {describe[holder[json.Number]](t), `{"type":"number"}`},
		"pointer":          {describe[holder[**string]](t), `{"type":"string"}`},
		"list of bytes":    {describe[holder[[][]byte]](t), `{"type":"array","items":{"type":"string","format":"byte"}}`},
		"map of lists":     {describe[holder[map[string][]int32]](t), `{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer","format":"int32"}}}`},
		"anonymous struct": {describe[holder[*struct{ A bool }]](t), `{"type":"object","required":["A"],"properties":{"A":{"type":"boolean","default":false}}}`},
		"any":              {describe[holder[any]](t), `{"x-kubernetes-preserve-unknown-fields":true}`},
		"channel":          {describe[holder[chan int]](t), `{"x-kubernetes-preserve-unknown-fields":true}`},
		"map of itself":    {describe[holder[tree]](t), `{"type":"object","additionalProperties":{"x-kubernetes-preserve-unknown-fields":true}}`},
		"any object":       {describe[holder[unstructured.Unstructured]](t), `{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.unstructured.Unstructured"}]}`},
		"says itself":      {describe[holder[celsius]](t), `{"type":"number","format":"double"}`},
		"says anything":    {describe[holder[loose]](t), `{"x-kubernetes-preserve-unknown-fields":true}`},
	} {
		want := `{"type":"object","properties":{"v":` + check.want + `}}`
		if what == "any object" { // a bare reference needs no allOf
			want = `{"type":"object","properties":{"v":{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.unstructured.Unstructured"}}}`
		}
		if diff := cmp.Diff(want, check.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

type tree map[string]tree

// celsius defines its own OpenAPI type.
type celsius float64

func (celsius) OpenAPISchemaType() []string  { return []string{"number"} }
func (celsius) OpenAPISchemaFormat() string  { return "double" }
func (celsius) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

type loose int

func (loose) OpenAPISchemaType() []string { return nil }

// The properties of a struct are the keys that encoding/json writes, with every kind of embedding.
func TestPropertiesAreWhatJSONWrites(t *testing.T) {
	checkKeys[plain](t)
	checkKeys[shadowing](t)
	checkKeys[ambiguous](t)
	checkKeys[taggedWins](t)
	checkKeys[namedEmbedding](t)
	checkKeys[SelfEmbedding](t)
	checkKeys[embeddedWord](t)
	checkKeys[metav1.ObjectMeta](t, "name", "namespace", "generateName", "selfLink", "uid", "resourceVersion", "generation",
		"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations", "ownerReferences",
		"finalizers", "managedFields")
}

func checkKeys[T any](t *testing.T, want ...string) {
	t.Helper()
	if want == nil {
		body, err := json.Marshal(new(T))
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]any{}
		if err := json.Unmarshal(body, &keys); err != nil {
			t.Fatal(err)
		}
		want = slices.Collect(maps.Keys(keys))
	}
	slices.Sort(want)
	got := slices.Sorted(maps.Keys(definition[T](t).Properties))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v (-json +schema):\n%s", reflect.TypeFor[T](), diff)
	}
}

type plain struct {
	A int
	B int `json:"b"`
	C int `json:"-"`
	E int `json:",string"`
}

type shadowing struct {
	plain
	A string
	X string `json:"b"`
}

type left struct{ Same, Left int }
type right struct{ Same, Right int }
type ambiguous struct {
	left
	right
}

type taggedLeft struct {
	Other int `json:"Same"`
}
type taggedWins struct {
	taggedLeft
	right
}

type namedEmbedding struct {
	left  `json:"left"`
	Right right `json:",inline"`
}

// SelfEmbedding embeds itself through a pointer.
type SelfEmbedding struct {
	*SelfEmbedding
	Z int
}

// Word is embedded without being a struct.
type Word string

type embeddedWord struct {
	Word
	N int
}

func TestRequiredFields(t *testing.T) {
	type fields struct {
		Plain   string            `json:"plain"`
		Empty   string            `json:"empty,omitempty"`
		Zero    int               `json:"zero,omitzero"`
		Pointer *string           `json:"pointer"`
		List    []string          `json:"list"`
		Map     map[string]string `json:"map,omitempty"`
	}
	got := definition[fields](t)
	if diff := cmp.Diff([]string{"plain", "list"}, got.Required); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
	for property, want := range map[string]any{"plain": "", "empty": nil, "zero": nil, "pointer": nil, "list": nil} {
		if got := got.Properties[property].Default; got != want {
			t.Errorf("default of %s is %#v, want %#v", property, got, want)
		}
	}
}

// The name and the text of an embedded type are not those of the type that embeds it.
func TestEmbeddingTakesNoNameAndNoText(t *testing.T) {
	type meta struct {
		metav1.ObjectMeta `json:",inline"`
		Own               int
	}
	type pointer struct {
		*metav1.Condition `json:",inline"`
		Own               int
	}
	b := schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Group: "example.com", Version: "v1"}})
	for want, typ := range map[string]reflect.Type{
		"com.example.v1.meta": reflect.TypeFor[meta](), "com.example.v1.pointer": reflect.TypeFor[pointer](),
	} {
		if got := b.AddType(typ); got != want {
			t.Errorf("%v is named %s, want %s", typ, got, want)
		}
		if got := b.Definitions()[want].Description; got != "" {
			t.Errorf("%v is described as %q", typ, got)
		}
	}
	if got := b.Definitions()["com.example.v1.meta"].Properties["name"].Description; got == "" {
		t.Error("an embedded field has lost its description")
	}
}

func TestV2LeavesOutWhatItDoesNotKnow(t *testing.T) {
	str := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}}
	boolean := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"boolean"}}}
	in := spec.Schema{SchemaProps: spec.SchemaProps{
		Type: spec.StringOrArray{"object"}, Nullable: true,
		Properties: map[string]spec.Schema{
			"either": {SchemaProps: spec.SchemaProps{OneOf: []spec.Schema{boolean, str}}},
			"flag":   {SchemaProps: spec.SchemaProps{AnyOf: []spec.Schema{boolean}, Not: &str, Nullable: true}},
		},
		AllOf: []spec.Schema{{SchemaProps: spec.SchemaProps{Nullable: true}}, boolean},
	}}
	before, _ := json.Marshal(in)
	got, err := json.Marshal(schema.V2(map[string]spec.Schema{"x": in})["x"])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object","allOf":[{},{"type":"boolean"}],"properties":{"either":{"type":"string"},"flag":{}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if after, _ := json.Marshal(in); string(before) != string(after) {
		t.Error("the schema given was changed")
	}
}
