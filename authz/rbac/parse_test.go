package rbac_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/rbac"
)

const someRoles = `# Who may read.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules:
- verbs: [get, list]
  apiGroups: [example.com]
  resources: [airports]
---
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "readers"},
 "subjects": [{"kind": "Group", "name": "pilots"}], "roleRef": {"kind": "ClusterRole", "name": "reader"}}
--- # a comment
apiVersion: v1
kind: List
items:
- {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader, namespace: lhr}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: crew, namespace: lhr}
  subjects: [{kind: ServiceAccount, name: robot}]
  roleRef: {kind: ClusterRole, name: reader}
---
# nothing
`

func TestParse(t *testing.T) {
	t.Parallel()
	objects, err := rbac.Parse([]byte(someRoles))
	if err != nil || len(objects) != 4 {
		t.Fatalf("%d objects, %v", len(objects), err)
	}
	p, err := rbac.Static(objects...)
	if err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]authz.Verdict{"pilot": authz.Allow, "system:serviceaccount:lhr:robot": authz.Allow, "guest": authz.NoOpinion} {
		a := authz.Attributes{User: &authn.User{Name: user}, ResourceRequest: true, Verb: "get", APIGroup: "example.com", Resource: "airports", Namespace: "lhr"}
		if user == "pilot" {
			a.User.Groups = []string{"pilots"}
		}
		if verdict, reason, _ := p.Authorize(t.Context(), a); verdict != want {
			t.Errorf("%s: %v %q, want %v", user, verdict, reason, want)
		}
	}
	for _, none := range []string{"", "---\n---\n", "# only a comment\n"} {
		if objects, err := rbac.Parse([]byte(none)); len(objects) != 0 || err != nil {
			t.Errorf("%q: %v %v", none, objects, err)
		}
	}
}

// An error names the line, the object and the field of each fault.
func TestParseFaults(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: "
	for text, want := range map[string]string{
		"# a\n" + head + "ClusterRole\nmetadata:\n  name: reader\nrules:\n- verbs: [get]\n  apiGroups: [a]\n  resources: [b]\n- apiGroups: [a]\n  resources: [b]\n": `line 10: ClusterRole "reader": rules[1].verbs: Required value`,
		"---\n---\n" + head + "Role\nmetadata:\n  name: reader\n  namespace: a\nrules:\n- verbs: [get]\n  nonResourceURLs: [/x]\n":                                  `line 10: Role "a/reader": rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs`,
		head + "ClusterRole\nmetadata: {name: a}\nrules:\n- verb: [get]\n  apiGroups: [a]\n  resources: [b]\n  verbs: [get]\n":                                      `line 5: ClusterRole "a": unknown field "rules[0].verb"`,
		head + "ClusterRole\nmetadata: {name: a}\n---\n" + head + "ClusterRole\nmetadata: {name: a}\n":                                                              `line 5: ClusterRole "a" is there already, in line 1`,
		"a: b\n---\na: [\n": "line 1: the apiVersion is \"\" and the kind \"\": want rbac.authorization.k8s.io/v1 and Role, ClusterRole, RoleBinding or ClusterRoleBinding\nline 3: did not find expected node content",
		head + "ClusterRole\nmetadata: {name: a}\n---\n" + head + "ClusterRole\nkind: Role\nmetadata: {name: b}\n": `line 7: key "kind" already set in map`,
		head + "ClusterRole\nmetadata: {name: a}\nrules: 3\n":                                                      `line 1: ClusterRole: json: cannot unmarshal`,
		"- a\n": "line 1: want an object with apiVersion and kind",
		"apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: ClusterRole\n": `line 1: the apiVersion is "rbac.authorization.k8s.io/v1beta1"`,
		"apiVersion: v1\nkind: List\nitems:\n- 3\n- null\n":                  "line 4: want an object",
		head + "RoleBinding\nmetadata: {name: a}\nroleRef: {name: x}\n":      `line 3: RoleBinding "a": metadata.namespace: Required value`,
		head + "ClusterRoleBinding\nmetadata: {name: a}\nsubjects:\n- kind: User\n  name: a\n- kind: Users\n  name: b\nroleRef: {kind: ClusterRole, name: x}\n": `line 7: ClusterRoleBinding "a": subjects[1].kind: Unsupported value: "Users"`,
	} {
		objects, err := rbac.Parse([]byte(text))
		if err == nil || objects != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %s", text, err, want)
		}
	}
	many := strings.Repeat("---\na: b\n", 100_000)
	if _, err := rbac.Parse([]byte(many)); err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "and more") {
		t.Errorf("%v", err)
	}
	list := "apiVersion: v1\nkind: List\nitems: [" + strings.Repeat("1,", 100_000) + "]\n"
	if _, err := rbac.Parse([]byte(list)); err == nil || strings.Count(err.Error(), "\n") != 20 {
		t.Errorf("%.1000v", err)
	}
	var all strings.Builder
	for i := range rbac.MaxObjects + 1 {
		fmt.Fprintf(&all, "---\n{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a%d}}\n", i)
	}
	_, err := rbac.Parse([]byte(all.String()))
	contains(t, err, "line 20002: there are more than 10000 roles and bindings")
}

