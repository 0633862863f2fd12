package reviews_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/servertest"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bound returns a ClusterRole and its binding to a user.
func bound(name, user string, rules ...rbacv1.PolicyRule) (*rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding) {
	meta := metav1.ObjectMeta{Name: name}
	return &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, Subjects: []rbacv1.Subject{{Kind: "User", Name: user}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name},
	}
}

// explaining returns a server of these users: joe may get pods, reviewer may ask about all users, and auditor may also list roles and
// bindings. root is an administrator.
func explaining(t *testing.T) *servertest.Server {
	t.Helper()
	ask := rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"*"}}
	look := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{reviews.WhoCanPath}}
	list := rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings", "clusterroles", "clusterrolebindings"}}
	a, b := bound("pods", "joe", rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}})
	c, d := bound("reviewer", "reviewer", ask, look)
	e, f := bound("auditor", "auditor", ask, look, list)
	policy, err := authzrbac.Static(a, b, c, d, e, f)
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]authn.User{"root": {Name: "root", Groups: []string{authn.MastersGroup}}}
	for _, name := range []string{"joe", "reviewer", "auditor"} {
		users[name] = authn.User{Name: name}
	}
	return servertest.Start(t, server.Options{Policy: server.Policy{Users: users}}, reviews.New(reviews.Options{Explain: true}),
		server.ExtensionFunc(func(h *server.Host) error { return h.Authorize("rbac", policy) }))
}

// request sends a request with the token of a user.
func request(t *testing.T, srv *servertest.Server, user, method, path string, body any) (int, []byte) {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+user)
	resp, err := srv.Anonymous().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out
}

const group = "/apis/authorization.k8s.io/v1/"

func TestReasonsExplain(t *testing.T) {
	srv := explaining(t)
	get := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: "a"}
	list := &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: "a"}
	const allowed = `RBAC: allowed by ClusterRoleBinding "pods" of ClusterRole "pods" to User "joe"`
	const parts = `"binding":{"kind":"ClusterRoleBinding","name":"pods"},"role":{"kind":"ClusterRole","name":"pods"},"subject":{"kind":"User","name":"joe"},"rule":{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}`
	for _, test := range []struct {
		as, about string
		what      *authorizationv1.ResourceAttributes
		want      string
	}{
		{"auditor", "joe", get, allowed + "\n" + `{"authorizer":"rbac","grant":{` + parts + `}}`},
		{"root", "joe", get, allowed + "\n" + `{"authorizer":"rbac","grant":{` + parts + `}}`},
		{"auditor", "joe", list, `{"nearest":[{` + parts + `,"lacks":"verb"}]}`},
		{"auditor", "ann", get, `{"nearest":[{` + parts + `,"lacks":"subject"}]}`},
		{"reviewer", "joe", get, allowed},
		{"reviewer", "joe", list, ""},
	} {
		spec := authorizationv1.SubjectAccessReviewSpec{User: test.about, ResourceAttributes: test.what}
		for path, review := range map[string]any{
			"subjectaccessreviews":                   authorizationv1.SubjectAccessReview{Spec: spec},
			"namespaces/a/localsubjectaccessreviews": authorizationv1.LocalSubjectAccessReview{Spec: spec},
		} {
			var got authorizationv1.SubjectAccessReview
			code, body := request(t, srv, test.as, http.MethodPost, group+path, review)
			if err := json.Unmarshal(body, &got); err != nil || code != http.StatusCreated {
				t.Fatalf("%d %s: %v", code, body, err)
			}
			if diff := cmp.Diff(test.want, got.Status.Reason); diff != "" {
				t.Errorf("%s about %s of %s by %s:\n%s", path, test.what.Verb, test.about, test.as, diff)
			}
		}
	}
}

// TestSelfReviewsExplainNothing checks that nobody learns by reviews about oneself what others may do.
func TestSelfReviewsExplainNothing(t *testing.T) {
	srv := explaining(t)
	for _, user := range []string{"joe", "auditor", "root"} {
		for _, review := range []any{
			authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods"},
			}},
		} {
			code, body := request(t, srv, user, http.MethodPost, group+"selfsubjectaccessreviews", review)
			if code != http.StatusCreated || bytes.Contains(body, []byte("nearest")) || bytes.Contains(body, []byte("grant")) {
				t.Errorf("%s: %d %s", user, code, body)
			}
		}
	}
}

