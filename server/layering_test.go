package server_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The top-level folders of the module, and the folders that each may import. A folder may import itself. examples may import
// everything, and may not be imported. Folders that are not listed are not checked.
var floorPlan = map[string][]string{
	"runtime":     {},
	"storage":     {"runtime"},
	"authn":       {"runtime"},
	"authz":       {"runtime", "authn"},
	"admission":   {"runtime", "authn", "authz"},
	"flowcontrol": {"runtime", "authn", "authz"},
	"server":      {"runtime", "storage", "authn", "authz", "admission", "flowcontrol"},
	"examples":    {"runtime", "storage", "authn", "authz", "admission", "flowcontrol", "server"},
}

// Packages that no package of the module may import, tests included: the libraries that this project replaces, and clients, which
// are in other modules. An entry includes all packages below it except exempt.
var forbiddenImports = []struct {
	path   string
	exempt string // "": none
	why    string
}{
	{"k8s.io/apiserver", "", "the project is what it does"},
	{"k8s.io/apiextensions-apiserver", "k8s.io/apiextensions-apiserver/pkg/apis", "only its API types may be imported"},
	{"k8s.io/kube-aggregator", "k8s.io/kube-aggregator/pkg/apis", "only its API types may be imported"},
	{"k8s.io/component-base", "", "metrics, logs and flags are global in it"},
	{"k8s.io/client-go", "", "clients belong into the modules below examples, and into server/servertest/clienttest"},
	{"sigs.k8s.io/controller-runtime", "", "clients belong into the modules below examples, and into server/servertest/clienttest"},
}

// Packages that only some folders may import, so that programs which do not use these folders do not link them. Tests may import
// them.
var leafImports = []struct {
	path    string
	folders []string
	why     string
}{
	{"net/http", []string{"authn", "runtime", "server", "examples"}, "credentials (authn), clients (runtime) and servers are of HTTP; what decides and what stores is asked by them"},
	{"flag", []string{"examples"}, "options are values; only programs have flags"},
	{"github.com/spf13/pflag", []string{"examples", "server/options"}, "options are values; only programs have flags"},
	{modulePath + "/server/options", []string{"examples", "server/options"}, "options are values; only programs have flags"},
	{"k8s.io/klog/v2", nil, "it logs to a global"},
	{"go.uber.org/zap", []string{"server", "examples", "storage/etcd"}, "engines log nothing; the server does, and etcd's client must be told not to"},
	{"k8s.io/api/core", []string{"authn/bootstrap", "authn/serviceaccount", "examples", "server/builtin", "server/servertest"}, "its types are 3.8 MB of a program"},
	{"k8s.io/api/autoscaling", []string{"examples", "server/servertest"}, "it imports k8s.io/api/core; runtime.Scale is its Scale"},
	{"k8s.io/api/authorization", []string{"examples", "server/builtin/reviews"}, "its types are 0.2 MB of a program"},
	{"go.etcd.io/bbolt", []string{"storage/bolt"}, "one backend is its only user"},
	{"go.etcd.io/etcd", []string{"storage/etcd"}, "one backend is its only user"},
	{"github.com/go-jose/go-jose", []string{"authn/internal/jose", "authn/jwt", "authn/serviceaccount"}, "who has no signed tokens links no JOSE"},
	{"github.com/google/cel-go", []string{"runtime/cel"}, "one package hides which version of CEL is spoken"},
	{modulePath + "/runtime/cel", []string{"runtime/cel", "server/crd", "authn/jwt", "authz/webhook/condition"}, "who has no rules links no CEL"},
	{modulePath + "/authz/config", []string{"authz/config", "examples"}, "who has no such file links no CEL"},
	{modulePath + "/authz/webhook/condition", []string{"authz/config", "authz/webhook/condition"}, "who has no conditions links no CEL"},
	{modulePath + "/authn/jwt", []string{"authn/jwt", "examples"}, "who has no issuers links no OpenID Connect"},
	{modulePath + "/runtime/webhook", []string{"runtime/webhook", "server/crd", "examples"}, "who calls nobody links no webhooks"},
	{modulePath + "/runtime/roundtrip", []string{"runtime/roundtrip"}, "it is for tests"},
	{modulePath + "/server/crd", []string{"server/crd", "examples"}, "extensions are installed by programs"},
	{modulePath + "/server/aggregator", []string{"server/aggregator", "examples"}, "extensions are installed by programs"},
	{modulePath + "/server/builtin", []string{"server/builtin", "examples"}, "extensions are installed by programs"},
	{modulePath + "/server/servertest", []string{"server/servertest"}, "it is for tests"},
	{modulePath + "/server/registry/strategytest", []string{"server/registry/strategytest"}, "it is for tests"},
	{modulePath + "/storage/storagetest", []string{"storage/storagetest"}, "it is for tests"},
}

