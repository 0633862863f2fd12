package rbac_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestExplain(t *testing.T) {
	policy := static(t,
		clusterRole("everything", rule("*", "*", "*", "")),
		clusterRole("reader", rule("get list", "core", "pods", ""), rule("get", "core", "secrets", "one")),
		clusterRole("unused", rule("delete", "core", "pods", "")),
		role("a", "local", rule("watch", "core", "pods", "")),
		clusterBinding("admins", "everything", "Group/admins"),
		binding("a", "readers", "ClusterRole/reader", "User/joe Group/readers"),
		binding("a", "watchers", "Role/local", "ServiceAccount//robot"),
	)
	for _, test := range []struct{ user, groups, request, want string }{
		{"joe", "", "get core/pods a x", `{"grant":{"binding":{"kind":"RoleBinding","namespace":"a","name":"readers"},"role":{"kind":"ClusterRole","name":"reader"},"subject":{"kind":"User","name":"joe"},"rule":{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]}}}`},
		{"joe", "admins", "get core/pods b x", `{"grant":{"binding":{"kind":"ClusterRoleBinding","name":"admins"},"role":{"kind":"ClusterRole","name":"everything"},"subject":{"kind":"Group","name":"admins"},"rule":{"verbs":["*"],"apiGroups":["*"],"resources":["*"]}}}`},
		{"system:serviceaccount:a:robot", "", "watch core/pods a", `{"grant":{"binding":{"kind":"RoleBinding","namespace":"a","name":"watchers"},"role":{"kind":"Role","namespace":"a","name":"local"},"subject":{"kind":"ServiceAccount","namespace":"a","name":"robot"},"rule":{"verbs":["watch"],"apiGroups":[""],"resources":["pods"]}}}`},
		{"joe", "", "get core/secrets a two", `resourceName:RoleBinding/a/readers subject:ClusterRoleBinding//admins`},
		{"joe", "", "get core/pods b x", `namespace:RoleBinding/a/readers subject:ClusterRoleBinding//admins binding:ClusterRole/reader`},
		{"joe", "", "delete core/pods a x", `verb:RoleBinding/a/readers subject:ClusterRoleBinding//admins binding:ClusterRole/unused`},
		{"ann", "", "watch core/pods a", `subject:RoleBinding/a/watchers subject:ClusterRoleBinding//admins`},
		{"ann", "", "get /metrics", ``},
	} {
		asked := request(test.user, test.groups, test.request)
		e := authz.Explain(t.Context(), policy, asked)
		verdict, reason, _ := policy.Authorize(t.Context(), asked)
		if e.Verdict != verdict || e.Reason != reason || e.Err != nil || e.Authorizer != "" {
			t.Errorf("%s of %s: %+v: want the verdict and reason of Authorize", test.request, test.user, e)
		}
		got := e.Line(1 << 20)
		if verdict == authz.NoOpinion {
			got = lackings(e.Nearest)
		}
		if got != test.want {
			t.Errorf("%s of %s:\n got %s\nwant %s", test.request, test.user, got, test.want)
		}
	}
}

// lackings returns what each of some grants lacks, in short.
func lackings(grants []authz.Grant) string {
	var all []string
	for _, g := range grants {
		at := fmt.Sprintf("%s/%s", g.Role.Kind, g.Role.Name)
		if g.Binding != nil {
			at = fmt.Sprintf("%s/%s/%s", g.Binding.Kind, g.Binding.Namespace, g.Binding.Name)
		}
		all = append(all, fmt.Sprintf("%s:%s", g.Lacks, at))
	}
	return strings.Join(all, " ")
}