func TestWhoCan(t *testing.T) {
	srv := explaining(t)
	var got struct {
		Grants     []authz.Grant `json:"grants"`
		Incomplete bool          `json:"incomplete"`
	}
	code, body := request(t, srv, "root", http.MethodGet, reviews.WhoCanPath+"?verb=get&resource=pods&namespace=a", nil)
	if err := json.Unmarshal(body, &got); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	var names []string
	for _, g := range got.Grants {
		names = append(names, g.Subject.Kind+"/"+g.Subject.Name)
	}
	if diff := cmp.Diff([]string{"Group/system:masters", "User/joe"}, names); diff != "" {
		t.Errorf("%s\n%s", body, diff)
	}
	for _, test := range []struct {
		user, method, query string
		want                int
		text                string
	}{
		{"auditor", http.MethodGet, "?verb=get&path=/metrics", http.StatusOK, `"grants":[{"subject":{"kind":"Group","name":"system:masters"}}]`},
		{"root", http.MethodGet, "?verb=zap&path=/healthz", http.StatusOK, `"system:masters"`},
		{"reviewer", http.MethodGet, "?verb=get&resource=pods", http.StatusForbidden, "users who may list"},
		{"joe", http.MethodGet, "?verb=get&resource=pods", http.StatusForbidden, "cannot get path"},
		{"root", http.MethodGet, "", http.StatusBadRequest, "want the parameters"},
		{"root", http.MethodGet, "?verb=get", http.StatusBadRequest, "want the parameters"},
		{"root", http.MethodGet, "?verb=get&path=/x&resource=pods", http.StatusBadRequest, "verb and path only"},
		{"root", http.MethodGet, "?verb=get&verb=list&resource=pods", http.StatusBadRequest, "twice"},
		{"root", http.MethodGet, "?verb=get&resources=pods", http.StatusBadRequest, "not known"},
		{"root", http.MethodGet, "?verb=get&" + strings.Repeat("x", 5000) + "=1", http.StatusBadRequest, "not known"},
		{"root", http.MethodPost, "?verb=get&resource=pods", http.StatusMethodNotAllowed, ""},
	} {
		code, body := request(t, srv, test.user, test.method, reviews.WhoCanPath+test.query, nil)
		if code != test.want || !bytes.Contains(body, []byte(test.text)) || len(body) > 2000 {
			t.Errorf("%s %.100s by %s: %d %.500s", test.method, test.query, test.user, code, body)
		}
	}
}

// TestNothingExplainsByDefault checks that the explanations need the option.
func TestNothingExplainsByDefault(t *testing.T) {
	srv := start(t)
	code, body := request(t, srv, srv.Token, http.MethodPost, group+"subjectaccessreviews", authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "x", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}},
	})
	if code != http.StatusCreated || bytes.Contains(body, []byte("reason")) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := request(t, srv, srv.Token, http.MethodGet, reviews.WhoCanPath+"?verb=get&resource=pods", nil); code != http.StatusNotFound {
		t.Errorf("%d %s", code, body)
	}
}

// TestMetadataOfReviews checks what kube-apiserver refuses too, in a message that has the managed fields of the review there.
func TestMetadataOfReviews(t *testing.T) {
	srv := start(t)
	ra := `"resourceAttributes":{"verb":"get","resource":"pods","namespace":"a"}`
	for _, kind := range []struct{ path, spec, empty, shown string }{
		{"subjectaccessreviews", `"user":"x",` + ra, "must be empty", ""},
		{"selfsubjectaccessreviews", ra, "must be empty", ""},
		{"namespaces/a/localsubjectaccessreviews", `"user":"x",` + ra, "must be empty except for namespace", `\"namespace\":\"a\",`},
	} {
		body := json.RawMessage(fmt.Sprintf(`{"metadata":{"name":"n","labels":{"a":"b"},"uid":"u"},"spec":{%s}}`, kind.spec))
		code, got := request(t, srv, srv.Token, http.MethodPost, group+kind.path, body)
		want := `"message":".authorization.k8s.io \"\" is invalid: metadata: Invalid value: {\"name\":\"n\",` + kind.shown + `\"labels\":{\"a\":\"b\"}}: ` + kind.empty + `"`
		if code != http.StatusUnprocessableEntity || !bytes.Contains(got, []byte(want)) {
			t.Errorf("%s: %d %s\nwant %s", kind.path, code, got, want)
		}
	}
}