// Packages that single packages may not import, except packages below them. Tests may import them.
var barredImports = []struct {
	folder, path string
	why          string
}{
	{"server/registry", modulePath + "/server/request", "a registry is told everything by the Call, and reads no values from a context"},
	{"server/registry", modulePath + "/server/handlers", "handlers drive a registry, which knows no HTTP"},
	{"server/handlers", modulePath + "/server/filters", "filters surround handlers; errors are answered with server/response"},
}

// Package names without a meaning.
var namelessNames = []string{"util", "utils", "common", "helper", "helpers", "misc"}

const modulePath = "github.com/keelson-dev/keelson"

// TestLayering checks these rules.
func TestLayering(t *testing.T) {
	root := os.DirFS("..")
	files, problems := goSources(root)
	for _, f := range files {
		problems = append(problems, f.problems()...)
	}
	if len(files) < 100 {
		t.Errorf("only %d Go files were found: is this the root of the module?", len(files))
	}
	problems = append(problems, moduleProblems(root)...)
	for _, p := range problems {
		t.Error(p)
	}
}

// goSource has the parts of a Go file that the rules check.
type goSource struct {
	path    string // below the root, with slashes
	pkg     string
	imports []string
	init    bool // declares func init
}

// goSources parses the Go files of the module in root: not those of nested modules, hidden folders and testdata.
func goSources(root fs.FS) (files []goSource, problems []string) {
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || hasFile(root, p, "go.mod")):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go"):
			return nil
		}
		text, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		f, err := parseSource(p, text)
		if err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		problems = append(problems, err.Error())
	}
	return files, problems
}

func hasFile(root fs.FS, dir, name string) bool {
	_, err := fs.Stat(root, path.Join(dir, name))
	return err == nil
}

func parseSource(p string, text []byte) (goSource, error) {
	file, err := parser.ParseFile(token.NewFileSet(), p, text, parser.SkipObjectResolution)
	if err != nil {
		return goSource{}, err
	}
	f := goSource{path: p, pkg: file.Name.Name}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return goSource{}, fmt.Errorf("%s: import %s: %w", p, spec.Path.Value, err)
		}
		f.imports = append(f.imports, imported)
	}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
			f.init = true
		}
	}
	return f, nil
}

// problems returns the problems of a file, each as a line with the cure.
func (f goSource) problems() []string {
	var out []string
	report := func(format string, args ...any) { out = append(out, f.path+": "+fmt.Sprintf(format, args...)) }
	folder, isTest := top(f.path), strings.HasSuffix(f.path, "_test.go")
	allowed, planned := floorPlan[folder]
	if !planned {
		report("the folder %q is not on the floor plan", folder)
	}
	if f.init && folder != "examples" {
		report("func init: nothing happens by being imported; construct it where it is used")
	}
	for _, name := range append(strings.Split(strings.TrimSuffix(strings.TrimSuffix(f.path, ".go"), "_test"), "/"), f.pkg) {
		if slices.Contains(namelessNames, name) {
			report("%q names no concept; put what is inside beside its user", name)
			break
		}
	}
	for _, imported := range f.imports {
		if why := forbidden(imported); why != "" {
			report("imports %s: %s", imported, why)
		}
		if isTest {
			continue
		}
		if ours, ok := strings.CutPrefix(imported, modulePath+"/"); ok && top(ours) != folder && !slices.Contains(allowed, top(ours)) {
			report("imports %s: %s may import %q of ours", imported, folder, allowed)
		}
		if why := misplaced(path.Dir(f.path), imported); why != "" {
			report("imports %s: %s", imported, why)
		}
	}
	return out
}

// top is the first folder of a path; "." for a file outside folders.
func top(p string) string {
	folder, rest, _ := strings.Cut(p, "/")
	if rest == "" && strings.HasSuffix(folder, ".go") {
		return "."
	}
	return folder
}