// TestNearestWouldHaveSufficed gives the user of a refused request what each of the nearest grants lacks, and nothing else: then the
// request is allowed.
func TestNearestWouldHaveSufficed(t *testing.T) {
	t.Parallel()
	seen := map[authz.Lack]int{}
	for seed := range uint64(300) {
		r := random{rand.New(rand.NewPCG(seed, 7))}
		objects := unique(r)
		policy := policyOf(t, objects)
		for range 20 {
			asked := r.request()
			e := policy.Explain(t.Context(), asked)
			if e.Verdict == authz.Allow {
				if e.Grant == nil || len(e.Nearest) > 0 {
					t.Fatalf("%s is allowed: %+v", describe(asked), e)
				}
				continue
			}
			if len(e.Nearest) > 5 {
				t.Fatalf("%d nearest grants", len(e.Nearest))
			}
			for _, g := range e.Nearest {
				seen[g.Lacks]++
				changed := grown(t, objects, asked, g)
				if verdict, _, _ := policyOf(t, changed).Authorize(t.Context(), asked); verdict != authz.Allow {
					line, _ := json.Marshal(g)
					t.Fatalf("seed %d: %s is refused with what this grant lacks: %s", seed, describe(asked), line)
				}
			}
		}
	}
	for _, lack := range []authz.Lack{
		authz.LacksVerb, authz.LacksResource, authz.LacksResourceName, authz.LacksAPIGroup, authz.LacksNamespace, authz.LacksSubject, authz.LacksBinding,
	} {
		if seen[lack] == 0 {
			t.Errorf("no grant lacks the %s", lack)
		}
	}
}

// policyOf returns the policy of objects that need not be valid.
func policyOf(t *testing.T, objects []runtime.Object) *rbac.Policy {
	t.Helper()
	w := newWorld()
	w.put(objects...)
	return follow(t, w, rbac.Options{}).Pin(t.Context()).(*rbac.Policy)
}

// unique returns random objects with different names.
func unique(r random) (objects []runtime.Object) {
	known := map[string]bool{}
	for range 12 {
		obj := r.object()
		m := obj.(interface{ GetName() string })
		n := obj.(interface{ GetNamespace() string })
		if key := kindName(obj) + "/" + n.GetNamespace() + "/" + m.GetName(); !known[key] {
			known[key] = true
			objects = append(objects, obj)
		}
	}
	return objects
}

// grown returns objects with what a grant lacks to allow the request.
func grown(t *testing.T, objects []runtime.Object, asked authz.Attributes, g authz.Grant) []runtime.Object {
	t.Helper()
	user := rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: asked.User.Name}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: g.Role.Kind, Name: g.Role.Name}
	bindingTo := func(to rbacv1.Subject) runtime.Object {
		if asked.Namespace == "" {
			return &rbacv1.ClusterRoleBinding{ObjectMeta: named("", "added"), Subjects: []rbacv1.Subject{to}, RoleRef: role}
		}
		return &rbacv1.RoleBinding{ObjectMeta: named(asked.Namespace, "added"), Subjects: []rbacv1.Subject{to}, RoleRef: role}
	}
	switch g.Lacks {
	case authz.LacksSubject, authz.LacksBinding:
		if g.Lacks == authz.LacksSubject && g.Binding.Kind == "ClusterRoleBinding" {
			return append(slices.Clip(objects), &rbacv1.ClusterRoleBinding{ObjectMeta: named("", "added"), Subjects: []rbacv1.Subject{user}, RoleRef: role})
		}
		return append(slices.Clip(objects), bindingTo(user))
	case authz.LacksNamespace: // the same rule, here
		own := role
		if own.Name = "added"; asked.Namespace == "" {
			own.Kind = "ClusterRole"
			return append(slices.Clip(objects), clusterRole("added", policyRule(g)),
				&rbacv1.ClusterRoleBinding{ObjectMeta: named("", "added"), Subjects: []rbacv1.Subject{user}, RoleRef: own})
		}
		own.Kind = "Role"
		return append(slices.Clip(objects),
			&rbacv1.Role{ObjectMeta: named(asked.Namespace, "added"), Rules: []rbacv1.PolicyRule{policyRule(g)}},
			&rbacv1.RoleBinding{ObjectMeta: named(asked.Namespace, "added"), Subjects: []rbacv1.Subject{user}, RoleRef: own})
	}
	rule := policyRule(g)
	switch resource := asked.Resource; g.Lacks {
	case authz.LacksVerb:
		rule.Verbs = append(slices.Clip(rule.Verbs), asked.Verb)
	case authz.LacksAPIGroup:
		rule.APIGroups = append(slices.Clip(rule.APIGroups), asked.APIGroup)
	case authz.LacksResourceName:
		rule.ResourceNames = append(slices.Clip(rule.ResourceNames), asked.Name)
	case authz.LacksResource:
		if !asked.ResourceRequest {
			rule.NonResourceURLs = append(slices.Clip(rule.NonResourceURLs), asked.Path)
			break
		}
		if asked.Subresource != "" {
			resource += "/" + asked.Subresource
		}
		rule.Resources = append(slices.Clip(rule.Resources), resource)
	default:
		t.Fatalf("a grant lacks %q", g.Lacks)
	}
	changed := slices.Clone(objects)
	for i, obj := range changed {
		switch r := obj.(type) {
		case *rbacv1.ClusterRole:
			if g.Role.Kind == "ClusterRole" && g.Role.Name == r.Name {
				r = r.DeepCopy()
				r.Rules, changed[i] = append(r.Rules, rule), r
			}
		case *rbacv1.Role:
			if g.Role.Kind == "Role" && g.Role.Name == r.Name && g.Role.Namespace == r.Namespace {
				r = r.DeepCopy()
				r.Rules, changed[i] = append(r.Rules, rule), r
			}
		}
	}
	return changed
}

