package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/keelson-dev/keelson/runtime/schema"
	widgets "github.com/keelson-dev/keelson/runtime/schema/testdata/v1"
)

const kubernetesTable = "kubernetes.txt"

// The table agrees with the comments of the modules in go.mod.
func TestKubernetesTable(t *testing.T) {
	got := makeKubernetesTable(t)
	if *update {
		if err := os.WriteFile(kubernetesTable, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(kubernetesTable)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-is +of the modules in go.mod), go test -run %s -update rewrites it:\n%s", kubernetesTable, t.Name(), diff)
	}
}

// Each case has a type, a marker as kube-apiserver's schema generator interprets it, and the expected result.
func TestKubernetesTypesHaveTheirMarkers(t *testing.T) {
	b := schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Group: "example.com", Version: "v1"}})
	for _, typ := range []reflect.Type{
		reflect.TypeFor[appsv1.Deployment](), reflect.TypeFor[corev1.Service](), reflect.TypeFor[networkingv1.Ingress](), reflect.TypeFor[metav1.ObjectMeta](),
	} {
		b.AddType(typ)
	}
	definitions := b.Definitions()
	for _, c := range []struct{ definition, property, want string }{
		{"core.v1.PodSpec", "containers", `{"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}`},
		{"core.v1.PodSpec", "topologySpreadConstraints", `{"x-kubernetes-list-map-keys":["topologyKey","whenUnsatisfiable"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"topologyKey","x-kubernetes-patch-strategy":"merge"}`},
		{"core.v1.PodSpec", "nodeSelector", `{"x-kubernetes-map-type":"atomic"}`},
		{"core.v1.PodSpec", "volumes", `{"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge,retainKeys"}`},
		{"core.v1.Container", "command", `{"x-kubernetes-list-type":"atomic"}`},
		{"core.v1.Container", "ports", `{"x-kubernetes-list-map-keys":["containerPort","protocol"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"containerPort","x-kubernetes-patch-strategy":"merge"}`},
		{"core.v1.ContainerPort", "protocol", `{"default":"TCP"}`},
		{"core.v1.AzureDiskVolumeSource", "cachingMode", `{"default":"ReadWrite"}`},
		{"core.v1.ServiceSpec", "selector", `{"x-kubernetes-map-type":"atomic"}`},
		{"core.v1.ServicePort", "protocol", `{"default":"TCP"}`},
		{"core.v1.NodeSelector", "", `{"required":["nodeSelectorTerms"],"x-kubernetes-map-type":"atomic"}`},
		{"core.v1.SecretKeySelector", "", `{"required":["key"],"x-kubernetes-map-type":"atomic"}`},
		{"networking.v1.IngressRule", "", `{}`},
		{"networking.v1.HTTPIngressRuleValue", "paths", `{"x-kubernetes-list-type":"atomic"}`},
		{"networking.v1.HTTPIngressPath", "", `{"required":["pathType","backend"]}`},
		{"apps.v1.DeploymentStatus", "conditions", `{"x-kubernetes-list-map-keys":["type"],"x-kubernetes-list-type":"map","x-kubernetes-patch-merge-key":"type","x-kubernetes-patch-strategy":"merge"}`},
	} {
		s := definitions["io.k8s.api."+c.definition]
		if c.property != "" {
			s = s.Properties[c.property]
			s.Required = nil
		}
		markers := map[string]any{}
		for name, value := range s.Extensions {
			if name != "x-kubernetes-group-version-kind" {
				markers[name] = value
			}
		}
		if s.Default != nil {
			markers["default"] = s.Default
		}
		if len(s.Required) > 0 {
			markers["required"] = s.Required
		}
		got, err := json.Marshal(markers)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s.%s\n got %s\nwant %s", c.definition, c.property, got, c.want)
		}
	}
}

func TestKubernetesEnumerations(t *testing.T) {
	b := schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Group: "example.com", Version: "v1"}})
	b.AddType(reflect.TypeFor[corev1.Pod]())
	b.AddType(reflect.TypeFor[corev1.PersistentVolumeClaim]())
	definitions := b.Definitions()
	property := func(definition, name string) spec.Schema {
		return definitions["io.k8s.api.core.v1."+definition].Properties[name]
	}
	for _, c := range []struct {
		got  spec.Schema
		want []any
	}{
		{property("PodSpec", "restartPolicy"), []any{"Always", "Never", "OnFailure"}},
		{property("Toleration", "operator"), []any{"Equal", "Exists", "Gt", "Lt"}},
		{property("HostPathVolumeSource", "type"), []any{"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"}}, // a pointer
		{*property("PersistentVolumeClaimSpec", "accessModes").Items.Schema, []any{"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}},
		{property("PodSpec", "nodeName"), nil},
		{property("PodCondition", "type"), nil}, // a type with constants that is not an enumeration
	} {
		if diff := cmp.Diff(c.want, c.got.Enum); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.got.Description, diff)
		}
	}
}

