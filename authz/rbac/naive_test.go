package rbac_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	rbacv1 "k8s.io/api/rbac/v1"
)

// naive decides by reading every binding and every role. It returns the possible reasons of an Allow, and the errors of missing
// roles, in no particular order.
func naive(objects []runtime.Object, a authz.Attributes) (allows, missing []string) {
	for _, obj := range objects {
		switch b := obj.(type) {
		case *rbacv1.ClusterRoleBinding:
			naiveBinding(objects, a, &allows, &missing, fmt.Sprintf("ClusterRoleBinding %q", b.Name), "", b.RoleRef, b.Subjects)
		case *rbacv1.RoleBinding:
			if b.Namespace == a.Namespace {
				naiveBinding(objects, a, &allows, &missing, fmt.Sprintf("RoleBinding %q", b.Name+"/"+b.Namespace), b.Namespace, b.RoleRef, b.Subjects)
			}
		}
	}
	slices.Sort(missing)
	return allows, slices.Compact(missing)
}

func naiveBinding(objects []runtime.Object, a authz.Attributes, allows, missing *[]string, what, ns string, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	to := ""
	for _, s := range subjects {
		at := s.Namespace
		if at == "" {
			at = ns
		}
		switch {
		case s.Kind == "User" && s.Name == a.User.Name, s.Kind == "Group" && slices.Contains(a.User.Groups, s.Name):
			to = fmt.Sprintf("%s %q", s.Kind, s.Name)
		case s.Kind == "ServiceAccount" && at != "" && a.User.Name == "system:serviceaccount:"+at+":"+s.Name:
			to = fmt.Sprintf("%s %q", s.Kind, s.Name+"/"+at)
		}
		if to != "" {
			break
		}
	}
	if to == "" {
		return
	}
	rules, found := []rbacv1.PolicyRule(nil), false
	for _, obj := range objects {
		switch r := obj.(type) {
		case *rbacv1.ClusterRole:
			if ref.Kind == "ClusterRole" && r.Name == ref.Name {
				rules, found = r.Rules, true
			}
		case *rbacv1.Role:
			if ref.Kind == "Role" && r.Name == ref.Name && r.Namespace == ns {
				rules, found = r.Rules, true
			}
		}
	}
	if !found {
		*missing = append(*missing, fmt.Sprintf("%s.rbac.authorization.k8s.io %q not found", strings.ToLower(ref.Kind), ref.Name))
	}
	if slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return naiveRule(r, a) }) {
		*allows = append(*allows, fmt.Sprintf("RBAC: allowed by %s of %s %q to %s", what, ref.Kind, ref.Name, to))
	}
}

func naiveRule(r rbacv1.PolicyRule, a authz.Attributes) bool {
	in := func(list []string, want ...string) bool {
		return slices.ContainsFunc(list, func(s string) bool { return slices.Contains(want, s) })
	}
	if !in(r.Verbs, "*", a.Verb) {
		return false
	}
	if !a.ResourceRequest {
		return slices.ContainsFunc(r.NonResourceURLs, func(u string) bool {
			return u == a.Path || strings.HasSuffix(u, "*") && strings.HasPrefix(a.Path, strings.TrimRight(u, "*"))
		})
	}
	resources := []string{"*", a.Resource}
	if a.Subresource != "" {
		resources = []string{"*", a.Resource + "/" + a.Subresource, "*/" + a.Subresource}
	}
	return in(r.APIGroups, "*", a.APIGroup) && in(r.Resources, resources...) && (len(r.ResourceNames) == 0 || in(r.ResourceNames, a.Name))
}

// wrong returns what is wrong with a decision, or "".
func wrong(objects []runtime.Object, a authz.Attributes, verdict authz.Verdict, reason string, err error) string {
	allows, missing := naive(objects, a)
	if err != nil {
		return err.Error()
	}
	if len(allows) > 0 {
		if verdict != authz.Allow || !slices.Contains(allows, reason) {
			return fmt.Sprintf("%v %q, want one of %q", verdict, reason, allows)
		}
		return ""
	}
	if verdict != authz.NoOpinion || !slices.Equal(missingIn(reason), missing) {
		return fmt.Sprintf("%v %q, want no opinion and %q", verdict, reason, missing)
	}
	return ""
}

// missingIn returns the errors in the reason of a refusal.
func missingIn(reason string) []string {
	reason = strings.TrimPrefix(reason, "RBAC: ")
	if reason == "" {
		return nil
	}
	out := strings.Split(strings.TrimSuffix(strings.TrimPrefix(reason, "["), "]"), ", ")
	slices.Sort(out)
	return out
}

func describe(a authz.Attributes) string { return fmt.Sprintf("%+v of %+v", a, *a.User) }