// policyRule returns the rule of a grant.
func policyRule(g authz.Grant) rbacv1.PolicyRule {
	var rule rbacv1.PolicyRule
	if r := g.PathRule; r != nil {
		rule.Verbs, rule.NonResourceURLs = r.Verbs, r.NonResourceURLs
	}
	if r := g.Rule; r != nil {
		rule.Verbs, rule.APIGroups, rule.Resources, rule.ResourceNames = r.Verbs, r.APIGroups, r.Resources, r.ResourceNames
	}
	return rule
}

// TestSubjectsFor checks that exactly the subjects that are named are allowed.
func TestSubjectsFor(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(600) {
		r := random{rand.New(rand.NewPCG(seed, 9))}
		policy := policyOf(t, unique(r))
		for range 20 {
			asked := r.request()
			all := policy.SubjectsFor(t.Context(), asked, 1000)
			if all.Incomplete {
				t.Fatal("incomplete")
			}
			user := asked.User
			named := false
			for _, g := range all.Grants {
				switch g.Subject.Kind {
				case "User":
					asked.User = &authn.User{Name: g.Subject.Name}
				case "Group":
					asked.User = &authn.User{Name: "member", Groups: []string{g.Subject.Name}}
				default:
					if g.Subject.Namespace == "" { // this subject is nobody
						continue
					}
					asked.User = authn.ServiceAccount(g.Subject.Namespace, g.Subject.Name)
				}
				found++
				if verdict, _, _ := policy.Authorize(t.Context(), asked); verdict != authz.Allow {
					t.Fatalf("seed %d: %+v may not %s", seed, *g.Subject, describe(asked))
				}
				named = named || asked.User.Name == user.Name || slices.ContainsFunc(asked.User.Groups, func(group string) bool {
					return g.Subject.Kind == "Group" && slices.Contains(user.Groups, group)
				})
			}
			asked.User = user
			if verdict, _, _ := policy.Authorize(t.Context(), asked); (verdict == authz.Allow) != named {
				t.Fatalf("seed %d: %s: verdict %v, and the subjects are %+v", seed, describe(asked), verdict, all.Grants)
			}
			if n := len(all.Grants); n > 0 {
				if short := policy.SubjectsFor(t.Context(), asked, n-1); !short.Incomplete || cmp.Diff(all.Grants[:n-1], short.Grants) != "" && n > 1 {
					t.Fatalf("%d of %d grants: %+v", n-1, n, short)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d subjects", found)
	}
	if s := (&rbac.Policy{}).SubjectsFor(t.Context(), request("a", "", "get core/pods a"), 5); !s.Incomplete {
		t.Error("a policy that is not loaded is complete")
	}
}