// within reports whether an import path or folder is p or below it.
func within(name, p string) bool { return name == p || strings.HasPrefix(name, p+"/") }

func forbidden(imported string) string {
	for _, rule := range forbiddenImports {
		if within(imported, rule.path) && (rule.exempt == "" || !within(imported, rule.exempt)) {
			return rule.why
		}
	}
	return ""
}

func misplaced(folder, imported string) string {
	for _, rule := range barredImports {
		if folder == rule.folder && within(imported, rule.path) {
			return rule.why
		}
	}
	for _, rule := range leafImports {
		if within(imported, rule.path) && !slices.ContainsFunc(rule.folders, func(f string) bool { return within(folder, f) }) {
			return fmt.Sprintf("only %q may: %s", rule.folders, rule.why)
		}
	}
	return ""
}

// moduleProblems checks the go.mod files and go.work below root.
func moduleProblems(root fs.FS) []string {
	var out []string
	err := fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || d.Name() != "go.mod" && p != "go.work":
			return nil
		}
		text, err := fs.ReadFile(root, p)
		if err != nil {
			return err
		}
		out = append(out, modFileProblems(p, string(text))...)
		return nil
	})
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}

// goLine is the least Go version that the modules need. toolchainLine is the version that they are tested with, which has fixes
// of the standard library; programs that import a module need not use it.
const (
	goLine        = "go 1.26.0"
	toolchainLine = "toolchain go1.26.8"
)

// modFileProblems checks one go.mod or go.work, which is at p below the root.
func modFileProblems(p, text string) []string {
	var out []string
	lines := directives(text)
	for _, want := range []string{goLine, toolchainLine} {
		if !slices.Contains(lines, want) {
			out = append(out, fmt.Sprintf("%s: want %q", p, want))
		}
	}
	dir, uses := path.Dir(p), false
	up, err := filepath.Rel(filepath.FromSlash(dir), ".")
	if err != nil {
		return append(out, err.Error())
	}
	replacement := fmt.Sprintf("replace %s => %s", modulePath, filepath.ToSlash(up))
	for _, line := range lines {
		switch {
		case p == "go.mod" && strings.HasPrefix(line, "replace "):
			out = append(out, fmt.Sprintf("%s: %q: whoever imports the module would not get it", p, line))
		case p == "go.mod" && strings.HasPrefix(line, "require "+modulePath+"/"):
			out = append(out, fmt.Sprintf("%s: %q: the module must not need one that is nested in it", p, line))
		case dir != "." && strings.HasPrefix(line, "require "+modulePath+" "):
			uses = true
			if line != "require "+modulePath+" v0.0.0" {
				out = append(out, fmt.Sprintf("%s: %q: want v0.0.0", p, line))
			}
		}
	}
	if uses && !slices.Contains(lines, replacement) {
		out = append(out, fmt.Sprintf("%s: want %q", p, replacement))
	}
	return out
}

// directives returns the lines of a go.mod or go.work without comments; those in blocks have the block's verb.
func directives(text string) []string {
	var out []string
	block := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		line = strings.Join(strings.Fields(line), " ")
		switch {
		case line == "":
		case line == ")":
			block = ""
		case strings.HasSuffix(line, "("):
			block = strings.TrimSpace(strings.TrimSuffix(line, "(")) + " "
		default:
			out = append(out, block+line)
		}
	}
	return out
}

