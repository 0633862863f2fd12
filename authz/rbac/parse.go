package rbac

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/runtime/codec"
	"go.yaml.in/yaml/v3"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

const (
	// MaxObjects is the maximum number of roles and bindings that Parse accepts.
	MaxObjects = 10_000
	// mostFaults bounds the faults that an error of Parse names.
	mostFaults = 20
)

// Parse is ParseWarned without the warnings.
func Parse(text []byte) ([]runtime.Object, error) {
	objects, _, err := ParseWarned(text)
	return objects, err
}

// ParseWarned returns the roles and bindings in a text in YAML or JSON: one in each document, or several in a List of v1, of
// rbac.authorization.k8s.io/v1. Documents are separated by lines "---". The objects have their defaults and are for [Static].
//
// An error is of the type [ParseError], which has at most 20, such as
//
//	line 12: ClusterRole "reader": rules[0].verbs: Required value
//
// Faults are a field that the kind does not have, a value that a server would refuse, and an object that is there twice. The
// warnings, at most 20, name bindings to roles that are not in the text, such as
//
//	line 20: ClusterRoleBinding "readers": there is no ClusterRole "raeder"
func ParseWarned(text []byte) (objects []runtime.Object, warnings []Fault, err error) {
	p := &parser{known: map[string]int{}}
	for _, d := range documentsOf(text) {
		if p.document(d); len(p.faults) > mostFaults {
			break
		}
	}
	if len(p.faults) > 0 {
		return nil, nil, ParseError(sorted(p.faults))
	}
	for _, b := range p.bound {
		if _, known := p.known[b.role]; !known {
			warnings = append(warnings, Fault{b.line, fmt.Sprintf("%s: there is no %s", b.by, b.role)})
		}
	}
	return p.objects, sorted(warnings), nil
}

// Fault is what is wrong in a line of a text.
type Fault struct {
	Line int
	Text string
}

// String returns the line and the text.
func (f Fault) String() string { return fmt.Sprintf("line %d: %s", f.Line, f.Text) }

// ParseError has the faults of a text, in the order of their lines.
type ParseError []Fault

// Error has a line for each fault.
func (f ParseError) Error() string { return f.In("") }

