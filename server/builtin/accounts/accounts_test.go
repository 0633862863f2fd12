package accounts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/servertest"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// start starts a server with service accounts.
func start(t *testing.T, o server.Options, a accounts.Options, more ...server.Extension) *servertest.Server {
	t.Helper()
	srv := servertest.Start(t, o)
	installBuiltin(t, srv)
	for _, e := range append([]server.Extension{accounts.New(a), reviews.New(reviews.Options{})}, more...) {
		if err := srv.Install(e); err != nil {
			t.Fatal(err)
		}
	}
	return srv
}

func installBuiltin(t *testing.T, srv *servertest.Server) {
	t.Helper()
	if err := srv.Install(builtin.New(builtin.Options{})); err != nil {
		t.Fatal(err)
	}
}

// request sends a request with a token, and decodes the answer into out, which may be nil.
func request(t *testing.T, srv *servertest.Server, token, method, path string, in, out any) (code int, header http.Header, message string) {
	t.Helper()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", map[bool]string{true: "application/merge-patch+json", false: "application/json"}[method == "PATCH"])
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := srv.Anonymous().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode >= 300 {
		var status metav1.Status
		_ = json.Unmarshal(text, &status)
		return resp.StatusCode, resp.Header, status.Message
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return resp.StatusCode, resp.Header, ""
}

// admin is request as the administrator, which must succeed.
func admin(t *testing.T, srv *servertest.Server, method, path string, in, out any) {
	t.Helper()
	if code, _, message := request(t, srv, srv.Token, method, path, in, out); code >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, code, message)
	}
}

const inDefault = "/api/v1/namespaces/default/"

// tokenOf requests a token.
func tokenOf(t *testing.T, srv *servertest.Server, account string, spec authenticationv1.TokenRequestSpec) string {
	t.Helper()
	var out authenticationv1.TokenRequest
	admin(t, srv, "POST", inDefault+"serviceaccounts/"+account+"/token", &authenticationv1.TokenRequest{Spec: spec}, &out)
	return out.Status.Token
}

// whoAmI returns the user of a token as the server sees it, or the code of the answer.
func whoAmI(t *testing.T, srv *servertest.Server, token string) string {
	t.Helper()
	var out authenticationv1.SelfSubjectReview
	code, _, _ := request(t, srv, token, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", &authenticationv1.SelfSubjectReview{}, &out)
	if code != http.StatusCreated {
		return fmt.Sprint(code)
	}
	return out.Status.UserInfo.Username
}

// within waits until done returns true.
func within(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func makeAccount(t *testing.T, srv *servertest.Server, name string) *corev1.ServiceAccount {
	t.Helper()
	var out corev1.ServiceAccount
	admin(t, srv, "POST", inDefault+"serviceaccounts", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, &out)
	return &out
}

// A token ends with its account, and an account of the same name that is made again has other tokens. No request with the token of an
// account that has just been made is refused.
func TestLifeOfToken(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{}, accounts.Options{})
	for range 20 {
		makeAccount(t, srv, "a")
		token := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{})
		if got := whoAmI(t, srv, token); got != "system:serviceaccount:default:a" {
			t.Fatalf("a new account: %s", got)
		}
		admin(t, srv, "DELETE", inDefault+"serviceaccounts/a", nil, nil)
		makeAccount(t, srv, "a")
		fresh := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{})
		if got := whoAmI(t, srv, fresh); got != "system:serviceaccount:default:a" {
			t.Fatalf("the account made again: %s", got)
		}
		admin(t, srv, "DELETE", inDefault+"serviceaccounts/a", nil, nil)
	}
}

