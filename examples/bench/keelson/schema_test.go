package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSchema checks that the kind is that of examples/hello, field by field, with its rules and comments, but without
// its columns: the server built on k8s.io/apiserver has the columns Name and Age.
func TestSchema(t *testing.T) {
	for _, name := range []string{"WidgetSpec", "WidgetStatus"} {
		want, got := fieldsOf(t, "../../hello/main.go", name), fieldsOf(t, "../internal/widget/widget.go", name)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s is\n\t%s\nwant that of hello:\n\t%s", name, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
		}
	}
	start(t).Get("/openapi/v3"+base).Want(http.StatusOK, `"maximum":1000000`, `"maxLength":32`, "Color of the widget, such as")
}

// fieldsOf returns the fields of a struct in a file as text: name, type, tag without the column, and comment.
func fieldsOf(t *testing.T, file, name string) (out []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	column := regexp.MustCompile(` print:"[^"]*"`)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok && spec.Name.Name == name {
			for _, f := range spec.Type.(*ast.StructType).Fields.List {
				out = append(out, f.Names[0].Name+" "+f.Type.(*ast.Ident).Name+" "+column.ReplaceAllString(f.Tag.Value, "")+" "+strings.TrimSpace(f.Doc.Text()))
			}
		}
		return true
	})
	return out
}
