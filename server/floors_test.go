package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// climbing has the packages in which more than one in ten calls is on a cycle, with the number of these calls. A number may only
// become lower.
var climbing = map[string]int{}

// TestFloors checks that the files of a package call each other in one direction. Of the calls between files of a package at most
// one in ten may lie on a cycle of files that call each other.
func TestFloors(t *testing.T) {
	if testing.Short() {
		t.Skip("it type-checks the whole module")
	}
	packages := listPackages(t)
	exports := map[string]string{}
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
	}
	checked := 0
	for _, p := range packages {
		path, ours := strings.CutPrefix(p.ImportPath, modulePath+"/")
		if !ours || strings.HasPrefix(path, "examples/") {
			continue
		}
		checked++
		climbs, calls, cycle := p.climbs(t, exports)
		most, listed := climbing[path]
		switch {
		case listed && climbs < most:
			t.Errorf("%s: %d of %d calls between files climb; lower its number in climbing", path, climbs, calls)
		case listed && climbs > most, !listed && 10*climbs > calls:
			t.Errorf("%s: %d of %d calls between files lie on cycles of files that call each other, such as %s; move a function down, or what calls it up", path, climbs, calls, cycle)
		}
	}
	if checked < 50 {
		t.Errorf("only %d packages were found", checked)
	}
}

// listedPackage is a package as go list prints it.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles, CgoFiles       []string
	ImportMap               map[string]string
}

func listPackages(t *testing.T) []*listedPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,ImportMap", "./...")
	cmd.Dir, cmd.Stderr = "..", os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []*listedPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listedPackage{}
		switch err := d.Decode(p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// fileCall is a call of a function in another file of the package.
type fileCall struct{ from, to string }

// climbs counts the calls between the files of a package, and those on a cycle, and names two files of a cycle.
func (p *listedPackage) climbs(t *testing.T, exports map[string]string) (climbs, all int, cycle string) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if mapped := p.ImportMap[path]; mapped != "" {
			path = mapped
		}
		return os.Open(exports[path])
	})}
	pkg, err := conf.Check(p.ImportPath, fset, files, info)
	if err != nil {
		t.Fatalf("%s: %v", p.ImportPath, err)
	}
	calls := map[fileCall]int{}
	for _, f := range files {
		from := filepath.Base(fset.Position(f.Package).Filename)
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if fn, ok := info.Uses[called(c)].(*types.Func); ok && fn.Pkg() == pkg {
					if to := filepath.Base(fset.Position(fn.Origin().Pos()).Filename); to != from {
						calls[fileCall{from, to}]++
					}
				}
			}
			return true
		})
	}
	reached := reaches(calls)
	for c, n := range calls {
		all += n
		if reached[fileCall{c.to, c.from}] {
			climbs += n
			cycle = fmt.Sprintf("%s and %s", c.from, c.to)
		}
	}
	return climbs, all, cycle
}

// called returns the function that is called, or nil if it has no name.
func called(c *ast.CallExpr) *ast.Ident {
	fun := ast.Unparen(c.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	switch x := fun.(type) {
	case *ast.Ident:
		return x
	case *ast.SelectorExpr:
		return x.Sel
	}
	return nil
}

// reaches returns which files reach which others by calls.
func reaches(calls map[fileCall]int) map[fileCall]bool {
	next := map[string][]string{}
	for c := range calls {
		next[c.from] = append(next[c.from], c.to)
	}
	out := map[fileCall]bool{}
	for from := range next {
		for left := next[from]; len(left) > 0; {
			to := left[len(left)-1]
			left = left[:len(left)-1]
			if !out[fileCall{from, to}] {
				out[fileCall{from, to}] = true
				left = append(left[:len(left):len(left)], next[to]...)
			}
		}
	}
	return out
}