// Each rule finds a mistake, and accepts what is correct.
func TestLayeringRules(t *testing.T) {
	for _, c := range []struct{ path, source, want string }{
		{"runtime/a.go", `package runtime; import "` + modulePath + `/runtime/codec"`, ""},
		{"runtime/a.go", `package runtime; import "` + modulePath + `/storage"`, `runtime may import [] of ours`},
		{"runtime/a_test.go", `package runtime_test; import "` + modulePath + `/storage/memory"`, ""},
		{"storage/bolt/a.go", `package bolt; import "go.etcd.io/bbolt"`, ""},
		{"storage/a.go", `package storage; import "` + modulePath + `/authn"`, `storage may import ["runtime"] of ours`},
		{"authn/a.go", `package authn; import "` + modulePath + `/authz"`, `authn may import`},
		{"authz/a.go", `package authz; import "` + modulePath + `/admission"`, `authz may import`},
		{"admission/a.go", `package admission; import "` + modulePath + `/flowcontrol"`, `admission may import`},
		{"flowcontrol/a.go", `package flowcontrol; import "` + modulePath + `/storage"`, `flowcontrol may import`},
		{"server/a.go", `package server; import "` + modulePath + `/flowcontrol/fairqueue"`, ""},
		{"server/a.go", `package server; import "` + modulePath + `/runtime/webhook"`, "links no webhooks"},
		{"server/crd/a.go", `package crd; import "` + modulePath + `/runtime/webhook"`, ""},
		{"server/a.go", `package server; import "` + modulePath + `/examples/hello"`, `server may import`},
		{"examples/a/main.go", `package main; import ("flag"; "` + modulePath + `/server/crd"); func init() {}`, ""},
		{"authz/a.go", `package authz; import "net/http"`, "what decides and what stores is asked by them"},
		{"admission/policy/a.go", `package policy; import "net/http/httptest"`, "what decides and what stores is asked by them"},
		{"flowcontrol/a.go", `package flowcontrol; import "net/http"`, "what decides and what stores is asked by them"},
		{"storage/etcd/a.go", `package etcd; import "net/http"`, "what decides and what stores is asked by them"},
		{"storage/etcd/a_test.go", `package etcd_test; import "net/http"`, ""},
		{"authn/a.go", `package authn; import "net/http"`, ""},
		{"engine/a.go", `package engine`, `the folder "engine" is not on the floor plan`},
		{"a.go", `package keelson`, `the folder "." is not on the floor plan`},
		{"server/a.go", `package server; import "k8s.io/apiserver/pkg/server"`, "the project is what it does"},
		{"server/a_test.go", `package server; import "k8s.io/apiserver/pkg/server"`, "the project is what it does"},
		{"server/a.go", `package server; import "k8s.io/apiserverless"`, ""},
		{"server/a.go", `package server; import "k8s.io/apiextensions-apiserver/pkg/registry"`, "only its API types"},
		{"server/a.go", `package server; import "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"`, ""},
		{"server/a.go", `package server; import "k8s.io/kube-aggregator/pkg/controllers"`, "only its API types"},
		{"server/a.go", `package server; import "k8s.io/component-base/version"`, "global"},
		{"server/a_test.go", `package server; import "k8s.io/client-go/rest"`, "clients belong"},
		{"examples/a/main.go", `package main; import "sigs.k8s.io/controller-runtime"`, "clients belong"},
		{"server/a.go", `package server; import "flag"`, "only programs have flags"},
		{"server/a.go", `package server; import "github.com/spf13/pflag"`, "only programs have flags"},
		{"server/options/a.go", `package options; import "github.com/spf13/pflag"`, ""},
		{"server/options/a.go", `package options; import "flag"`, "only programs have flags"},
		{"server/a.go", `package server; import "` + modulePath + `/server/options"`, "only programs have flags"},
		{"server/a.go", `package server; import "k8s.io/klog/v2"`, "it logs to a global"},
		{"storage/a.go", `package storage; import "go.uber.org/zap"`, "engines log nothing"},
		{"server/filters/a.go", `package filters; import "go.uber.org/zap/zapcore"`, ""},
		{"storage/a.go", `package storage; import "go.etcd.io/bbolt"`, `only ["storage/bolt"] may`},
		{"storage/cacher/a.go", `package cacher; import "go.etcd.io/etcd/client/v3"`, `only ["storage/etcd"] may`},
		{"storage/etcd/a.go", `package etcd; import "go.etcd.io/etcd/client/v3"`, ""},
		{"authn/a.go", `package authn; import "` + modulePath + `/authn/jwt"`, "links no OpenID Connect"},
		{"server/options/a.go", `package options; import "` + modulePath + `/authn/jwt"`, "links no OpenID Connect"},
		{"authn/jwt/a.go", `package jwt; import "` + modulePath + `/runtime/cel"`, ""},
		{"authn/jwt/a.go", `package jwt; import "github.com/google/cel-go/cel"`, `only ["runtime/cel"] may`},
		{"authn/webhook/a.go", `package webhook; import "github.com/go-jose/go-jose/v4"`, "links no JOSE"},
		{"admission/policy/a.go", `package policy; import "github.com/google/cel-go/cel"`, `only ["runtime/cel"] may`},
		{"server/a.go", `package server; import "` + modulePath + `/server/crd"`, "extensions are installed by programs"},
		{"server/a.go", `package server; import "` + modulePath + `/server/aggregator"`, "extensions are installed by programs"},
		{"server/a.go", `package server; import "` + modulePath + `/server/builtin/core"`, "extensions are installed by programs"},
		{"server/crd/schema/a.go", `package schema; import "` + modulePath + `/server/crd"`, ""},
		{"server/a.go", `package server; import "` + modulePath + `/server/servertest"`, "it is for tests"},
		{"server/a_test.go", `package server; import "` + modulePath + `/server/servertest"`, ""},
		{"storage/a.go", `package storage; import "` + modulePath + `/storage/storagetest"`, "it is for tests"},
		{"server/registry/a.go", `package registry; import "` + modulePath + `/server/request"`, "reads no values from a context"},
		{"server/registry/a.go", `package registry; import "` + modulePath + `/server/handlers"`, "knows no HTTP"},
		{"server/handlers/a.go", `package handlers; import "` + modulePath + `/server/filters"`, "filters surround handlers"},
		{"server/registry/a_test.go", `package registry_test; import "` + modulePath + `/server/request"`, ""},
		{"server/registry/strategytest/a.go", `package strategytest; import "` + modulePath + `/server/request"`, ""},
		{"server/a.go", `package server; func init() {}`, "func init"},
		{"server/a.go", `package server; type t struct{}; func (t) init() {}`, ""},
		{"server/util/a.go", `package util`, `"util" names no concept`},
		{"server/common/a.go", `package server`, `"common" names no concept`},
		{"server/helpers.go", `package server`, `"helpers" names no concept`},
		{"server/helpers_test.go", `package server`, `"helpers" names no concept`},
		{"server/a.go", `package misc`, `"misc" names no concept`},
	} {
		f, err := parseSource(c.path, []byte(c.source))
		if err != nil {
			t.Fatal(err)
		}
		wantProblem(t, c.path+": "+c.source, f.problems(), c.want)
	}
	if _, err := parseSource("server/a.go", []byte("package")); err == nil {
		t.Error("a file that is not Go is no problem")
	}
}

