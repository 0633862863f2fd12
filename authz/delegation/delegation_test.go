package delegation_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/delegation"
	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
)

// cluster is a server with SubjectAccessReviews, in which ann may do everything. Its token is "delegate".
func cluster(t *testing.T) (url string, calls *atomic.Int32) {
	calls = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		var review struct {
			APIVersion, Kind string
			Spec             struct{ User string }
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		switch err := json.Unmarshal(body, &review); {
		case r.Header.Get("Authorization") != "Bearer delegate":
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"subjectaccessreviews.authorization.k8s.io is forbidden","reason":"Forbidden","code":403}`)
		case r.Method != http.MethodPost || r.URL.Path != webhook.SubjectAccessReviews || err != nil || review.APIVersion != "authorization.k8s.io/v1" || review.Kind != "SubjectAccessReview":
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusCreated)
			_, _ = fmt.Fprintf(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{},"status":{"allowed":%t,"reason":"by the cluster"}}`, review.Spec.User == "ann")
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

func request(user, verb, path string, groups ...string) authz.Attributes {
	return authz.Attributes{User: &authn.User{Name: user, Groups: groups}, Verb: verb, Path: path}
}

func TestCluster(t *testing.T) {
	url, calls := cluster(t)
	c, err := delegation.New(client.Config{Server: url, Token: "delegate"}, delegation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tc := range []struct {
		a      authz.Attributes
		want   authz.Verdict
		reason string
		calls  int32
	}{
		{request("ann", "post", "/x"), authz.Allow, "by the cluster", 1},
		{request("ann", "post", "/x"), authz.Allow, "by the cluster", 0},
		{request("bob", "post", "/x"), authz.NoOpinion, "by the cluster", 1},
		{request("bob", "post", "/x"), authz.NoOpinion, "by the cluster", 0},
		{request("root", "post", "/x", "system:masters"), authz.Allow, "", 0},
		{request("bob", "get", "/healthz"), authz.Allow, "", 0},
		{request("bob", "get", "/readyz"), authz.Allow, "", 0},
		{request("bob", "get", "/livez"), authz.Allow, "", 0},
		{request("bob", "post", "/livez"), authz.NoOpinion, "by the cluster", 1},
		{request("bob", "get", "/livez/x"), authz.NoOpinion, "by the cluster", 1},
	} {
		before := calls.Load()
		verdict, reason, err := c.Authorize(t.Context(), tc.a)
		if verdict != tc.want || reason != tc.reason || err != nil || calls.Load()-before != tc.calls {
			t.Errorf("%+v: %v %q %v, %d calls", tc.a, verdict, reason, err, calls.Load()-before)
		}
	}
	rules, err := authz.RulesOf(t.Context(), c, &authn.User{Name: "ann"}, "ns")
	if !rules.Incomplete || err == nil {
		t.Errorf("%+v, %v", rules, err)
	}
	if err := c.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	c.Close()
	if err := c.Ready(t.Context()); err == nil {
		t.Error("a closed one is ready")
	}
}

// A Cluster explains, and names subjects, as the union that it is, pinned or not.
func TestExplains(t *testing.T) {
	url, _ := cluster(t)
	c, err := delegation.New(client.Config{Server: url, Token: "delegate"}, delegation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var _ authz.Explainer = c
	if c.Pin(t.Context()) != c.Pin(t.Context()) {
		t.Error("two pins differ")
	}
	masters := authz.PrivilegedGroups("system:masters")
	ask := request("root", "get", "/x", "system:masters")
	want := authz.SubjectsOf(t.Context(), masters, ask, 10)
	if len(want.Grants) == 0 {
		t.Fatal("members of system:masters are no subjects")
	}
	for _, a := range []authz.Authorizer{c, authz.Union(c), authz.Union(c).(authz.Pinner).Pin(t.Context())} {
		if got := authz.Explain(t.Context(), a, ask); got.Verdict != authz.Allow {
			t.Errorf("%T: %+v", a, got)
		}
		got := authz.SubjectsOf(t.Context(), a, ask, 10)
		if len(got.Grants) != len(want.Grants) || *got.Grants[0].Subject != *want.Grants[0].Subject || !got.Incomplete {
			t.Errorf("%T: %+v, want %+v", a, got, want)
		}
	}
}

func TestOptions(t *testing.T) {
	url, calls := cluster(t)
	c, err := delegation.New(client.Config{Server: url, Token: "delegate"}, delegation.Options{
		Groups: []string{}, Paths: []string{}, Reviews: webhook.Options{Authorized: -1, Unauthorized: -1, Path: "/wrong", Version: webhook.V1beta1},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, a := range []authz.Attributes{request("bob", "get", "/healthz"), request("bob", "get", "/healthz"), request("root", "get", "/x", "system:masters")} {
		if v, _, err := c.Authorize(t.Context(), a); v != authz.NoOpinion || err != nil {
			t.Errorf("%+v: %v %v", a, v, err)
		}
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("%d calls", n)
	}
}

// A cluster that refuses to review, does not serve reviews or does not answer allows nobody, and the log has the reason.
func TestFailures(t *testing.T) {
	url, _ := cluster(t)
	nothing := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(nothing.Close)
	for _, tc := range []struct {
		cfg    client.Config
		logged string
	}{
		{client.Config{Server: url, Token: "other"}, "authorization webhook: refused: subjectaccessreviews"},
		{client.Config{Server: nothing.URL}, "serves no SubjectAccessReviews at the path " + webhook.SubjectAccessReviews},
		{client.Config{Server: "http://127.0.0.1:1"}, "connection refused"},
	} {
		logged := ""
		c, err := delegation.New(tc.cfg, delegation.Options{Reviews: webhook.Options{
			Backoff: time.Millisecond, Hooks: webhook.Hooks{Failed: func(_ string, err error) { logged = err.Error() }},
		}})
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := c.Authorize(t.Context(), request("ann", "get", "/x"))
		c.Close()
		if v != authz.NoOpinion || err == nil || err.Error() != "the authorization webhook has given no usable answer; the log of the server says why" || !strings.Contains(logged, tc.logged) {
			t.Errorf("%v %v, and the log has %s", v, err, logged)
		}
	}
	if _, err := delegation.New(client.Config{}, delegation.Options{}); err == nil || !strings.Contains(err.Error(), "Server") {
		t.Error(err)
	}
}

// TestAtAddress asks a kube-apiserver, as the administrator of the kubeconfig.
func TestAtAddress(t *testing.T) {
	path := os.Getenv("KEELSON_DELEGATE_KUBECONFIG")
	if path == "" {
		t.Skip("KEELSON_DELEGATE_KUBECONFIG names no cluster")
	}
	cfg, err := client.Kubeconfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := delegation.New(cfg, delegation.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pods := authz.Attributes{Verb: "list", ResourceRequest: true, APIVersion: "v1", Resource: "pods"}
	for user, want := range map[string]authz.Verdict{"system:kube-scheduler": authz.Allow, "nobody": authz.NoOpinion} {
		pods.User = &authn.User{Name: user, Groups: []string{authn.AuthenticatedAll}}
		verdict, reason, err := c.Authorize(t.Context(), pods)
		t.Log(user, verdict, reason, err)
		if verdict != want || err != nil {
			t.Errorf("%s: %v %v", user, verdict, err)
		}
	}
}
