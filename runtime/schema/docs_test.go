package schema_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/schema"
)

type (
	documented struct {
		Field string `json:"field,omitempty"`
		Other string `json:"other,omitempty"`
	}
	gadgetSpec   struct{ Size int }
	gadgetStatus struct{ Ready bool }
	gadget       = runtime.Resource[gadgetSpec, gadgetStatus]
)

// parse returns the docs of one file of this package.
func parse(t *testing.T, source string) *schema.Docs {
	t.Helper()
	docs, err := schema.ParseDocs(fstest.MapFS{"a.go": {Data: []byte("package schema_test\n" + source)}})
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func TestCommentsBecomeDescriptions(t *testing.T) {
	for what, tc := range map[string]struct{ source, want string }{
		"one line":           {"// Field is it.\n", "Field is it."},
		"a paragraph":        {"// Field is\n// it.\n", "Field is it."},
		"two paragraphs":     {"// One.\n//\n//\n// Two.\n", "One.\n\nTwo."},
		"an indented line":   {"// Like so:\n//\n//\tx = 1\n//\ty = 2\n//\n// Done.\n", "Like so:\n\n\tx = 1\n\ty = 2\n\nDone."},
		"indented at once":   {"// Like so:\n//\tx = 1\n// Done.\n", "Like so:\n\tx = 1\nDone."},
		"markers":            {"// +optional\n// It.\n// +listType=set\n//+kubebuilder:x\n// Still.\n", "It. Still."},
		"markers only":       {"// +optional\n", ""},
		"notes to readers":   {"// It.\n// ---\n// Ask Jo.\n", "It."},
		"a note to do":       {"// It.\n// TODO: more\n// Still.\n", "It. Still."},
		"a block":            {"/*\nField is\nit.\n*/\n", "Field is it."},
		"a directive":        {"//go:fix inline\n// It.\n", "It."},
		"a list":             {"// Either:\n//   - a\n//   - b\n", "Either:\n  - a\n  - b"},
		"nothing":            {"", ""},
		"blank lines around": {"//\n// It.\n//\n", "It."},
	} {
		docs := parse(t, "type documented struct {\n"+tc.source+"Field string\n}\n")
		if diff := cmp.Diff(tc.want, describeWith[documented](t, docs).Properties["field"].Description); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

func describeWith[T any](t *testing.T, docs *schema.Docs) spec.Schema {
	t.Helper()
	b := schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Group: "example.com", Version: "v1"}, Docs: docs})
	name := b.AddType(reflect.TypeFor[T]())
	return b.Definitions()[name]
}

// swaggered describes itself, as the types of Kubernetes do.
type swaggered struct {
	Field string `json:"field,omitempty"`
}

func (swaggered) SwaggerDoc() map[string]string {
	return map[string]string{"": "It.", "field": "Its field."}
}

func TestTypesDescribeThemselves(t *testing.T) {
	got := describeWith[swaggered](t, nil)
	if got.Description != "It." || got.Properties["field"].Description != "Its field." {
		t.Errorf("described as %q, its field as %q", got.Description, got.Properties["field"].Description)
	}
}

func TestCommentsOfDeclarations(t *testing.T) {
	for what, tc := range map[string]struct{ source, typ, field string }{
		"of its own":        {"// It.\ntype documented struct{}", "It.", ""},
		"in a group of one": {"// It.\ntype (\ndocumented struct{}\n)", "It.", ""},
		"in a group":        {"// Them.\ntype (\n// It.\ndocumented struct{}\nother int\n)", "It.", ""},
		"only of a group":   {"// Them.\ntype (\ndocumented struct{}\nother int\n)", "", ""},
		"two fields":        {"type documented struct {\n// Both.\nField, Other string\n}", "", "Both."},
		"end of line":       {"type documented struct { // It.\nField string // Field.\n}", "", "Field."},
	} {
		got := describeWith[documented](t, parse(t, tc.source))
		if got.Description != tc.typ || got.Properties["field"].Description != tc.field {
			t.Errorf("%s: %q and %q, want %q and %q", what, got.Description, got.Properties["field"].Description, tc.typ, tc.field)
		}
	}
}