func TestLayeringModuleRules(t *testing.T) {
	const head = "module m\n\ngo 1.26.0\n\ntoolchain go1.26.8\n\n"
	for _, c := range []struct{ path, text, want string }{
		{"go.mod", head + "require (\n\tgo.uber.org/zap v1.0.0 // indirect\n)\n", ""},
		{"go.mod", "module m\n\ngo 1.25\n\ntoolchain go1.26.8\n", `want "go 1.26.0"`},
		{"go.mod", "module m\n\ngo 1.26.0\n", `want "toolchain go1.26.8"`},
		{"go.work", "go 1.27.0\n\ntoolchain go1.26.8\n", `want "go 1.26.0"`},
		{"go.mod", head + "replace a => b\n", "whoever imports the module"},
		{"go.mod", head + "replace (\n\ta => b\n)\n", "whoever imports the module"},
		{"go.mod", head + "// replace a => b\n", ""},
		{"go.mod", head + "require " + modulePath + "/examples/e2e v0.0.0\n", "nested"},
		{"go.mod", head + "require (\n\t" + modulePath + "/storage/etcd/embedded v0.0.0\n)\n", "nested"},
		{".ci/tools/go.mod", head, ""},
		{"examples/e2e/go.mod", head + "require (\n\t" + modulePath + " v0.0.0\n)\nreplace " + modulePath + " => ../..\n", ""},
		{"examples/e2e/go.mod", head + "require " + modulePath + " v0.0.0\n", "want \"replace " + modulePath + " => ../..\""},
		{"examples/e2e/go.mod", head + "require " + modulePath + " v0.1.0\nreplace " + modulePath + " => ../..\n", "want v0.0.0"},
	} {
		wantProblem(t, c.path+": "+c.text, modFileProblems(c.path, c.text), c.want)
	}
}

// wantProblem checks that the only problem has want in it, or that there is none when want is "".
func wantProblem(t *testing.T, what string, got []string, want string) {
	t.Helper()
	if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
		t.Errorf("%s\nproblems: %q\nwant: %q", what, got, want)
	}
}
