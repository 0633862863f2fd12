package serving

import (
	"fmt"
	"reflect"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The cells of each type for each value. TestGadgetsAnswers compares the same with kube-apiserver.
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
			c := newColumns([]apiextensionsv1.CustomResourceColumnDefinition{{Name: "V", Type: kind, JSONPath: path}}, RowLimits{})
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
			made := newColumns(c.additional, RowLimits{})
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

// wideObject returns an object with many values, some hundred kilobytes long.
func wideObject(n int) *unstructured.Unstructured {
	list := make([]any, n)
	for i := range list {
		list[i] = map[string]any{"b": map[string]any{"c": int64(i)}}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"list": list, "text": strings.Repeat("ü", n)},
		"status": map[string]any{"ready": true, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
}

// columnsOf returns n columns with a path, and after them some that need little.
func columnsOf(n int, kind, path string) (out []apiextensionsv1.CustomResourceColumnDefinition) {
	for range n {
		out = append(out, apiextensionsv1.CustomResourceColumnDefinition{Name: "Wide", Type: kind, JSONPath: path})
	}
	return append(out,
		apiextensionsv1.CustomResourceColumnDefinition{Name: "Status", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
		apiextensionsv1.CustomResourceColumnDefinition{Name: "Ready", Type: "boolean", JSONPath: ".status.ready"},
	)
}

// The steps and bytes of a row are bounded, whatever the number of columns and their paths are. A cell of any type that is cut
// short shows that, and columns that need little are complete.
func TestRowsAreBounded(t *testing.T) { // not parallel: it counts bytes allocated
	object := wideObject(20_000)
	for _, of := range []struct {
		kind, path string
		limits     RowLimits
		first      any // nil means a text that is cut short
		allocated  uint64
	}{
		{"string", ".spec..a", RowLimits{}, cutShort, 8 << 20},
		{"integer", ".spec..a", RowLimits{}, cutShort, 8 << 20},
		{"date", ".spec..a..b", RowLimits{}, cutShort, 8 << 20},
		{"string", ".spec..c", RowLimits{}, "0", 8 << 20}, // early, although there are many columns
		{"integer", ".spec.list[*].b.none", RowLimits{}, nil, 8 << 20},
		{"string", ".spec", RowLimits{}, nil, 8 << 20},
		{"string", ".spec.text", RowLimits{}, nil, 1 << 20},
		{"string", ".spec.text", RowLimits{CellBytes: 6, RowBytes: 600}, "üüü...", 1 << 20},
		{"date", ".spec.text", RowLimits{}, cutShort, 1 << 20},
	} {
		c := newColumns(columnsOf(50, of.kind, of.path), of.limits)
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		cells, err := c.Row(t.Context(), object)
		goruntime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > of.allocated {
			t.Errorf("%s: a row allocates %d bytes, want %d at most", of.path, allocated, of.allocated)
		}
		size := 0
		for i, cell := range cells[1:51] {
			text, _ := cell.(string)
			size += len(strings.TrimSuffix(text, cutShort))
			switch {
			case of.first != nil && cell != of.first && (of.path == ".spec..a" || cell != cutShort):
				t.Errorf("%s: cell %d is %v, want %v", of.path, i, cell, of.first)
			case of.first == nil && of.kind == "string" && !strings.HasSuffix(text, cutShort):
				t.Errorf("%s: cell %d of %d bytes does not say that it is cut short", of.path, i, len(text))
			}
		}
		if size > 128<<10 {
			t.Errorf("%s: the cells have %d bytes", of.path, size)
		}
		if cells[51] != "True" || cells[52] != true {
			t.Errorf("%s: the cells behind are %v", of.path, cells[51:])
		}
	}
	unbounded := newColumns(columnsOf(50, "string", ".spec.text"), RowLimits{Steps: -1, CellBytes: -1, RowBytes: -1})
	cells, err := unbounded.Row(t.Context(), object)
	if err != nil || cells[50] != strings.Repeat("ü", 20_000) {
		t.Errorf("without bounds a cell has %d bytes, %v", len(fmt.Sprint(cells[50])), err)
	}
}

// A row of a path or a date that is long allocates no more than one of short ones, whatever the number of values or columns is.
func TestLongTextsAreBounded(t *testing.T) { // not parallel: it counts bytes allocated
	object := wideObject(8000) // the text has 16,000 bytes, which is less than CellBytes
	for name, of := range map[string]struct {
		columns    int
		kind, path string
	}{
		"a word in a filter that ignores the error": {1, "string", ".spec.list[?(" + strings.Repeat("w", 100_000) + ")]"},
		"texts that are not dates":                  {5000, "date", ".spec.text"},
	} {
		c := newColumns(columnsOf(of.columns, of.kind, of.path), RowLimits{})
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		cells, err := c.Row(t.Context(), object)
		goruntime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8<<20 {
			t.Errorf("%s: a row allocates %d bytes, want 8 MiB at most", name, allocated)
		}
		if n := of.columns; n > 1 && (cells[1] != "<invalid>" || cells[n] != cutShort) || cells[n+1] != "True" || cells[n+2] != true {
			t.Errorf("%s: the cells are %v, %v, and %v", name, cells[1], cells[n], cells[n+1:])
		}
	}
}

// BenchmarkWideRow makes a row of 50 columns from an object of some hundred kilobytes.
func BenchmarkWideRow(b *testing.B) {
	object := wideObject(40_000)
	for _, path := range []string{".spec..a", ".spec", ".status.ready"} {
		b.Run(path, func(b *testing.B) {
			c := newColumns(columnsOf(50, "string", path), RowLimits{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Row(b.Context(), object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