// A token of which nothing is remembered ends at once with its account, its Secret, or by its audience.
func TestEndOfToken(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{}, accounts.Options{})
	makeAccount(t, srv, "a")
	admin(t, srv, "POST", inDefault+"secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, nil)
	bound := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Secret", APIVersion: "v1", Name: "s"}})
	plain := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{})
	other := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{Audiences: []string{"vault"}})
	if got := whoAmI(t, srv, other); got != "401" {
		t.Errorf("of another audience: %s", got)
	}
	var review authenticationv1.TokenReview
	admin(t, srv, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: other, Audiences: []string{"vault"}}}, &review)
	if !review.Status.Authenticated || len(review.Status.Audiences) != 1 || review.Status.Audiences[0] != "vault" {
		t.Errorf("reviewed for its audience: %+v", review.Status)
	}
	admin(t, srv, "DELETE", inDefault+"secrets/s", nil, nil)
	if got := whoAmI(t, srv, bound); got != "401" {
		t.Errorf("without its Secret: %s", got)
	}
	admin(t, srv, "DELETE", inDefault+"serviceaccounts/a", nil, nil)
	if got := whoAmI(t, srv, plain); got != "401" {
		t.Errorf("without its account: %s", got)
	}
}

// The account default is made in every namespace, and again when it is deleted.
func TestDefaultAccounts(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{}, accounts.Options{RootCA: []byte("CA\n")})
	has := func(path string, out any) bool {
		code, _, _ := request(t, srv, srv.Token, "GET", path, nil, out)
		return code == http.StatusOK
	}
	within(t, "the server is not ready", func() bool { return has("/readyz", nil) })
	admin(t, srv, "POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, nil)
	for _, ns := range []string{"default", "kube-system", "new"} {
		at := "/api/v1/namespaces/" + ns + "/"
		within(t, "no account in "+ns, func() bool { return has(at+"serviceaccounts/default", nil) })
		var ca corev1.ConfigMap
		within(t, "no certificates in "+ns, func() bool { return has(at+"configmaps/kube-root-ca.crt", &ca) })
		if ca.Data["ca.crt"] != "CA\n" || ca.Annotations["kubernetes.io/description"] == "" {
			t.Errorf("%s: %+v", ns, ca)
		}
	}
	var before, after corev1.ServiceAccount
	has(inDefault+"serviceaccounts/default", &before)
	admin(t, srv, "DELETE", inDefault+"serviceaccounts/default", nil, nil)
	within(t, "it is not made again", func() bool {
		return has(inDefault+"serviceaccounts/default", &after) && after.UID != before.UID
	})
	var ca corev1.ConfigMap
	for _, spoiled := range []map[string]any{{"data": map[string]string{"ca.crt": "x"}}, {"data": map[string]string{"more": "y"}}, {"metadata": map[string]any{"annotations": nil}}} {
		admin(t, srv, "PATCH", inDefault+"configmaps/kube-root-ca.crt", spoiled, nil)
		within(t, "the certificates are not restored", func() bool {
			ca = corev1.ConfigMap{}
			return has(inDefault+"configmaps/kube-root-ca.crt", &ca) && ca.Data["ca.crt"] == "CA\n" && len(ca.Data) == 1 && len(ca.Annotations) == 1
		})
	}
	version := ca.ResourceVersion
	admin(t, srv, "DELETE", "/api/v1/namespaces/new", nil, nil)
	within(t, "the namespace is not deleted", func() bool { return !has("/api/v1/namespaces/new", nil) })
	if has(inDefault+"configmaps/kube-root-ca.crt", &ca); ca.ResourceVersion != version {
		t.Error("certificates that were right were written again")
	}
}

