package rbac_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
)

// manyBindings returns bindings of a group to one role with long rules, in the namespace a.
func manyBindings(n, names int) []runtime.Object {
	all := make([]string, names)
	for i := range all {
		all[i] = fmt.Sprint("n", i)
	}
	objects := []runtime.Object{role("a", "wide", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: all})}
	for i := range n {
		objects = append(objects, binding("a", fmt.Sprint("b", i), "Role/wide", "Group/g"))
	}
	return objects
}

// TestARoleIsReadOnceForADecision checks that repeated groups, and many bindings to one role, cost no more than one of them.
func TestARoleIsReadOnceForADecision(t *testing.T) {
	policy := static(t, manyBindings(2000, 10_000)...)
	a := request("joe", strings.Repeat("g ", 100_000), "get core/pods a other")
	for range 10 { // 2 * 10^13 comparisons, if each group and binding were tried
		if verdict, reason, err := policy.Authorize(t.Context(), a); verdict != authz.NoOpinion || reason != "" || err != nil {
			t.Fatal(verdict, reason, err)
		}
	}
	rules, err := policy.RulesFor(t.Context(), a.User, "a")
	if err != nil || len(rules.Resources) != 1 {
		t.Errorf("%d rules, %v", len(rules.Resources), err)
	}
	if e := policy.Explain(t.Context(), a); len(e.Nearest) == 0 || len(e.Nearest) > 5 {
		t.Errorf("%d nearest grants", len(e.Nearest))
	}
	a.Name = "n9999"
	if verdict, _, _ := policy.Authorize(t.Context(), a); verdict != authz.Allow {
		t.Error(verdict)
	}
}

// TestDecisionsEndWithTheirRequest checks that a decision about many bindings ends when its context does.
func TestDecisionsEndWithTheirRequest(t *testing.T) {
	objects := []runtime.Object{role("a", "one", rule("get", "core", "pods", "one"))}
	for i := range 1000 {
		objects = append(objects, binding("a", fmt.Sprint("b", i), "Role/one", "User/joe"))
	}
	policy := static(t, objects...)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	verdict, _, err := policy.Authorize(ctx, request("joe", "", "get core/pods a two"))
	if verdict != authz.NoOpinion || err == nil || err.Error() != "gone" {
		t.Error(verdict, err)
	}
	if verdict, _, err := policy.Authorize(ctx, request("ann", "", "get core/pods a two")); verdict != authz.NoOpinion || err != nil {
		t.Error("a short decision:", verdict, err)
	}
}

// TestRefusalsOfGrantsAreBounded checks the size of a refusal to grant permissions with long texts, and what it costs.
func TestRefusalsOfGrantsAreBounded(t *testing.T) {
	policy := static(t)
	wide := rbacv1.PolicyRule{Verbs: []string{strings.Repeat("v", 500_000), "get", "get"}, APIGroups: []string{"g"}}
	for i := range 2000 {
		wide.Resources = append(wide.Resources, fmt.Sprint("r", i))
	}
	user := &authn.User{Name: strings.Repeat("u", 5000), Groups: strings.Fields(strings.Repeat(strings.Repeat("g", 3000)+" ", 500))}
	var text string
	cost := testing.Benchmark(func(b *testing.B) {
		for b.Loop() {
			text = policy.CheckGrant(user, "", "roles", []rbacv1.PolicyRule{wide}).Error()
		}
	}).AllocedBytesPerOp()
	if len(text) > 180_000 || !strings.HasSuffix(text, "\nand more") || strings.Contains(text, strings.Repeat("v", 1100)) {
		t.Errorf("%d bytes: %.200s ... %.200s", len(text), text, text[len(text)-200:])
	}
	if cost > 64<<20 {
		t.Errorf("%d bytes of memory", cost)
	}
	repeated := rbacv1.PolicyRule{Verbs: strings.Fields(strings.Repeat("v ", 200_000)), APIGroups: []string{"g"}, Resources: []string{strings.Repeat("r", 1_000_000)}}
	if missing, more, err := rbac.Uncovered([]rbacv1.PolicyRule{rule("get", "core", "pods", "")}, []rbacv1.PolicyRule{repeated}); len(missing) != 1 || more || err != nil {
		t.Errorf("%d parts, %v, %v", len(missing), more, err)
	}
}