// A binding to a role that is not in the text is a warning, and faults are in the order of their lines.
func TestParseWarned(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: rbac.authorization.k8s.io/v1\nkind: "
	text := head + "ClusterRoleBinding\nmetadata: {name: readers}\nroleRef:\n  kind: ClusterRole\n  name: raeder\n---\n" +
		head + "RoleBinding\nmetadata: {name: b, namespace: x}\nroleRef: {kind: Role, name: reader}\n---\n" +
		head + "RoleBinding\nmetadata: {name: c, namespace: other}\nroleRef: {kind: Role, name: reader}\n---\n" +
		head + "RoleBinding\nmetadata: {name: d, namespace: x}\nroleRef: {kind: ClusterRole, name: reader}\n---\n" +
		head + "Role\nmetadata: {name: reader, namespace: other}\n---\n" + head + "ClusterRole\nmetadata: {name: reader}\n"
	objects, warnings, err := rbac.ParseWarned([]byte(text))
	const want = "f: line 6: ClusterRoleBinding \"readers\": there is no ClusterRole \"raeder\"\nf: line 11: RoleBinding \"x/b\": there is no Role \"x/reader\""
	if err != nil || len(objects) != 6 || rbac.ParseError(warnings).In("f") != want {
		t.Errorf("%d objects, %v, %s", len(objects), err, rbac.ParseError(warnings).In("f"))
	}
	one := head + "ClusterRoleBinding\nmetadata: {name: a%d}\nroleRef: {kind: ClusterRole, name: x}\n---\n"
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, one, i)
	}
	if _, warnings, err := rbac.ParseWarned([]byte(many.String())); err != nil || len(warnings) != 21 || warnings[20].Text != "and more" {
		t.Errorf("%d warnings, %v, %v", len(warnings), warnings, err)
	}
	text = head + "ClusterRole\nrules:\n- apiGroups: [a]\n  resources: [b]\nmetadata:\n  name: a\n  nome: b\n---\nx: [\n"
	_, err = rbac.Parse([]byte(text))
	const faults = "line 4: ClusterRole \"a\": rules[0].verbs: Required value\n" +
		"line 8: ClusterRole \"a\": unknown field \"metadata.nome\"\nline 10: did not find expected node content"
	if err == nil || err.Error() != faults {
		t.Errorf("the faults are %v\nwant %s", err, faults)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(someRoles)
	for _, file := range []string{"testdata/kube-apiserver.json", "bootstrap/testdata/kube-apiserver.json"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text[:min(len(text), 4096)]))
	}
	f.Add("a: &a [*a]\n--- |\n---\n- &b {b: *b}\n")
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := rbac.Parse([]byte(text))
		if err != nil {
			return
		}
		if _, err := rbac.Static(objects...); err != nil {
			t.Errorf("%q is accepted, and then refused: %v", text, err)
		}
	})
}
