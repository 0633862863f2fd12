package impersonation_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/impersonation"
	"github.com/keelson-dev/keelson/authz/rbac"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recorded is what kube-apiserver 1.37.1 answered to a requestor with the permissions of a set of rules. Each request had a new
// requestor, since kube-apiserver remembers what a requestor did. Requests for which its words vary from time to time are left out:
// those in which several extra attributes are wrong or refused. Members of the group he-ssr may create SelfSubjectReviews.
type recorded struct {
	Rules    map[string][]rbacv1.PolicyRule
	Requests []struct {
		Rules, Method, Path string
		Headers             [][2]string
		Node                string // the node on which the requestor runs
		Code                int
		Message             string
		User                *struct { // in the answer to a SelfSubjectReview
			Username, UID string
			Groups        []string
			Extra         map[string][]string
		}
	}
}

func read(t *testing.T) recorded {
	file, err := os.Open("testdata/kube-apiserver.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var out recorded
	if err := json.NewDecoder(text).Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

const requestor = "system:serviceaccount:imp:r1"

// authorizerOf returns an authorizer that gives the requestor the permissions of rules.
func authorizerOf(t *testing.T, rules []rbacv1.PolicyRule) authz.Authorizer {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "imp"}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "imp"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "imp"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "imp", Name: "r1"}},
	}
	policy, err := rbac.Static(role, binding)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// attributesOf returns the attributes of a request in the recording.
func attributesOf(t *testing.T, method, path string) authz.Attributes {
	switch method + " " + path {
	case "POST /apis/authentication.k8s.io/v1/selfsubjectreviews":
		return authz.Attributes{Verb: "create", ResourceRequest: true, APIGroup: "authentication.k8s.io", APIVersion: "v1", Resource: "selfsubjectreviews"}
	case "GET /version":
		return authz.Attributes{Verb: "get", Path: "/version"}
	case "GET /api/v1/namespaces/default/configmaps":
		return authz.Attributes{Verb: "list", ResourceRequest: true, APIVersion: "v1", Resource: "configmaps", Namespace: "default"}
	case "GET /api/v1/namespaces/default/configmaps/a":
		return authz.Attributes{Verb: "get", ResourceRequest: true, APIVersion: "v1", Resource: "configmaps", Namespace: "default", Name: "a"}
	}
	t.Fatalf("%s %s", method, path)
	return authz.Attributes{}
}

// userOf returns the user whom headers name.
func userOf(headers [][2]string) authn.User {
	var u authn.User
	for _, h := range headers {
		switch name, value := h[0], h[1]; name {
		case "Impersonate-User":
			u.Name = value
		case "Impersonate-Uid":
			u.UID = value
		case "Impersonate-Group":
			u.Groups = append(u.Groups, value)
		default:
			if u.Extra == nil {
				u.Extra = map[string][]string{}
			}
			key := authn.ExtraKey(strings.TrimPrefix(name, "Impersonate-Extra-"))
			u.Extra[key] = append(u.Extra[key], value)
		}
	}
	return u
}