// The SwaggerDoc of a field ends at a drawing in its comment. The description must not present that part as the whole text.
func TestTextsThatAreCutSaySo(t *testing.T) {
	b := schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Group: "example.com", Version: "v1"}})
	b.AddType(reflect.TypeFor[corev1.TopologySpreadConstraint]())
	properties := b.Definitions()["io.k8s.api.core.v1.TopologySpreadConstraint"].Properties
	for name, p := range properties {
		cut := strings.HasSuffix(p.Description, "(The rest of this text is in https://kubernetes.io/docs/reference/kubernetes-api/.)")
		if want := slices.Contains([]string{"maxSkew", "minDomains", "whenUnsatisfiable"}, name); cut != want {
			t.Errorf("%s ends %.60q, cut: want %v", name, p.Description[max(0, len(p.Description)-60):], want)
		}
	}
}

// A program's own package v1 has a PodSpec too. Neither type gets the comments of the other.
func TestNamesakesOfKubernetesTypesKeepTheirComments(t *testing.T) {
	docs, err := schema.ParseDocs(widgets.Source)
	if err != nil {
		t.Fatal(err)
	}
	b := schema.NewBuilder(schema.Options{GroupVersion: apischema.GroupVersion{Group: "example.com", Version: "v1"}, Docs: docs})
	own, theirs := b.AddType(reflect.TypeFor[widgets.PodSpec]()), b.AddType(reflect.TypeFor[corev1.PodSpec]())
	definitions := b.Definitions()
	if got := definitions[own].Properties["volumes"].Extensions["x-kubernetes-list-type"]; got != "set" {
		t.Errorf("volumes of the program's own PodSpec are a %v, want a set", got)
	}
	if got := definitions[theirs].Properties["volumes"].Extensions["x-kubernetes-list-type"]; got != "map" {
		t.Errorf("volumes of the PodSpec of Kubernetes are a %v, want a map", got)
	}
}

// kubernetesPackages returns the packages of a module that have API types; nil means all.
func kubernetesPackages(module string) []string {
	switch module {
	case "k8s.io/api":
		return nil
	case "k8s.io/apiextensions-apiserver":
		return []string{"pkg/apis/apiextensions/v1"}
	}
	return []string{"pkg/apis/meta/v1", "pkg/apis/meta/v1beta1", "pkg/runtime", "pkg/util/intstr", "pkg/api/resource", "pkg/version"}
}

func makeKubernetesTable(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	var heads, bodies []string
	for _, module := range []string{"k8s.io/api", "k8s.io/apimachinery", "k8s.io/apiextensions-apiserver"} {
		output, err := exec.Command("go", "list", "-m", "-f", "{{.Version}} {{.Dir}}", module).Output()
		if err != nil {
			t.Fatalf("find the source of %s: %v", module, err)
		}
		version, dir, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
		heads = append(heads, module+" "+version)
		bodies = append(bodies, modulePackages(t, module, dir, kubernetesPackages(module))...)
	}
	slices.Sort(bodies)
	fmt.Fprintf(&out, "# What the comments of %s say of their types:\n", strings.Join(heads, ", "))
	out.WriteString("# one marker a line, below the package. Made by go test -run TestKubernetesTable -update; never edited.\n")
	for _, body := range bodies {
		out.WriteString(body)
	}
	return out.Bytes()
}

// modulePackages returns a part of the table for every wanted package that declares structs.
func modulePackages(t *testing.T, module, dir string, wanted []string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(p string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.IsDir():
			return nil
		case entry.Name() == "testdata":
			return fs.SkipDir
		}
		below, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		below = filepath.ToSlash(below)
		if wanted != nil && !slices.Contains(wanted, below) {
			return nil
		}
		source, err := parseKubernetesPackage(p)
		if err != nil {
			return err
		}
		if facts := source.facts(); len(source.structs) > 0 {
			out = append(out, "\npackage "+path.Join(module, below)+"\n"+strings.Join(facts, ""))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// kubernetesPackage is the source of one package.
type kubernetesPackage struct {
	structs map[string]*ast.TypeSpec
	docs    map[string]*ast.CommentGroup // of the structs
	strings map[string]string            // constants
	enums   map[string]bool              // types whose values are constants
	values  map[string][]string          // constants by their type
}

func parseKubernetesPackage(dir string) (*kubernetesPackage, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &kubernetesPackage{structs: map[string]*ast.TypeSpec{}, docs: map[string]*ast.CommentGroup{}, strings: map[string]string{}, enums: map[string]bool{}, values: map[string][]string{}}
	for _, name := range files {
		base := filepath.Base(name)
		if strings.HasSuffix(base, "_test.go") || strings.Contains(base, "generated") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok {
				for _, s := range gen.Specs {
					p.add(gen, s)
				}
			}
		}
	}
	return p, nil
}

func (p *kubernetesPackage) add(gen *ast.GenDecl, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for i, name := range s.Names {
			if i < len(s.Values) && gen.Tok == token.CONST {
				if lit, ok := s.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					p.strings[name.Name], _ = strconv.Unquote(lit.Value)
					if typ, ok := s.Type.(*ast.Ident); ok {
						p.values[typ.Name] = append(p.values[typ.Name], p.strings[name.Name])
					}
				}
			}
		}
	case *ast.TypeSpec:
		doc := s.Doc
		if doc == nil && len(gen.Specs) == 1 {
			doc = gen.Doc
		}
		if typ, ok := s.Type.(*ast.Ident); ok && typ.Name == "string" && slices.Contains(markersOf(doc), [2]string{"enum", ""}) {
			p.enums[s.Name.Name] = true
		}
		if _, ok := s.Type.(*ast.StructType); ok && s.Name.IsExported() {
			p.structs[s.Name.Name] = s
			if p.docs[s.Name.Name] = s.Doc; s.Doc == nil && len(gen.Specs) == 1 {
				p.docs[s.Name.Name] = gen.Doc
			}
		}
	}
}

