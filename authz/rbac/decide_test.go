package rbac_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func rule(verbs, groups, resources, names string) rbacv1.PolicyRule {
	split := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(strings.ReplaceAll(s, "core", ""), " ")
	}
	return rbacv1.PolicyRule{Verbs: split(verbs), APIGroups: split(groups), Resources: split(resources), ResourceNames: split(names)}
}

func paths(verbs string, urls ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: strings.Fields(verbs), NonResourceURLs: urls}
}

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: named("", name), Rules: rules}
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: named(namespace, name), Rules: rules}
}

// subjects parses "User/alice Group/dev ServiceAccount/ns/robot".
func subjects(text string) (out []rbacv1.Subject) {
	for one := range strings.FieldsSeq(text) {
		kind, name, _ := strings.Cut(one, "/")
		s := rbacv1.Subject{Kind: kind, Name: name, APIGroup: rbacv1.GroupName}
		if kind == rbacv1.ServiceAccountKind {
			s.Namespace, s.Name, _ = strings.Cut(name, "/")
			s.APIGroup = ""
		}
		out = append(out, s)
	}
	return out
}

func clusterBinding(name, role, to string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("", name), Subjects: subjects(to),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

// binding returns a binding of a role such as "Role/a".
func binding(namespace, name, role, to string) *rbacv1.RoleBinding {
	kind, role, _ := strings.Cut(role, "/")
	return &rbacv1.RoleBinding{
		ObjectMeta: named(namespace, name), Subjects: subjects(to),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
	}
}

// request parses "get apps/deployments/scale namespace name" and "get /path"; "-" is an empty namespace, and "core" an empty
// group.
func request(user, groups, text string) authz.Attributes {
	a := authz.Attributes{User: &authn.User{Name: user, Groups: strings.Fields(groups)}}
	parts := strings.Fields(text)
	a.Verb = parts[0]
	if strings.HasPrefix(parts[1], "/") {
		a.Path = parts[1]
		return a
	}
	a.ResourceRequest = true
	what := strings.SplitN(parts[1], "/", 3)
	if a.APIGroup, a.Resource = what[0], what[1]; a.APIGroup == "core" {
		a.APIGroup = ""
	}
	if len(what) == 3 {
		a.Subresource = what[2]
	}
	if len(parts) > 2 && parts[2] != "-" {
		a.Namespace = parts[2]
	}
	if len(parts) > 3 {
		a.Name = parts[3]
	}
	return a
}

func static(t testing.TB, objects ...runtime.Object) *rbac.Policy {
	t.Helper()
	p, err := rbac.Static(objects...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	policy := static(
		t,
		clusterRole("everything", rule("*", "*", "*", ""), paths("*", "*")),
		clusterRole("pods", rule("get list", "core", "pods", "")),
		clusterRole("logs", rule("get", "core", "pods/log", "")),
		clusterRole("scale", rule("update", "*", "*/scale", "")),
		clusterRole("one", rule("get list create delete deletecollection", "core", "secrets", "a b")),
		clusterRole("urls", paths("get", "/healthz", "/livez/*", "/debug*", "/x**")),
		role("ns", "config", rule("get", "core", "configmaps", "")),
		clusterBinding("admins", "everything", "Group/admins"),
		clusterBinding("readers", "pods", "Group/dev User/alice ServiceAccount/ns/robot"),
		clusterBinding("logs", "logs", "User/alice"),
		clusterBinding("scalers", "scale", "User/scaler"),
		clusterBinding("one", "one", "User/one"),
		clusterBinding("urls", "urls", "User/web"),
		clusterBinding("nothing", "gone", "User/lost"),
		binding("ns", "config", "Role/config", "User/alice ServiceAccount//local ServiceAccount/other/robot"),
		binding("ns", "wide", "ClusterRole/everything", "User/owner"),
		binding("ns", "nothing", "Role/gone", "User/lost User/twice"),
		binding("ns", "elsewhere", "Role/elsewhere", "User/twice"),
		binding("ns", "again", "Role/gone", "User/twice"),
		role("elsewhere", "elsewhere", rule("*", "*", "*", "")),
	)
	const readers = `RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "pods" to `
	for _, c := range []struct{ user, groups, request, want string }{
		{"alice", "", "get core/pods ns a", readers + `User "alice"`},
		{"alice", "", "get core/pods", readers + `User "alice"`},
		{"alice", "dev", "get core/pods ns a", readers + `Group "dev"`}, // the first subject
		{"bob", "x dev", "list core/pods", readers + `Group "dev"`},
		{"system:serviceaccount:ns:robot", "", "get core/pods other", readers + `ServiceAccount "robot/ns"`},
		{"system:serviceaccount:other:robot", "", "get core/pods other", ""},
		{"alice", "", "delete core/pods ns a", ""},
		{"alice", "", "GET core/pods ns a", ""},
		{"alice", "", "get apps/pods ns a", ""},
		{"alice", "", "get core/pods/log ns a", `RBAC: allowed by ClusterRoleBinding "logs" of ClusterRole "logs" to User "alice"`},
		{"alice", "", "get core/pods/exec ns a", ""},
		{"alice", "", "get core/log ns a", ""},
		{"Alice", "", "get core/pods ns a", ""},
		{"dev", "", "get core/pods ns a", ""},
		{"bob", "alice", "get core/pods ns a", ""},
		{"scaler", "", "update apps/deployments/scale ns a", `RBAC: allowed by ClusterRoleBinding "scalers" of ClusterRole "scale" to User "scaler"`},
		{"scaler", "", "update apps/deployments ns a", ""},
		{"scaler", "", "update apps/deployments/status ns a", ""},
		{"scaler", "", "update apps/scale ns a", ""},
		{"one", "", "get core/secrets ns b", `RBAC: allowed by ClusterRoleBinding "one" of ClusterRole "one" to User "one"`},
		{"one", "", "get core/secrets ns c", ""},
		{"one", "", "list core/secrets ns", ""},
		{"one", "", "create core/secrets ns", ""},
		{"one", "", "deletecollection core/secrets ns", ""},
		{"one", "", "list core/secrets ns a", `RBAC: allowed by ClusterRoleBinding "one" of ClusterRole "one" to User "one"`}, // by metadata.name
		{"web", "", "get /healthz", `RBAC: allowed by ClusterRoleBinding "urls" of ClusterRole "urls" to User "web"`},
		{"web", "", "get /healthz/", ""},
		{"web", "", "get /livez", ""},
		{"web", "", "get /livez/a/b", `RBAC: allowed by ClusterRoleBinding "urls" of ClusterRole "urls" to User "web"`},
		{"web", "", "get /debugger", `RBAC: allowed by ClusterRoleBinding "urls" of ClusterRole "urls" to User "web"`},
		{"web", "", "get /xy", `RBAC: allowed by ClusterRoleBinding "urls" of ClusterRole "urls" to User "web"`},
		{"web", "", "post /healthz", ""},
		{"nobody", "admins", "post /anything", `RBAC: allowed by ClusterRoleBinding "admins" of ClusterRole "everything" to Group "admins"`},
		{"nobody", "admins", "any x/y/z ns n", `RBAC: allowed by ClusterRoleBinding "admins" of ClusterRole "everything" to Group "admins"`},
		{"alice", "", "get core/configmaps ns a", `RBAC: allowed by RoleBinding "config/ns" of Role "config" to User "alice"`},
		{"alice", "", "get core/configmaps other a", ""},
		{"alice", "", "get core/configmaps", ""},
		{"system:serviceaccount:ns:local", "", "get core/configmaps ns a", `RBAC: allowed by RoleBinding "config/ns" of Role "config" to ServiceAccount "local/ns"`},
		{"system:serviceaccount:other:robot", "", "get core/configmaps ns a", `RBAC: allowed by RoleBinding "config/ns" of Role "config" to ServiceAccount "robot/other"`},
		{"system:serviceaccount:other:local", "", "get core/configmaps ns a", ""},
		{"owner", "", "delete apps/deployments ns a", `RBAC: allowed by RoleBinding "wide/ns" of ClusterRole "everything" to User "owner"`},
		{"owner", "", "delete core/namespaces ns ns", `RBAC: allowed by RoleBinding "wide/ns" of ClusterRole "everything" to User "owner"`},
		{"owner", "", "delete core/nodes - a", ""},
		{"owner", "", "get /healthz", ""},
		{"lost", "", "get core/pods other", `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`},
		{"lost", "", "get core/pods ns", `RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "gone" not found]`},
		{"lost", "dev", "get core/pods ns", readers + `Group "dev"`},
		{"lost", "", "get /healthz", `RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`},
		{"twice", "", "get core/pods ns", `RBAC: [role.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "elsewhere" not found]`},
		{"", "", "get core/pods ns", ""},
	} {
		verdict, reason, err := policy.Authorize(t.Context(), request(c.user, c.groups, c.request))
		want := authz.NoOpinion
		if strings.HasPrefix(c.want, "RBAC: allowed") {
			want = authz.Allow
		}
		if verdict != want || reason != c.want || err != nil {
			t.Errorf("%s in %q: %s: %v %q %v, want %v %q", c.user, c.groups, c.request, verdict, reason, err, want, c.want)
		}
	}
}

// TestDecisionsOfKubernetes compares with the decisions of a kube-apiserver with the same objects.
func TestDecisionsOfKubernetes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/kube-apiserver.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded struct {
		Objects []json.RawMessage
		Reviews []struct {
			authorizationv1.SubjectAccessReviewSpec
			authorizationv1.SubjectAccessReviewStatus
		}
	}
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, one := range recorded.Objects {
		objects = append(objects, parse(t, one))
	}
	policy, allowed := static(t, objects...), 0
	for _, r := range recorded.Reviews {
		a := authz.Attributes{User: &authn.User{Name: r.User, Groups: r.Groups}}
		if of := r.ResourceAttributes; of != nil {
			a.ResourceRequest = true
			a.Verb, a.APIGroup, a.Resource, a.Subresource, a.Namespace, a.Name = of.Verb, of.Group, of.Resource, of.Subresource, of.Namespace, of.Name
		} else {
			a.Verb, a.Path = r.NonResourceAttributes.Verb, r.NonResourceAttributes.Path
		}
		verdict, reason, err := policy.Authorize(t.Context(), a)
		if why := wrong(objects, a, verdict, reason, err); why != "" {
			t.Errorf("%s: %s", describe(a), why)
		}
		// If there are several reasons, the reason depends on the order in which kube-apiserver has the bindings.
		theirs := authz.NoOpinion
		if r.Allowed {
			theirs = authz.Allow
			allowed++
		}
		if why := wrong(objects, a, theirs, strings.TrimPrefix(r.Reason, "rbac: "), nil); why != "" || verdict != theirs {
			t.Errorf("%s: %v, kube-apiserver says %v %q; the test's own: %s", describe(a), verdict, theirs, r.Reason, why)
		}
	}
	if allowed < 100 || len(recorded.Reviews) < 500 {
		t.Errorf("%d decisions, %d allowed", len(recorded.Reviews), allowed)
	}
}

func parse(t *testing.T, text []byte) runtime.Object {
	t.Helper()
	var kind metav1.TypeMeta
	if err := json.Unmarshal(text, &kind); err != nil {
		t.Fatal(err)
	}
	var obj runtime.Object
	switch kind.Kind {
	case "ClusterRole":
		obj = &rbacv1.ClusterRole{}
	case "Role":
		obj = &rbacv1.Role{}
	case "ClusterRoleBinding":
		obj = &rbacv1.ClusterRoleBinding{}
	case "RoleBinding":
		obj = &rbacv1.RoleBinding{}
	}
	if err := json.Unmarshal(text, obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// random makes objects and requests from few names, so that they often match.
type random struct{ *rand.Rand }

func (r random) one(of ...string) string { return of[r.IntN(len(of))] }

func (r random) some(of ...string) (out []string) {
	for _, i := range r.Perm(len(of))[:r.IntN(3)] {
		out = append(out, of[i])
	}
	return out
}

func (r random) rules() (out []rbacv1.PolicyRule) {
	for range r.IntN(3) {
		out = append(out, rbacv1.PolicyRule{
			Verbs:           append(r.some("get", "list", "*"), "get"),
			APIGroups:       r.some("", "apps", "*"),
			Resources:       r.some("pods", "pods/log", "*/log", "*", "nodes", "log"),
			ResourceNames:   r.some("", "a", "b"),
			NonResourceURLs: r.some("*", "/a", "/a/*", "/a*", "/b**"),
		})
	}
	return out
}

func (r random) subjects() (out []rbacv1.Subject) {
	for range r.IntN(4) {
		out = append(out, rbacv1.Subject{
			Kind: r.one("User", "Group", "ServiceAccount", "Other"), Namespace: r.one("", "a", "b"),
			Name: r.one("x", "y", "z", "system:serviceaccount:a:x"),
		})
	}
	return out
}

func (r random) object() runtime.Object {
	name, namespace := r.one("1", "2", "3", "4", "5", "6", "7", "8"), r.one("a", "b", "c")
	ref := rbacv1.RoleRef{Kind: r.one("Role", "ClusterRole"), Name: r.one("1", "2", "3", "4", "5", "9")}
	switch r.IntN(4) {
	case 0:
		return clusterRole(name, r.rules()...)
	case 1:
		return role(namespace, name, r.rules()...)
	case 2:
		return &rbacv1.ClusterRoleBinding{ObjectMeta: named("", name), RoleRef: ref, Subjects: r.subjects()}
	}
	return &rbacv1.RoleBinding{ObjectMeta: named(namespace, name), RoleRef: ref, Subjects: r.subjects()}
}

func (r random) request() authz.Attributes {
	a := authz.Attributes{
		User: &authn.User{
			Name:   r.one("x", "y", "nobody", "system:serviceaccount:a:x", "system:serviceaccount:b:y"),
			Groups: r.some("x", "y", "z", "system:serviceaccount:a:x"),
		},
		Verb: r.one("get", "list", "delete"),
	}
	if r.IntN(4) == 0 {
		a.Path = r.one("/a", "/a/", "/a/b", "/ab", "/bc", "/c")
		return a
	}
	a.ResourceRequest = true
	a.APIGroup, a.Resource, a.Subresource = r.one("", "apps", "x"), r.one("pods", "nodes", "log"), r.one("", "", "log", "og")
	a.Namespace, a.Name = r.one("", "a", "b", "c", "d"), r.one("", "a", "b", "c")
	return a
}

// TestRandomPolicies compares decisions with those of a search in all objects, after each of many changes. The index must be the
// same as one that is built at once, and the previous index must be unchanged.
func TestRandomPolicies(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r, w := random{rand.New(rand.NewPCG(seed, 1))}, newWorld()
			a, err := rbac.New(w, rbac.Options{})
			if err != nil {
				t.Fatal(err)
			}
			last := a.Pin(t.Context()).(*rbac.Policy)
			for range 200 {
				before := rbac.Dump(last)
				for range 1 + r.IntN(3) {
					if obj := r.object(); r.IntN(3) == 0 {
						w.drop(obj)
					} else {
						w.put(obj)
					}
				}
				if r.IntN(20) == 0 { // the next reading reads all objects
					w.set(func() { w.compacted = w.revision })
				}
				policy := a.Pin(t.Context()).(*rbac.Policy)
				if diff := cmp.Diff(before, rbac.Dump(last)); diff != "" {
					t.Fatalf("the policy before has changed:\n%s", diff)
				}
				last = policy
				objects := w.at(policy.Revision())
				fresh, err := rbac.New(w, rbac.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(rbac.Dump(fresh.Pin(t.Context()).(*rbac.Policy)), rbac.Dump(policy)); diff != "" {
					t.Fatalf("the index after changes is not the one that is made at once:\n%s", diff)
				}
				for range 20 {
					asked := r.request()
					verdict, reason, err := policy.Authorize(t.Context(), asked)
					if why := wrong(objects, asked, verdict, reason, err); why != "" {
						t.Fatalf("%s: %s", describe(asked), why)
					}
				}
			}
		})
	}
}

func TestRulesFor(t *testing.T) {
	t.Parallel()
	policy := static(
		t,
		clusterRole("pods", rule("get", "core", "pods", "a"), paths("get", "/x")),
		clusterRole("all", rule("*", "*", "*", ""), paths("*", "*")),
		role("ns", "config", rule("list", "core", "configmaps", "")),
		clusterBinding("pods", "pods", "User/u Group/g"),
		clusterBinding("gone", "gone", "User/lost"),
		binding("ns", "config", "Role/config", "Group/g"),
		binding("other", "all", "ClusterRole/all", "User/u"),
	)
	pods := authz.ResourceRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"a"}}
	x := authz.PathRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/x"}}
	config := authz.ResourceRule{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}
	all := authz.ResourceRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	for _, c := range []struct {
		user, groups, namespace string
		want                    authz.Rules
		err                     string
	}{
		{"u", "g", "ns", authz.Rules{Resources: []authz.ResourceRule{pods, config}, Paths: []authz.PathRule{x}}, ""},
		{"u", "g", "", authz.Rules{Resources: []authz.ResourceRule{pods}, Paths: []authz.PathRule{x}}, ""},
		{"u", "", "other", authz.Rules{
			Resources: []authz.ResourceRule{pods, all},
			Paths:     []authz.PathRule{x, {Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
		}, ""},
		{"nobody", "", "nowhere", authz.Rules{}, ""},
		{"lost", "", "ns", authz.Rules{}, `clusterrole.rbac.authorization.k8s.io "gone" not found`},
	} {
		got, err := policy.RulesFor(t.Context(), &authn.User{Name: c.user, Groups: strings.Fields(c.groups)}, c.namespace)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if diff := cmp.Diff(c.want, got); diff != "" || text != c.err {
			t.Errorf("%s in %s: %q\n%s", c.user, c.namespace, text, diff)
		}
	}
}

func TestRulesForNobody(t *testing.T) {
	t.Parallel()
	if got, err := static(t, clusterRole("a")).RulesFor(t.Context(), nil, "ns"); err != nil || len(got.Resources) > 0 || got.Incomplete {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestMissingRolesAreBounded checks that the length of a reason does not depend on the number of missing roles.
func TestMissingRolesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for i := range 50 {
		w.put(clusterBinding(fmt.Sprint(i), fmt.Sprint("role-", i), "User/u"))
	}
	a, err := rbac.New(w, rbac.Options{MaxMissing: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, reason, _ := a.Authorize(t.Context(), request("u", "", "get core/pods"))
	const want = `RBAC: [clusterrole.rbac.authorization.k8s.io "role-0" not found, clusterrole.rbac.authorization.k8s.io "role-1" not found, and more]`
	if reason != want {
		t.Error(reason)
	}
}

func TestStaticRefuses(t *testing.T) {
	t.Parallel()
	good := clusterRole("a")
	for _, c := range []struct {
		objects []runtime.Object
		want    string
	}{
		{[]runtime.Object{good, nil}, "object 1 is nil"},
		{[]runtime.Object{good, good}, `ClusterRole "a" is given twice`},
		{[]runtime.Object{&rbacv1.RoleList{}}, "object 0: a *v1.RoleList is no role or binding of rbac.authorization.k8s.io/v1"},
		{[]runtime.Object{clusterRole("")}, "metadata.name: Required value"},
		{[]runtime.Object{clusterRole("a/b")}, `ClusterRole "a/b": metadata.name: Invalid value: "a/b": may not contain '/'`},
		{[]runtime.Object{role("", "a")}, "metadata.namespace: Required value"},
		{[]runtime.Object{&rbacv1.ClusterRole{ObjectMeta: named("ns", "a")}}, "metadata.namespace: Forbidden: not allowed on this type"},
		{[]runtime.Object{role("ns", "a", paths("get", "/x"))}, "namespaced rules cannot apply to non-resource URLs"},
		{[]runtime.Object{clusterBinding("a", "b", "user/x")}, `subjects[0].kind: Unsupported value: "user": supported values: "ServiceAccount", "User", "Group"`},
	} {
		_, err := rbac.Static(c.objects...)
		contains(t, err, c.want)
	}
	mine := &rbacv1.ClusterRoleBinding{
		ObjectMeta: named("", "a"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "a"},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: "u"}},
	}
	policy := static(t, mine)
	if mine.RoleRef.APIGroup != "" || mine.Subjects[0].APIGroup != "" {
		t.Error("the caller's object was changed")
	}
	mine.Subjects[0].Name = "other"
	if _, reason, _ := policy.Authorize(t.Context(), request("u", "", "get core/pods")); reason == "" {
		t.Error("the policy changes with the caller's object")
	}
}
