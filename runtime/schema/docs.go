package schema

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"strings"
)

// Docs holds the doc comments of Go source, by package name and type name. A nil Docs has none. It may be used concurrently.
type Docs struct {
	types   map[string]*comment // by "package.Type"
	aliases map[string][]string // "package.Type" of an alias of a generic type: the names of its type arguments
}

// A Source returns the doc comments of Go types. Make one with [SourceOf]. The options of a server have a Source in place of the
// files, so that only a program with doc comments links the parser of Go.
type Source func() (*Docs, error)

// SourceOf returns a Source that calls [ParseDocs] with sources, such as an embed.FS.
func SourceOf(sources ...fs.FS) Source {
	return func() (*Docs, error) { return ParseDocs(sources...) }
}

// comment is a parsed doc comment. That of a struct also has the comments of the fields.
type comment struct {
	text    string
	markers markers
	fields  map[string]*comment // by Go field name
}

// ParseDocs parses the Go files in all folders of sources, except test files, vendor folders and testdata folders. If a file
// cannot be parsed as Go, the error names it. If two sources declare the same type of the same package, the comments of the first
// one are used. The package documentation describes how comments are used.
func ParseDocs(sources ...fs.FS) (*Docs, error) {
	d := &Docs{types: map[string]*comment{}, aliases: map[string][]string{}}
	for _, source := range sources {
		err := fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil:
				return err
			case entry.IsDir() && (name == "vendor" || name == "testdata"):
				return fs.SkipDir
			case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			return d.parseFile(source, path)
		})
		if err != nil {
			return nil, fmt.Errorf("read doc comments: %w", err)
		}
	}
	return d, nil
}

func (d *Docs) parseFile(source fs.FS, path string) error {
	text, err := fs.ReadFile(source, path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, s := range gen.Specs {
			d.addType(file.Name.Name, gen, s.(*ast.TypeSpec))
		}
	}
	return nil
}

func (d *Docs) addType(pkg string, gen *ast.GenDecl, s *ast.TypeSpec) {
	key := pkg + "." + s.Name.Name
	if _, ok := d.types[key]; ok {
		return
	}
	doc := s.Doc
	if doc == nil && len(gen.Specs) == 1 {
		doc = gen.Doc // `type X struct` and `type ( X struct )` with one type
	}
	c := newComment(doc, s.Comment)
	c.fields = fieldComments(s.Type)
	d.types[key] = c
	if s.Assign.IsValid() {
		d.aliases[key] = typeArguments(s.Type)
	}
}

// fieldComments returns the comments of a struct's fields. expr may also be a pointer, list or map of an anonymous struct. For
// any other type it returns nil.
func fieldComments(expr ast.Expr) map[string]*comment {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return fieldComments(e.X)
	case *ast.ArrayType:
		return fieldComments(e.Elt)
	case *ast.MapType:
		return fieldComments(e.Value)
	case *ast.ParenExpr:
		return fieldComments(e.X)
	case *ast.StructType:
		fields := map[string]*comment{}
		for _, f := range e.Fields.List {
			c := newComment(f.Doc, f.Comment)
			c.fields = fieldComments(f.Type)
			for _, name := range f.Names {
				fields[name.Name] = c
			}
			if len(f.Names) == 0 {
				fields[baseName(f.Type)] = c
			}
		}
		return fields
	}
	return nil
}

// typeArguments returns the names of the type arguments of a generic type expression, without their packages.
func typeArguments(expr ast.Expr) []string {
	switch e := expr.(type) {
	case *ast.IndexExpr:
		return []string{baseName(e.Index)}
	case *ast.IndexListExpr:
		var out []string
		for _, arg := range e.Indices {
			out = append(out, baseName(arg))
		}
		return out
	}
	return nil
}

// baseName returns the name of a type expression, without package, pointer and type arguments; "" for one
// without a name.
func baseName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.ParenExpr:
		return baseName(e.X)
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.IndexListExpr:
		return baseName(e.X)
	}
	return ""
}

// ofType returns the comment of a Go type, or nil.
func (d *Docs) ofType(t reflect.Type) *comment {
	if d == nil || t.Name() == "" {
		return nil
	}
	name, _, _ := strings.Cut(t.Name(), "[")
	return d.types[packageName(t)+"."+name]
}

// ofAlias returns the comment of an alias that declares a kind by a generic type:
//
//	type Widget = runtime.Resource[WidgetSpec, WidgetStatus]
//
// It is the alias with the kind's name in the package of a type argument, or else the only alias with these type arguments.
func (d *Docs) ofAlias(kind string, arguments []reflect.Type) *comment {
	if d == nil {
		return nil
	}
	for _, arg := range arguments {
		pkg := packageName(arg)
		if c := d.types[pkg+"."+kind]; pkg != "" && c != nil {
			return c
		}
	}
	var found *comment
	for key, names := range d.aliases {
		if !sameNames(names, arguments) {
			continue
		}
		if found != nil {
			return nil // two aliases have these type arguments, and neither has the kind's name
		}
		found = d.types[key]
	}
	return found
}

func sameNames(names []string, types []reflect.Type) bool {
	if len(names) == 0 || len(names) != len(types) {
		return false
	}
	for i, t := range types {
		if t.Name() == "" || names[i] != t.Name() {
			return false
		}
	}
	return true
}

// Field returns the description in the comment of a struct's field, or "". name is the Go name of the field.
func (d *Docs) Field(t reflect.Type, name string) string {
	return d.ofType(t).field(name).description()
}

func (c *comment) field(name string) *comment {
	if c == nil {
		return nil
	}
	return c.fields[name]
}

// description returns the comment's text, or "" for a nil comment.
func (c *comment) description() string {
	if c == nil {
		return ""
	}
	return c.text
}

// marks returns the comment's markers, or nil for a nil comment.
func (c *comment) marks() markers {
	if c == nil {
		return nil
	}
	return c.markers
}
