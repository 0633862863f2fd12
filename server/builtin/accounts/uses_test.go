package accounts_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	"github.com/keelson-dev/keelson/server/servertest"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// use is a request of testdata/uses.json, with what a kube-apiserver 1.37.1 answered, counted in /metrics, and added to the audit event
// of the request. The numbers of seconds and ids in annotations are replaced.
type use struct {
	Name, Warning string
	Code          int
	Counted       map[string]int
	Annotations   map[string]string
}

// usedTokens returns a token for each name in testdata/uses.json, and makes what the tokens need.
func usedTokens(t *testing.T, srv *servertest.Server, key string) map[string]string {
	t.Helper()
	account := makeAccount(t, srv, "a")
	text, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := serviceaccount.ParseSigner(text)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := serviceaccount.NewKeys(signer)
	if err != nil {
		t.Fatal(err)
	}
	issuer, of := serviceaccount.Issuer{Keys: keys, URL: accounts.DefaultIssuer}, serviceaccount.Ref{Name: "a", UID: account.UID}
	all := map[string]string{}
	var listed []map[string]string
	invalid := map[string]string{invalidLabel: "2026-01-01"}
	for name, labels := range map[string]map[string]string{
		"manual": nil, "generated": nil, "manual-invalid": invalid, "generated-invalid": invalid, "generated-no-date": {invalidLabel: ""},
	} {
		if all[name], err = issuer.IssueLegacy("default", of, name); err != nil {
			t.Fatal(err)
		}
		admin(t, srv, "POST", inDefault+"secrets", &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{corev1.ServiceAccountNameKey: "a"}},
			Type:       corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(all[name])},
		}, nil)
		if strings.HasPrefix(name, "generated") {
			listed = append(listed, map[string]string{"name": name})
		}
	}
	admin(t, srv, "PATCH", inDefault+"serviceaccounts/a", map[string]any{"secrets": listed}, nil)
	bound := serviceaccount.Grant{Namespace: "default", Account: of, Audiences: []string{accounts.DefaultIssuer}, Begin: time.Now().Add(-2 * time.Hour), Lifetime: 3 * time.Hour}
	for name, change := range map[string]func(g *serviceaccount.Grant){
		"bound": func(*serviceaccount.Grant) {}, "stale": func(g *serviceaccount.Grant) { g.WarnAfter = time.Hour }, "fresh": func(g *serviceaccount.Grant) { g.WarnAfter = 150 * time.Minute },
		"stale-other-audience": func(g *serviceaccount.Grant) { g.WarnAfter, g.Audiences = time.Hour, []string{"x"} },
		"stale-expired":        func(g *serviceaccount.Grant) { g.WarnAfter, g.Lifetime = time.Hour, 110*time.Minute },
	} {
		grant := bound
		change(&grant)
		if all[name], _, err = issuer.Issue(grant); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// Each use of a token, in a request and in a TokenReview, is answered, counted and told in the audit log as by kube-apiserver 1.37.1.
func TestUses(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/uses.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []use
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, newKey(t))
	log := &audittest.Log{}
	policy := &audit.Policy{Rules: []audit.Rule{{Level: audit.Metadata}}}
	o := server.Options{Policy: server.Policy{Audit: []audit.Backend{{Name: "log", Policy: policy, Sink: log}}}}
	var srv *servertest.Server
	var tokens map[string]string
	reviews := false
	for i, want := range all {
		name, review := strings.CutPrefix(want.Name, "review of ")
		if i == 0 || review != reviews { // a server of its own, which remembers no token
			srv, reviews = start(t, o, accounts.Options{SigningKeyFile: key, NoControllers: true}), review
			tokens = usedTokens(t, srv, key)
		}
		token, path, body := tokens[name], "/apis/authentication.k8s.io/v1/selfsubjectreviews", any(&authenticationv1.SelfSubjectReview{})
		switch {
		case review:
			token, path, body = srv.Token, "/apis/authentication.k8s.io/v1/tokenreviews", &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
		case token == "":
			token, path, body = srv.Token, inDefault+"serviceaccounts/a/token", &authenticationv1.TokenRequest{}
		}
		before := counted(t, srv)
		log.Take()
		code, header, _ := request(t, srv, token, "POST", path, body, nil)
		annotations := annotationsOf(log.Take())
		got := map[string]int{}
		for metric, n := range counted(t, srv) {
			if n != before[metric] {
				got[metric] = n - before[metric]
			}
		}
		if code != want.Code || header.Get("Warning") != want.Warning || !maps.Equal(got, want.Counted) || !maps.Equal(annotations, want.Annotations) {
			t.Errorf("%s: got %d %q %v %v,\nwant %+v", want.Name, code, header.Get("Warning"), got, annotations, want)
		}
	}
}