// TestReviewsHaveTheErrorOfAnAuthorizer checks an authorizer that fails.
func TestReviewsHaveTheErrorOfAnAuthorizer(t *testing.T) {
	for _, verdict := range []authz.Verdict{authz.NoOpinion, authz.Deny} {
		srv := start(t)
		if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Authorize("broken", broken{verdict}) })); err != nil {
			t.Fatal(err)
		}
		body := json.RawMessage(`{"spec":{"user":"x","resourceAttributes":{"verb":"get","resource":"pods","fieldSelector":{"rawSelector":"a in (x"}}}}`)
		code, got := request(t, srv, srv.Token, http.MethodPost, group+"subjectaccessreviews", body)
		want := `"evaluationError":"it is ` + strings.Repeat("x", 1024-len("it is ...")) + `...; spec.resourceAttributes.fieldSelector ignored due to parse error"`
		if code != http.StatusCreated || !bytes.Contains(got, []byte(want)) || bytes.Contains(got, []byte(`"denied":true`)) != (verdict == authz.Deny) {
			t.Errorf("%d %s", code, got)
		}
		code, got = request(t, srv, srv.Token, http.MethodPost, group+"selfsubjectrulesreviews", json.RawMessage(`{"spec":{"namespace":"a"}}`))
		if want := `"incomplete":true,"evaluationError":"an authorizer does not support user rule resolution"`; code != http.StatusCreated || !bytes.Contains(got, []byte(want)) {
			t.Errorf("%d %s", code, got)
		}
	}
}

// broken is an authorizer that fails for users who are not administrators.
type broken struct{ verdict authz.Verdict }

func (b broken) Authorize(context.Context, authz.Attributes) (authz.Verdict, string, error) {
	return b.verdict, "", errors.New("it is " + strings.Repeat("x", 2000))
}

// TestAuthorizerOfAServer checks that a program can ask why without a request.
func TestAuthorizerOfAServer(t *testing.T) {
	srv := explaining(t)
	if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		asked := authz.Attributes{User: &authn.User{Name: "joe"}, ResourceRequest: true, Verb: "list", Resource: "pods"}
		e := authz.Explain(t.Context(), h.Authorizer(), asked)
		if e.Verdict.String() != "no opinion" || len(e.Nearest) != 1 || e.Nearest[0].Lacks != authz.LacksVerb {
			t.Errorf("%v %s", e.Verdict, e.Line(1000))
		}
		if all := authz.SubjectsOf(t.Context(), h.Authorizer(), authz.Attributes{ResourceRequest: true, Verb: "get", Resource: "pods"}, 10); len(all.Grants) != 2 {
			t.Errorf("%+v", all)
		}
		if rules, err := authz.RulesOf(t.Context(), h.Authorizer(), asked.User, "a"); err != nil || len(rules.Resources) != 1 {
			t.Errorf("%+v %v", rules, err)
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
}

// TestExplainingAsksOnce checks that an explanation is about the same decision as the verdict.
func TestExplainingAsksOnce(t *testing.T) {
	srv := explaining(t)
	var calls atomic.Int64
	if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return h.Authorize("counted", authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
			if a.User.Name != "asked" || calls.Add(1) > 1 {
				return authz.NoOpinion, "", nil
			}
			return authz.Allow, "", nil
		}))
	})); err != nil {
		t.Fatal(err)
	}
	code, body := request(t, srv, "auditor", http.MethodPost, group+"subjectaccessreviews", authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "asked", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"},
	}})
	if want := `"allowed":true,"reason":"{\"authorizer\":\"counted\"}"`; code != http.StatusCreated || !bytes.Contains(body, []byte(want)) || calls.Load() != 1 {
		t.Errorf("%d %s after %d calls", code, body, calls.Load())
	}
}

// TestRulesReviewsAreBounded checks that an answer has a bounded number of rules and bytes.
func TestRulesReviewsAreBounded(t *testing.T) {
	many := make([]rbacv1.PolicyRule, 15_000)
	for i := range many {
		many[i] = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{fmt.Sprint("r", i)}}
	}
	long := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/" + strings.Repeat("x", 9<<20)}}
	for name, rules := range map[string][]rbacv1.PolicyRule{"many": many, "long": {long}} {
		a, b := bound("wide", "joe", rules...)
		policy, err := authzrbac.Static(a, b)
		if err != nil {
			t.Fatal(err)
		}
		srv := servertest.Start(t, server.Options{Policy: server.Policy{Users: map[string]authn.User{"joe": {Name: "joe"}}}}, reviews.New(reviews.Options{}),
			server.ExtensionFunc(func(h *server.Host) error { return h.Authorize("rbac", policy) }))
		code, body := request(t, srv, "joe", http.MethodPost, group+"selfsubjectrulesreviews", json.RawMessage(`{"spec":{"namespace":"a"}}`))
		if code != http.StatusCreated || len(body) > 9<<20 || !bytes.Contains(body, []byte(`"incomplete":true,"evaluationError":"there are more rules than the 10000`)) {
			t.Errorf("%s: %d, %d bytes: %.300s", name, code, len(body), body)
		}
	}
}