// In is Error with the name of a file before each line, unless the name is "".
func (f ParseError) In(file string) string {
	lines := make([]string, len(f))
	for i, fault := range f {
		if lines[i] = fault.String(); file != "" {
			lines[i] = file + ": " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}

// sorted sorts the faults, and has the last one say so if there are too many.
func sorted(f []Fault) []Fault {
	slices.SortStableFunc(f, func(a, b Fault) int { return a.Line - b.Line })
	if len(f) > mostFaults {
		f = f[:mostFaults+1]
		f[mostFaults].Text = "and more"
	}
	return f
}

// document is a document of a text.
type document struct {
	text   []byte
	before int // number of lines before it
}

func documentsOf(text []byte) []document {
	var all []document
	d, lines := document{}, 0
	end := func() {
		if len(bytes.TrimSpace(d.text)) > 0 {
			all = append(all, d)
		}
		d = document{before: lines}
	}
	for line := range bytes.Lines(text) {
		rest, marks := bytes.CutPrefix(line, []byte("---"))
		if marks && len(bytes.TrimSpace(rest[:min(1, len(rest))])) == 0 {
			end()
			line = rest // a document may begin after the marker
		}
		d.text = append(d.text, line...)
		lines++
	}
	end()
	return all
}

// parser collects objects and faults.
type parser struct {
	objects []runtime.Object
	known   map[string]int // lines of the objects, by their kinds and names
	bound   []bound
	faults  []Fault
	before  int // number of lines before the current document
}

// bound is a role that a binding names.
type bound struct {
	line     int
	by, role string // kinds and names
}

func (p *parser) fault(at *yaml.Node, format string, args ...any) {
	p.faults = append(p.faults, Fault{p.before + at.Line, fmt.Sprintf(format, args...)})
}

// library adds an error of a YAML library, which may name a line of the document.
func (p *parser) library(at *yaml.Node, err error) {
	text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	if m := regexp.MustCompile(`\bline (\d+): (.*)$`).FindStringSubmatch(text); m != nil {
		if line, err := strconv.Atoi(m[1]); err == nil {
			at, text = &yaml.Node{Line: line}, m[2]
		}
	}
	p.fault(at, "%s", text)
}

// document adds the objects of a document.
func (p *parser) document(d document) {
	p.before = d.before
	var root yaml.Node
	if err := yaml.Unmarshal(d.text, &root); err != nil {
		p.library(&yaml.Node{Line: 1}, err)
		return
	}
	if root.Kind == 0 { // only comments
		return
	}
	whole, problems, err := codec.YAML().ToJSON(d.text, codec.Strict)
	if err != nil {
		p.library(&root, err)
		return
	}
	for _, problem := range problems {
		p.library(&root, problem)
	}
	var list struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	if json.Unmarshal(whole, &list) == nil && list.APIVersion == "v1" && list.Kind == "List" {
		items := find(root.Content[0], "items")
		for i, item := range list.Items {
			if p.object(find(items, strconv.Itoa(i)), item); len(p.faults) > mostFaults {
				break
			}
		}
		return
	}
	p.object(root.Content[0], whole)
}

// object adds an object.
func (p *parser) object(at *yaml.Node, text []byte) {
	var of struct{ APIVersion, Kind string }
	if err := json.Unmarshal(text, &of); err != nil {
		p.fault(at, "want an object with apiVersion and kind")
		return
	}
	obj := newOfKind(of.Kind)
	if of.APIVersion != rbacv1.SchemeGroupVersion.String() || obj == nil {
		p.fault(at, "the apiVersion is %q and the kind %q: want %s and Role, ClusterRole, RoleBinding or ClusterRoleBinding", of.APIVersion, of.Kind, rbacv1.SchemeGroupVersion)
		return
	}
	problems, err := codec.Unmarshal(text, obj, codec.Strict)
	if err != nil {
		p.fault(at, "%s: %v", of.Kind, err)
		return
	}
	m, err := meta.Accessor(obj)
	if err == nil {
		err = Default(obj)
	}
	if err != nil {
		p.fault(at, "%s: %v", of.Kind, err)
		return
	}
	what := named(of.Kind, m.GetNamespace(), m.GetName())
	for _, problem := range problems {
		_, field, _ := strings.Cut(problem.Error(), `"`)
		field, _, _ = strings.Cut(field, `"`)
		p.fault(find(at, field), "%s: %v", what, problem)
	}
	for _, fault := range faultsOf(obj) {
		p.fault(find(at, fault.Field), "%s: %v", what, fault)
	}
	if first, twice := p.known[what]; twice {
		p.fault(at, "%s is there already, in line %d", what, first)
	}
	if len(p.objects) == MaxObjects {
		p.fault(at, "there are more than %d roles and bindings", MaxObjects)
		return
	}
	p.known[what] = p.before + at.Line
	p.objects = append(p.objects, obj)
	if role := roleOf(obj); role != "" {
		p.bound = append(p.bound, bound{p.before + find(at, "roleRef.name").Line, what, role})
	}
}

// roleOf returns the kind and name of the role of a binding, or "".
func roleOf(obj runtime.Object) string {
	var namespace string
	var ref rbacv1.RoleRef
	switch b := obj.(type) {
	case *rbacv1.ClusterRoleBinding:
		ref = b.RoleRef
	case *rbacv1.RoleBinding:
		namespace, ref = b.Namespace, b.RoleRef
	default:
		return ""
	}
	if ref.Kind == "ClusterRole" {
		namespace = ""
	}
	return named(ref.Kind, namespace, ref.Name)
}

// named returns how messages name an object.
func named(kind, namespace, name string) string {
	return fmt.Sprintf("%s %q", kind, strings.TrimPrefix(namespace+"/"+name, "/"))
}

func newOfKind(kind string) runtime.Object {
	switch kind {
	case "ClusterRole":
		return &rbacv1.ClusterRole{}
	case "Role":
		return &rbacv1.Role{}
	case "ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	case "RoleBinding":
		return &rbacv1.RoleBinding{}
	}
	return nil
}

// find returns the node of a field, such as rules[0].verbs, or the last node on the way to it.
func find(at *yaml.Node, path string) *yaml.Node {
	for step := range strings.FieldsFuncSeq(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		for at.Kind == yaml.AliasNode {
			at = at.Alias
		}
		next := child(at, step)
		if next == nil {
			break
		}
		at = next
	}
	return at
}

// child returns the value of a key of a mapping, or the element of a sequence with an index, or nil.
func child(at *yaml.Node, step string) *yaml.Node {
	switch at.Kind {
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(at.Content) {
			return at.Content[i]
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(at.Content); i += 2 {
			if at.Content[i].Value == step {
				return at.Content[i+1]
			}
		}
	}
	return nil
}