// counted returns the metrics whose names begin with serviceaccount_.
func counted(t *testing.T, srv *servertest.Server) map[string]int {
	t.Helper()
	text := roundTrip(t, srv, "/metrics")
	got := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^(serviceaccount_\w+) (\d+)$`).FindAllStringSubmatch(text, -1) {
		got[m[1]], _ = strconv.Atoi(m[2])
	}
	if len(got) != 6 {
		t.Fatalf("%v", got)
	}
	return got
}

// annotationsOf returns the annotations of events about authentication, with numbers of seconds and ids replaced.
func annotationsOf(events []*audit.Event) map[string]string {
	all := map[string]string{}
	for _, e := range events {
		for name, value := range e.Annotations {
			if strings.HasPrefix(name, "authentication.") {
				value = regexp.MustCompile(`threshold: \d+$`).ReplaceAllString(value, "threshold: N")
				all[name] = regexp.MustCompile(`^JTI=[0-9a-f-]{36}$`).ReplaceAllString(value, "JTI=ID")
			}
		}
	}
	return all
}

// roundTrip returns the body of the answer to GET of the administrator.
func roundTrip(t *testing.T, srv *servertest.Server, path string) string {
	t.Helper()
	resp, err := srv.Client().Get(srv.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The event of a request whose token service accounts refuse and another authenticator accepts says what the token is, as that of a
// kube-apiserver 1.37.1 with a webhook that accepts all tokens.
func TestAnnotationsOfRefusedTokens(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	write(t, key, newKey(t))
	log := &audittest.Log{}
	policy := &audit.Policy{Rules: []audit.Rule{{Level: audit.Metadata}}}
	all := server.ExtensionFunc(func(h *server.Host) error {
		return h.Authenticate(authn.TokenWebhook, authn.BearerToken(acceptsAll{}))
	})
	srv := start(t, server.Options{Policy: server.Policy{Audit: []audit.Backend{{Name: "log", Policy: policy, Sink: log}}}},
		accounts.Options{SigningKeyFile: key, NoControllers: true}, all)
	tokens := usedTokens(t, srv, key)
	tokens["gone"] = tokens["manual"]
	admin(t, srv, "DELETE", inDefault+"secrets/manual", nil, nil)
	const legacy, invalidated = "authentication.k8s.io/legacy-token", "authentication.k8s.io/legacy-token-invalidated"
	for name, want := range map[string]map[string]string{
		"gone":                 {legacy: "system:serviceaccount:default:a"},
		"generated-invalid":    {legacy: "system:serviceaccount:default:a", invalidated: "generated-invalid/default"},
		"stale-other-audience": {},
	} {
		for range 2 { // the second time the token is remembered
			log.Take()
			who := whoAmI(t, srv, tokens[name])
			if got := annotationsOf(log.Take()); who != "hooked" || !maps.Equal(got, want) {
				t.Errorf("%s: %s, %v", name, who, got)
			}
		}
	}
}

// acceptsAll accepts all tokens.
type acceptsAll struct{}

func (acceptsAll) AuthenticateToken(context.Context, string) (*authn.Response, error) {
	return &authn.Response{User: authn.User{Name: "hooked", Groups: []string{"system:masters"}}}, nil
}