// TestAsKubeAPIServer checks that requests are allowed and refused as by kube-apiserver, with its messages and its groups.
func TestAsKubeAPIServer(t *testing.T) {
	all := read(t)
	for _, r := range all.Requests {
		name := fmt.Sprint(r.Rules, " ", r.Node, " ", r.Method, " ", r.Path, " ", r.Headers)
		wanted := userOf(r.Headers)
		if wanted.Name == "" {
			continue // package server/filters refuses such headers, or sees no impersonation in them
		}
		a := attributesOf(t, r.Method, r.Path)
		a.User = authn.ServiceAccount("imp", "r1")
		if r.Node != "" {
			a.User.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {r.Node}}
		}
		granted, err := impersonation.Check(t.Context(), authorizerOf(t, all.Rules[r.Rules]), a, wanted)
		switch refused := strings.Contains(r.Message, `User "requestor" cannot impersonate`); {
		case refused != (err != nil):
			t.Errorf("%s: error %v, want %d %s", name, err, r.Code, r.Message)
		case refused:
			if got := strings.ReplaceAll(err.Error(), requestor, "requestor"); got != r.Message || !apierrors.IsForbidden(err) {
				t.Errorf("%s:\ngot  %s\nwant %s", name, got, r.Message)
			}
		case r.User != nil:
			want := authn.User{Name: r.User.Username, UID: r.User.UID, Groups: r.User.Groups, Extra: r.User.Extra}
			if diff := cmp.Diff(want, granted.User); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestConstraint(t *testing.T) {
	user := &authn.User{Name: "admin"}
	for name, test := range map[string]struct{ user, want string }{
		"another user":    {"jane", "impersonate:user-info"},
		"service account": {"system:serviceaccount:a:b", "impersonate:serviceaccount"},
		"node":            {"system:node:n1", "impersonate:arbitrary-node"},
	} {
		granted, err := impersonation.Check(t.Context(), authz.AlwaysAllow(), authz.Attributes{User: user, Verb: "get", Path: "/"}, authn.User{Name: test.user})
		if err != nil || granted.Constraint != test.want {
			t.Errorf("%s: %+v, %v", name, granted, err)
		}
	}
	granted, err := impersonation.Check(t.Context(), authz.AlwaysAllow(), authz.Attributes{User: user, Verb: "get", Path: "/"}, authn.User{Name: "jane", Groups: []string{"system:masters"}})
	if err != nil || granted.Constraint != "" || !granted.User.InGroup("system:masters") {
		t.Errorf("system:masters: %+v, %v", granted, err)
	}
}

// TestAuthorizerThatFails checks that the error of an authorizer is no permission, that it does not keep a later mode from allowing
// the impersonation, and that it is returned if no mode does.
func TestAuthorizerThatFails(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		fails, allows []string // verbs or names
		wanted        authn.User
		constraint    string // of the mode that allows it; "none": none does
		failed        bool
	}{
		"always":                                {fails: []string{""}, constraint: "none", failed: true},
		"for the request, the old mode allows":  {fails: []string{"impersonate-on:user-info:get"}, allows: []string{"impersonate"}},
		"for the user, the old mode allows":     {fails: []string{"impersonate:user-info"}, allows: []string{"impersonate-on:user-info:get", "impersonate"}},
		"for the request, the old mode refuses": {fails: []string{"impersonate-on:user-info:get"}, constraint: "none", failed: true},
		"in the old mode, the first refuses":    {fails: []string{"impersonate"}, constraint: "none", failed: true},
		"in the old mode, the first allows":     {fails: []string{"impersonate"}, allows: []string{"impersonate-on:user-info:get", "impersonate:user-info"}, constraint: "impersonate:user-info"},
		"nowhere":                               {constraint: "none"},
		"for one node, all nodes are allowed": {
			fails: []string{"impersonate-on:associated-node:get"}, allows: []string{"impersonate-on:arbitrary-node:get", "impersonate:arbitrary-node"},
			wanted: authn.User{Name: "system:node:n1"}, constraint: "impersonate:arbitrary-node",
		},
		"for all groups, each is allowed": {
			fails: []string{"*"}, allows: []string{"impersonate-on:user-info:get", "impersonate:user-info"},
			wanted: authn.User{Name: "x", Groups: []string{"a", "b", "c", "d"}}, constraint: "impersonate:user-info",
		},
	} {
		authorizer := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
			is := func(what string) bool { return what == "" || what == a.Verb || what == a.Name }
			switch {
			case slices.ContainsFunc(test.fails, is):
				return authz.NoOpinion, "", broken
			case slices.ContainsFunc(test.allows, is):
				return authz.Allow, "", nil
			}
			return authz.NoOpinion, "", nil
		})
		requestor := authn.ServiceAccount("imp", "r1")
		requestor.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}
		if test.wanted.Name == "" {
			test.wanted.Name = "x"
		}
		granted, err := impersonation.Check(t.Context(), authorizer, authz.Attributes{User: requestor, Verb: "get"}, test.wanted)
		if test.constraint == "none" {
			if granted != nil || errors.Is(err, broken) != test.failed || apierrors.IsForbidden(err) == test.failed {
				t.Errorf("%s: %+v, %v", name, granted, err)
			}
			continue
		}
		if err != nil || granted.Constraint != test.constraint {
			t.Errorf("%s: %+v, %v", name, granted, err)
		}
	}
}