// The Secret of a token is filled, tracked, and deleted with its account.
func TestLegacySecrets(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{}, accounts.Options{RootCA: []byte("CA\n")})
	account := makeAccount(t, srv, "a")
	var s corev1.Secret
	make := func(name string, annotations map[string]string) {
		admin(t, srv, "POST", inDefault+"secrets", &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Type: corev1.SecretTypeServiceAccountToken,
		}, nil)
	}
	get := func(name string) int {
		s = corev1.Secret{}
		code, _, _ := request(t, srv, srv.Token, "GET", inDefault+"secrets/"+name, nil, &s)
		return code
	}
	make("s", map[string]string{corev1.ServiceAccountNameKey: "a"})
	within(t, "it is not filled", func() bool { return get("s") == http.StatusOK && len(s.Data["token"]) > 0 })
	if string(s.Data["namespace"]) != "default" || string(s.Data["ca.crt"]) != "CA\n" || s.Annotations[corev1.ServiceAccountUIDKey] != string(account.UID) {
		t.Errorf("filled: %+v", s)
	}
	token := string(s.Data["token"])
	if got := whoAmI(t, srv, token); got != "system:serviceaccount:default:a" {
		t.Errorf("its token: %s", got)
	}
	within(t, "its use is not noted", func() bool {
		return get("s") == http.StatusOK && s.Labels["kubernetes.io/legacy-token-last-used"] == time.Now().UTC().Format(time.DateOnly)
	})
	make("orphan", map[string]string{corev1.ServiceAccountNameKey: "none"})
	within(t, "a Secret of no account is not deleted", func() bool { return get("orphan") == http.StatusNotFound })
	make("former", map[string]string{corev1.ServiceAccountNameKey: "a", corev1.ServiceAccountUIDKey: "before"})
	within(t, "a Secret of a former account is not deleted", func() bool { return get("former") == http.StatusNotFound })
	make("listed", map[string]string{corev1.ServiceAccountNameKey: "a"})
	admin(t, srv, "PATCH", inDefault+"serviceaccounts/a", map[string]any{"secrets": []map[string]string{{"name": "listed"}, {"name": "s"}}}, nil)
	admin(t, srv, "DELETE", inDefault+"secrets/listed", nil, nil)
	within(t, "a deleted Secret stays in the list of its account", func() bool {
		var a corev1.ServiceAccount
		admin(t, srv, "GET", inDefault+"serviceaccounts/a", nil, &a)
		return len(a.Secrets) == 1 && a.Secrets[0].Name == "s"
	})
	admin(t, srv, "DELETE", inDefault+"serviceaccounts/a", nil, nil)
	within(t, "it is not deleted with its account", func() bool { return get("s") == http.StatusNotFound })
	if got := whoAmI(t, srv, token); got != "401" {
		within(t, "its token is still accepted", func() bool { return whoAmI(t, srv, token) == "401" }) // until it is forgotten
	}
}

// A Secret whose token is invalidated has no user.
func TestInvalidated(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{}, accounts.Options{})
	makeAccount(t, srv, "a")
	var s corev1.Secret
	admin(t, srv, "POST", inDefault+"secrets", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{corev1.ServiceAccountNameKey: "a"}, Labels: map[string]string{"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}},
		Type:       corev1.SecretTypeServiceAccountToken,
	}, nil)
	within(t, "it is not filled", func() bool {
		admin(t, srv, "GET", inDefault+"secrets/s", nil, &s)
		return len(s.Data["token"]) > 0
	})
	if got := whoAmI(t, srv, string(s.Data["token"])); got != "401" {
		t.Errorf("invalidated: %s", got)
	}
	admin(t, srv, "PATCH", inDefault+"secrets/s", map[string]any{"metadata": map[string]any{"labels": map[string]any{"kubernetes.io/legacy-token-invalid-since": nil}}}, nil)
	if got := whoAmI(t, srv, string(s.Data["token"])); got != "system:serviceaccount:default:a" {
		t.Errorf("valid again: %s", got)
	}
}

// In a namespace that is gone nothing is made, also if objects may be in namespaces that do not exist.
func TestGoneNamespace(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{})
	for _, e := range []server.Extension{builtin.New(builtin.Options{AllowMissingNamespaces: true}), accounts.New(accounts.Options{RootCA: []byte("CA\n")})} {
		if err := srv.Install(e); err != nil {
			t.Fatal(err)
		}
	}
	has := func(path string) bool {
		code, _, _ := request(t, srv, srv.Token, "GET", "/api/v1/namespaces/"+path, nil, nil)
		return code == http.StatusOK
	}
	admin(t, srv, "POST", "/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}, nil)
	within(t, "no account", func() bool { return has("gone/serviceaccounts/default") && has("gone/configmaps/kube-root-ca.crt") })
	admin(t, srv, "DELETE", "/api/v1/namespaces/gone", nil, nil)
	within(t, "the namespace is not deleted", func() bool { return !has("gone") })
	time.Sleep(300 * time.Millisecond)
	if has("gone/serviceaccounts/default") || has("gone/configmaps/kube-root-ca.crt") {
		t.Error("something was made in a namespace that is gone")
	}
}
