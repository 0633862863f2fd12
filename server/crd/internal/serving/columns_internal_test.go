package serving

import (
	"reflect"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What cells of each type show of each value. The same is compared with kube-apiserver in the answers of TestGadgetsAnswers.
func TestCells(t *testing.T) {
	t.Parallel()
	object := map[string]any{
		"metadata": map[string]any{"name": "a"},
		"v": map[string]any{
			"text": "x", "whole": int64(3), "float": 2.9, "bool": true, "null": nil, "list": []any{int64(1), "b"}, "object": map[string]any{"a": nil},
			"past": time.Now().Add(-90 * time.Minute).UTC().Format(time.RFC3339), "future": time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "empty": "",
		},
	}
	for path, want := range map[string]map[string]any{
		".v.text":    {"string": "x", "integer": nil, "number": nil, "boolean": nil, "date": "<invalid>"},
		".v.whole":   {"string": "3", "integer": int64(3), "number": 3.0, "boolean": nil, "date": nil},
		".v.float":   {"string": "2.9", "integer": int64(2), "number": 2.9, "boolean": nil, "date": nil},
		".v.bool":    {"string": "true", "integer": nil, "number": nil, "boolean": true, "date": nil},
		".v.null":    {"string": "<no value>", "integer": nil, "number": nil, "boolean": nil, "date": nil},
		".v.list":    {"string": `[1,"b"]`, "integer": nil, "number": nil, "boolean": nil, "date": nil},
		".v.list[*]": {"string": "1", "integer": int64(1), "number": 1.0, "boolean": nil, "date": nil},
		".v.list[7]": {"string": nil, "integer": nil, "number": nil, "boolean": nil, "date": nil},
		".v.object":  {"string": `{"a":null}`, "integer": nil, "number": nil, "boolean": nil, "date": nil},
		".v.missing": {"string": nil, "integer": nil, "number": nil, "boolean": nil, "date": nil},
		".v.past":    {"date": "90m"},
		".v.future":  {"date": "<invalid>"},
		".v.empty":   {"string": "", "date": "<unknown>"},
	} {
		for kind, want := range want {
			c := newColumns([]apiextensionsv1.CustomResourceColumnDefinition{{Name: "V", Type: kind, JSONPath: path}})
			got, err := c.Row(t.Context(), &unstructured.Unstructured{Object: object})
			if err != nil || !reflect.DeepEqual(got, []any{"a", want}) {
				t.Errorf("%s as %s: %#v, %v; want %#v", path, kind, got, err, want)
			}
		}
	}
}

func TestColumns(t *testing.T) {
	t.Parallel()
	name := metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"]}
	column := func(name, path string) apiextensionsv1.CustomResourceColumnDefinition {
		return apiextensionsv1.CustomResourceColumnDefinition{Name: name, Type: "string", JSONPath: path}
	}
	shown := func(name, description string) metav1.TableColumnDefinition {
		return metav1.TableColumnDefinition{Name: name, Type: "string", Description: description}
	}
	for text, c := range map[string]struct {
		additional []apiextensionsv1.CustomResourceColumnDefinition
		want       []metav1.TableColumnDefinition
	}{
		"none": {nil, []metav1.TableColumnDefinition{name, {Name: "Age", Type: "date", Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]}}},
		"some": {
			[]apiextensionsv1.CustomResourceColumnDefinition{column("A", ".a"), {Name: "B", Type: "integer", Format: "int32", Description: "b", Priority: 1, JSONPath: ".b"}},
			[]metav1.TableColumnDefinition{name, shown("A", "Custom resource definition column (in JSONPath format): .a"), {Name: "B", Type: "integer", Format: "int32", Description: "b", Priority: 1}},
		},
		"one that does not parse": {
			[]apiextensionsv1.CustomResourceColumnDefinition{column("A", ".a"), column("B", ".b["), column("C", ".c")},
			[]metav1.TableColumnDefinition{name, shown("A", "Custom resource definition column (in JSONPath format): .a")},
		},
		"the first does not parse": {[]apiextensionsv1.CustomResourceColumnDefinition{column("B", ".b[")}, []metav1.TableColumnDefinition{name}},
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			made := newColumns(c.additional)
			if got := made.Columns(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v\nwant %+v", got, c.want)
			}
			cells, err := made.Row(t.Context(), &unstructured.Unstructured{Object: map[string]any{}})
			if err != nil || len(cells) != len(c.want) {
				t.Errorf("a row has %v, %v", cells, err)
			}
		})
	}
}
