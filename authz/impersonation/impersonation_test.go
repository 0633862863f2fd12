package impersonation_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
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
// requestor, since kube-apiserver remembers what a requestor did.
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

// TestAsKubeAPIServer checks that requests are allowed and refused as by kube-apiserver, with its messages and its groups.
func TestAsKubeAPIServer(t *testing.T) {
	all := read(t)
	for _, r := range all.Requests {
		name := fmt.Sprint(r.Rules, " ", r.Node, " ", r.Method, " ", r.Path, " ", r.Headers)
		headers := http.Header{}
		for _, h := range r.Headers {
			headers.Add(h[0], h[1])
		}
		wanted, err := impersonation.FromHeaders(headers)
		if (r.Code == http.StatusBadRequest) != (err != nil) {
			t.Errorf("%s: %v", name, err)
		}
		if wanted == nil {
			if err == nil && r.User != nil && r.User.Username != "requestor" {
				t.Errorf("%s: impersonates nobody", name)
			}
			continue
		}
		a := attributesOf(t, r.Method, r.Path)
		a.User = authn.ServiceAccount("imp", "r1")
		if r.Node != "" {
			a.User.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {r.Node}}
		}
		granted, err := impersonation.Check(t.Context(), authorizerOf(t, all.Rules[r.Rules]), a, *wanted)
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

// TestAuthorizerThatFails checks that the error of an authorizer is no refusal and no permission.
func TestAuthorizerThatFails(t *testing.T) {
	broken := errors.New("broken")
	fails := authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) {
		return authz.NoOpinion, "", broken
	})
	_, err := impersonation.Check(t.Context(), fails, authz.Attributes{User: &authn.User{Name: "u"}, Verb: "get"}, authn.User{Name: "x"})
	if !errors.Is(err, broken) || apierrors.IsForbidden(err) {
		t.Error(err)
	}
}

func TestFromHeadersIsBounded(t *testing.T) {
	h := http.Header{"Impersonate-User": {"x"}}
	for range impersonation.MaxValues {
		h.Add("Impersonate-Group", "g")
	}
	if u, err := impersonation.FromHeaders(h); err != nil || len(u.Groups) != impersonation.MaxValues {
		t.Error(err)
	}
	h.Add("Impersonate-Extra-K", "v")
	if _, err := impersonation.FromHeaders(h); !apierrors.IsBadRequest(err) {
		t.Errorf("too many values: %v", err)
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("Impersonate-User: x\nImpersonate-Extra-Example.com%2fS: v\nimpersonate-uid: 1\nAccept: a")
	f.Fuzz(func(t *testing.T, text string) {
		h := http.Header{}
		for line := range strings.SplitSeq(text, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				h[http.CanonicalHeaderKey(name)] = append(h[http.CanonicalHeaderKey(name)], value)
			}
		}
		before := h.Clone()
		user, err := impersonation.FromHeaders(h)
		left := impersonation.Strip(h)
		if diff := cmp.Diff(before, h); diff != "" {
			t.Errorf("the headers were changed: %s", diff)
		}
		if user != nil && (user.Name == "" || err != nil) {
			t.Errorf("%+v, %v", user, err)
		}
		if again, err := impersonation.FromHeaders(left); again != nil || err != nil {
			t.Errorf("after Strip: %+v, %v", again, err)
		}
		for name, values := range left {
			if diff := cmp.Diff(before[name], values); diff != "" || strings.HasPrefix(strings.ToLower(name), "impersonate-extra-") {
				t.Errorf("after Strip: %s %s", name, diff)
			}
		}
	})
}
