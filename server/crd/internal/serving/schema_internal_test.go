package serving

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	celrules "github.com/keelson-dev/keelson/runtime/cel/rules"
	"github.com/prometheus/client_golang/prometheus"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// propsOf reads a schema.
func propsOf(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal([]byte(text), props); err != nil {
		t.Fatal(err)
	}
	return props
}

// defined returns a definition with a version for each schema: v1, v2 and so on, of which the last is stored.
func defined(t testing.TB, schemas ...string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name, d.Spec.Group = "things.example.com", "example.com"
	d.Status.AcceptedNames = apiextensionsv1.CustomResourceDefinitionNames{Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList"}
	d.Spec.Names = d.Status.AcceptedNames
	for i, text := range schemas {
		v := apiextensionsv1.CustomResourceDefinitionVersion{Name: fmt.Sprintf("v%d", i+1), Served: true, Storage: i == len(schemas)-1}
		if text != "" {
			v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: propsOf(t, text)}
		}
		d.Spec.Versions = append(d.Spec.Versions, v)
	}
	return d
}

func libraryOf(t testing.TB) *library {
	t.Helper()
	compiler, err := celrules.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return newLibrary(compiler)
}

func TestObjectSchema(t *testing.T) {
	t.Parallel()
	const text = `{"type":"object","description":"A thing.","properties":{"spec":{"type":"object","description":"Wanted.","properties":{
		"a":{"type":"string","default":"x"},"pod":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}}`
	object := func() map[string]any {
		return map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "odd": "x"}, "more": int64(1),
			"spec": map[string]any{"b": "y", "pod": map[string]any{"kind": "Pod", "metadata": map[string]any{"labels": "x"}}}}
	}
	for _, c := range []struct {
		name         string
		keepsUnknown bool
		text         string
		stored       bool
		want         string // the remaining fields; "" means an error
		unknown      []string
	}{
		{name: "from a request", text: text},
		{name: "from storage", text: text, stored: true, unknown: []string{"metadata.odd", "more", "spec.b"},
			want: `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":1,"name":"a"},"spec":{"a":"x","pod":{"kind":"Pod","metadata":{}}}}`},
		{name: "what is unknown is kept", keepsUnknown: true, text: text, stored: true, unknown: []string{"metadata.odd"},
			want: `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"generation":1,"name":"a"},"more":1,"spec":{"a":"x","b":"y","pod":{"kind":"Pod","metadata":{}}}}`},
		{name: "a schema that is none", keepsUnknown: true, text: `{"type":"object","$ref":"x"}`, unknown: []string{"metadata.odd"},
			want: `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"more":1,"spec":{"b":"y","pod":{"kind":"Pod","metadata":{"labels":"x"}}}}`},
		{name: "no schema", text: `null`, unknown: []string{"metadata.odd", "more", "spec"},
			want: `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := libraryOf(t).schema([]byte(c.text), c.keepsUnknown)
			if err != nil {
				t.Fatal(err)
			}
			got := object()
			unknown, err := s.Conform(got, c.stored, 10)
			_ = s.SetDefaults(got, nil)
			left, _ := json.Marshal(got)
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), "spec.pod.metadata") {
					t.Errorf("%s, %v", left, err)
				}
				return
			}
			if err != nil || string(left) != c.want || !slices.Equal(unknown, c.unknown) {
				t.Errorf("%s, %q, %v\nwant %s, %q", left, unknown, err, c.want, c.unknown)
			}
			if again, err := s.Conform(got, c.stored, 10); err != nil || len(again) > 0 {
				t.Errorf("once more: %q, %v", again, err)
			}
			_ = s.SetDefaults(got, nil)
			if same, _ := json.Marshal(got); string(same) != string(left) {
				t.Errorf("once more: %s", same)
			}
		})
	}
	s, err := libraryOf(t).schema([]byte(text), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.OpenAPI(); got.Description != "A thing." || got.Properties["spec"].Description != "Wanted." {
		t.Errorf("published as %+v", got)
	}
	if got := s.MergeSchema(spec.Schema{}); len(got.Properties["spec"].Properties) != 2 || got.Properties["spec"].Description != "" {
		t.Errorf("merged by %+v", got)
	}
	for text, published := range map[string]bool{`{"type":"object"}`: true, `{"type":"object","properties":{"a":{"type":"array"}}}`: false, `{"type":"object","$ref":"x"}`: false} {
		if s, err = libraryOf(t).schema([]byte(text), true); err != nil || (s.OpenAPI() != nil) != published {
			t.Errorf("%s: published as %v, %v", text, s.OpenAPI(), err)
		}
	}
	if none, err := libraryOf(t).schema([]byte("null"), false); err != nil || none.OpenAPI() != nil || none.MergeSchema(spec.Schema{}) == nil {
		t.Errorf("no schema: %v", err)
	}
}

// A schema is compiled when it is first needed. If that fails, each object gets the error.
func TestSchemaIsCompiledLate(t *testing.T) {
	t.Parallel()
	s, err := libraryOf(t).schema([]byte(`{"type":"object","$ref":"x"}`), false)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Conform(map[string]any{}, true, 0); err == nil || !strings.Contains(err.Error(), "'$ref' is not supported") {
			t.Error(err)
		}
	}
}

// The kept text of a schema is shorter than the schema, which mostly consists of descriptions.
func TestSchemaTextIsSmall(t *testing.T) {
	t.Parallel()
	props := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for i := range 1000 {
		props.Properties[fmt.Sprintf("field%d", i)] = apiextensionsv1.JSONSchemaProps{Type: "string", Description: strings.Repeat("what this field is for ", 20)}
	}
	text, err := json.Marshal(props)
	if err != nil {
		t.Fatal(err)
	}
	s, err := libraryOf(t).schema(text, false)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.text) > len(text)/5 || cap(s.text) > len(s.text)+64 {
		t.Errorf("%d bytes (%d) are kept of %d", len(s.text), cap(s.text), len(text))
	}
	if got, err := s.props(); err != nil || !reflect.DeepEqual(got, props) {
		t.Errorf("it is another one: %v", err)
	}
}

func TestDeprecationWarnings(t *testing.T) {
	t.Parallel()
	own := "use something else"
	version := func(name string, served, deprecated bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: served, Deprecated: deprecated}
	}
	d := defined(t)
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		version("v1alpha1", true, true), version("v1beta1", true, false), version("v1", true, false), version("v2", true, true), version("v3", false, false),
		version("other", true, true),
	}
	for _, c := range []struct{ version, want string }{
		{"v1alpha1", "example.com/v1alpha1 Thing is deprecated; use example.com/v1 Thing"},
		{"v1beta1", ""},
		{"v2", "example.com/v2 Thing is deprecated"},
		{"other", "example.com/other Thing is deprecated; use example.com/v1 Thing"},
	} {
		i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == c.version })
		if got := deprecation(d, d.Spec.Versions[i], newest(d)); got != c.want {
			t.Errorf("%s: %q, want %q", c.version, got, c.want)
		}
	}
	d.Spec.Versions[0].DeprecationWarning = &own
	if got := deprecation(d, d.Spec.Versions[0], newest(d)); got != own {
		t.Errorf("%q", got)
	}
}

// Definitions that only another program can have stored are not served as if they were valid.
func TestGroupRefused(t *testing.T) {
	t.Parallel()
	const plain = `{"type":"object"}`
	for name, c := range map[string]struct {
		want   string
		change func(d *apiextensionsv1.CustomResourceDefinition)
	}{
		"nothing is wrong":  {"", func(*apiextensionsv1.CustomResourceDefinition) {}},
		"nothing is stored": {"no version", func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Versions[1].Storage = false }},
		"rules": {"", func(d *apiextensionsv1.CustomResourceDefinition) {
			d.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations = apiextensionsv1.ValidationRules{{Rule: "true"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := defined(t, plain, plain)
			c.change(d)
			groups, err := New(libraryOf(t).compiler, prometheus.NewRegistry(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			_, err = groups.Of(d)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), d.Name)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// If a conversion fails because the object is invalid, the validation errors are returned. Otherwise the error is that of the
// conversion.
func TestConversionIsExplained(t *testing.T) {
	t.Parallel()
	schemas, err := libraryOf(t).schemasOf(defined(t, `{"type":"object","properties":{"a":{"type":"integer"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	kind := schema.GroupKind{Group: "example.com", Kind: "Thing"}
	versions := map[string]versionRules{}
	for name, s := range schemas {
		versions[name] = versionRules{schema: s}
	}
	convert := explainedOne(kind, func(in *unstructured.Unstructured, _ schema.GroupVersion) (*unstructured.Unstructured, error) {
		switch n := in.Object["a"].(int64); n { // panics at a string
		case 1:
			return nil, fmt.Errorf("one is not converted")
		case 2:
			panic("two")
		}
		in.Object["a"] = "converted"
		return in, nil
	}, &rules{versions: versions})
	call := func(a any) (out *unstructured.Unstructured, text string) {
		defer func() {
			if p := recover(); p != nil {
				text = fmt.Sprint("panic: ", p)
			}
		}()
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "x"}, "a": a}}
		out, err := convert(u, schema.GroupVersion{Group: "example.com", Version: "v2"})
		if err != nil {
			text = err.Error()
		}
		return out, text
	}
	for a, want := range map[any]string{
		int64(1): "one is not converted", int64(2): "panic: two", int64(3): "",
		"text": `Thing.example.com "x" is invalid: a: Invalid value: "string": a in body must be of type integer: "string"`,
	} {
		if out, text := call(a); text != want || (out == nil) != (want != "") {
			t.Errorf("%v: %v, %q; want %q", a, out, text, want)
		}
	}
}
