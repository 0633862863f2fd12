package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Only the comments of k8s.io/api say which kinds are cluster-scoped.
func TestScopesAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*", "*", "types.go"))
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, path := range files {
		group := groupIn(t, filepath.Join(filepath.Dir(path), "register.go"))
		for kind, want := range scopesIn(t, path) {
			kinds++
			if got := isClusterScoped(schema.GroupKind{Group: group, Kind: kind}); got != want {
				t.Errorf("%s of group %q is in no namespace: %v, and for this package %v", kind, group, want, got)
			}
		}
	}
	if kinds < 100 {
		t.Errorf("only %d kinds were found", kinds)
	}
}

// groupIn returns the constant GroupName of a file.
func groupIn(t *testing.T, path string) (name string) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Names[0].Name == "GroupName" {
			name = strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)
		}
		return true
	})
	return name
}

// scopesIn returns, for each type with a list in a file, whether the comments above it say that it is cluster-scoped.
func scopesIn(t *testing.T, path string) map[string]bool {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	marker := regexp.MustCompile(`(?m)^//\s*\+(genclient:nonNamespaced|k8s:clusterScoped)`)
	scopes, lists := map[string]bool{}, map[string]bool{}
	var before token.Pos // the end of the previous declaration
	for _, decl := range file.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.TYPE {
			name := gen.Specs[0].(*ast.TypeSpec).Name.Name
			lists[name] = true
			for _, c := range file.Comments {
				for _, line := range c.List {
					scopes[name] = scopes[name] || before < c.Pos() && c.End() < gen.End() && marker.MatchString(line.Text)
				}
			}
		}
		before = decl.End()
	}
	for name := range scopes {
		if !lists[name+"List"] {
			delete(scopes, name)
		}
	}
	return scopes
}