func TestKindOfGenericTypeIsDescribedByItsAlias(t *testing.T) {
	for what, tc := range map[string]struct{ source, fallback, want string }{
		"named as the kind":    {"// A Gadget.\ntype Gadget = runtime.Resource[gadgetSpec, gadgetStatus]", "", "A Gadget."},
		"named otherwise":      {"// A Thing.\ntype Thing = runtime.Resource[gadgetSpec, gadgetStatus]", "", "A Thing."},
		"named twice":          {"// One.\ntype A = runtime.Resource[gadgetSpec, gadgetStatus]\n// Two.\ntype B = runtime.Resource[gadgetSpec, gadgetStatus]", "none", "none"},
		"of other types":       {"// A Thing.\ntype Thing = runtime.Resource[gadgetSpec, struct{}]", "none", "none"},
		"told by the program":  {"", "Told.", "Told."},
		"comment before told":  {"// A Gadget.\ntype Gadget = runtime.Resource[gadgetSpec, gadgetStatus]", "Told.", "A Gadget."},
		"not described at all": {"", "", ""},
	} {
		b := schema.NewBuilder(schema.Options{})
		name := b.AddKind(schema.Kind{
			GVK:  apischema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"},
			Type: reflect.TypeFor[gadget](), Docs: parse(t, tc.source), Description: tc.fallback,
		})
		if got := b.Definitions()[name].Description; got != tc.want {
			t.Errorf("%s: %q, want %q", what, got, tc.want)
		}
	}
}

func TestDocsOfSeveralSources(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	docs, err := schema.ParseDocs(
		fstest.MapFS{
			"deep/er/a.go":        file("package schema_test\n// First.\ntype documented struct{}"),
			"deep/a_test.go":      file("not Go"),
			"vendor/x/a.go":       file("not Go"),
			"testdata/a.go":       file("not Go"),
			"readme.md":           file("not Go"),
			"deep/other/other.go": file("package other\n// Another package's.\ntype gadgetSpec struct{}"),
		},
		fstest.MapFS{"b.go": file("package schema_test\n// Second.\ntype documented struct{}")},
	)
	if err != nil {
		t.Fatal(err)
	}
	if got := describeWith[documented](t, docs).Description; got != "First." {
		t.Errorf("described as %q, want that of the first source", got)
	}
	if got := describeWith[gadgetSpec](t, docs).Description; got != "" {
		t.Errorf("described as %q, which is another package's type of the name", got)
	}
}

func TestDocsNameTheFileThatIsNotGo(t *testing.T) {
	_, err := schema.ParseDocs(fstest.MapFS{"pkg/bad.go": {Data: []byte("package x\ntype {")}})
	if err == nil || !strings.Contains(err.Error(), "pkg/bad.go") {
		t.Errorf("error %v does not name the file", err)
	}
}

func TestMarkersOfFields(t *testing.T) {
	docs := parse(t, `type documented struct {
		// +required
		// +nullable
		// +default="red"
		Field string
		// +patchStrategy=replace
		// +patchMergeKey=key
		// +default={broken
		Other string
	}`)
	got := describeWith[documented](t, docs)
	field, other := got.Properties["field"], got.Properties["other"]
	if diff := cmp.Diff([]string{"field"}, got.Required); diff != "" {
		t.Errorf("required (-want +got):\n%s", diff)
	}
	if !field.Nullable || field.Default != "red" {
		t.Errorf("field: nullable %v, default %v", field.Nullable, field.Default)
	}
	want := spec.Extensions{"x-kubernetes-patch-strategy": "replace", "x-kubernetes-patch-merge-key": "key"}
	if diff := cmp.Diff(want, other.Extensions); diff != "" || other.Default != nil {
		t.Errorf("other: default %v, extensions (-want +got):\n%s", other.Default, diff)
	}
}
