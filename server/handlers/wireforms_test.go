package handlers_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Everything that depends on the form of an answer is in package wire. No file here names or compares a media type of objects.
func TestFormsAreWiresBusiness(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			found := ""
			switch x := n.(type) {
			case *ast.BasicLit:
				if strings.HasPrefix(x.Value, `"application/`) {
					found = x.Value
				}
			case *ast.SelectorExpr:
				switch x.Sel.Name {
				case "IsCBOR", "IsProtobuf", "ProtobufFormat", "MediaType":
					found = x.Sel.Name
				}
			}
			if found != "" {
				t.Errorf("%s: %s: add what depends on it to the interfaces of package wire", fset.Position(n.Pos()), found)
			}
			return true
		})
	}
}