// facts returns the lines of the table for one package.
func (p *kubernetesPackage) facts() []string {
	var out []string
	for name := range p.enums {
		slices.Sort(p.values[name])
		for _, value := range slices.Compact(p.values[name]) {
			out = append(out, fmt.Sprintf("%s enum=%q\n", name, value))
		}
	}
	for name, s := range p.structs {
		for _, m := range markersOf(p.docs[name]) {
			if m[0] == "mapType" || m[0] == "structType" {
				out = append(out, name+" "+m[0]+"="+m[1]+"\n")
			}
		}
		for _, f := range s.Type.(*ast.StructType).Fields.List {
			names := f.Names
			if len(names) == 0 {
				names = []*ast.Ident{embeddedName(f.Type)}
			}
			for _, n := range names {
				for _, fact := range p.fieldFacts(f) {
					out = append(out, name+"."+n.Name+" "+fact+"\n")
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { // by type and field; the order of list-map keys stays
		nameA, _, _ := strings.Cut(a, " ")
		nameB, _, _ := strings.Cut(b, " ")
		return strings.Compare(nameA, nameB)
	})
	return out
}

func embeddedName(expr ast.Expr) *ast.Ident {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return embeddedName(e.X)
	case *ast.SelectorExpr:
		return e.Sel
	}
	return expr.(*ast.Ident)
}

// fieldFacts returns the lines of the table for a field. They contain whether it is required only if the schema of a Go field
// with this type and tag would differ: in kube-apiserver, a field without omitempty is required.
func (p *kubernetesPackage) fieldFacts(f *ast.Field) []string {
	var out []string
	tag := ""
	if f.Tag != nil {
		tag, _ = strconv.Unquote(f.Tag.Value)
	}
	name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if name == "-" || name == "" {
		return nil
	}
	omitempty := slices.Contains(strings.Split(options, ","), "omitempty")
	omitted := omitempty || slices.Contains(strings.Split(options, ","), "omitzero")
	_, pointer := f.Type.(*ast.StarExpr)
	required := !omitempty
	for _, m := range markersOf(f.Doc) {
		switch m[0] {
		case "listType", "listMapKey", "mapType", "structType":
			out = append(out, m[0]+"="+m[1])
		case "default":
			out = append(out, "default="+p.constant(m[1]))
		case "optional", "required":
			required = m[0] == "required"
		}
	}
	if f.Doc != nil && slices.ContainsFunc(f.Doc.List, func(l *ast.Comment) bool { // SwaggerDoc ends there
		line := strings.TrimSpace(strings.TrimPrefix(l.Text, "//"))
		return line != "---" && strings.Contains(line, "---")
	}) {
		out = append(out, "cut")
	}
	switch ours := !omitted && !pointer; {
	case required && !ours:
		out = append(out, "required")
	case !required && ours:
		out = append(out, "optional")
	}
	return out
}

// constant returns the JSON of a default, which may refer to a constant of the package.
func (p *kubernetesPackage) constant(value string) string {
	if name, ok := strings.CutPrefix(value, "ref("); ok {
		text, _ := json.Marshal(p.strings[strings.TrimSuffix(name, ")")])
		return string(text)
	}
	return value
}

// markersOf returns the names and values of the markers in a comment.
func markersOf(c *ast.CommentGroup) [][2]string {
	var out [][2]string
	if c == nil {
		return nil
	}
	for _, line := range c.List {
		if text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(line.Text, "//")), "+"); ok {
			name, value, _ := strings.Cut(text, "=")
			out = append(out, [2]string{strings.TrimSpace(name), strings.TrimSpace(value)})
		}
	}
	return out
}
