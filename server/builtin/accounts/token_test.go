package accounts_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/internal/audittest"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claims returns the claims of a token.
func claims(t *testing.T, token string) (c struct {
	Issued     int64  `json:"iat"`
	Expires    int64  `json:"exp"`
	ID         string `json:"jti"`
	Kubernetes struct {
		WarnAfter int64 `json:"warnafter"`
		Pod, Node *struct{ Name, UID string }
	} `json:"kubernetes.io"`
}) {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[1])
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func seconds(n int64) *int64 { return &n }

// A longer time than the option allows is shortened, with a warning.
func TestMaxExpiration(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{}, accounts.Options{NoControllers: true, MaxExpiration: 2 * time.Hour})
	makeAccount(t, srv, "a")
	for life, want := range map[int64]int64{7200: 7200, 7201: 7200, 1 << 32: 7200, 600: 600} {
		var out authenticationv1.TokenRequest
		in := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: seconds(life)}}
		_, header, _ := request(t, srv, srv.Token, "POST", inDefault+"serviceaccounts/a/token", in, &out)
		c := claims(t, out.Status.Token)
		if *out.Spec.ExpirationSeconds != want || c.Expires-c.Issued != want || (header.Get("Warning") != "") != (life > want) {
			t.Errorf("%d s: %+v, %+v, %v", life, out, c, header)
		}
		if w := header.Get("Warning"); life == 7201 && w != `299 - "requested expiration of 7201 seconds shortened to 7200 seconds"` {
			t.Errorf("warning %s", w)
		}
	}
}

// If the kinds Pod and Node are served, tokens are bound to them as in kube-apiserver: a token for an hour and seven seconds is valid for a
// year, unless it is for others than the server, or an option forbids it.
func TestPods(t *testing.T) {
	t.Parallel()
	for _, forbidden := range []bool{false, true} {
		kinds := server.Types{AddToScheme: corev1.AddToScheme}
		srv := start(t, server.Options{}, accounts.Options{NoControllers: true, NoExtension: forbidden}, kinds)
		makeAccount(t, srv, "a")
		makeAccount(t, srv, "b")
		admin(t, srv, "POST", "/api/v1/nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, nil)
		for name, node := range map[string]string{"p": "", "q": "n", "r": "gone"} {
			admin(t, srv, "POST", inDefault+"pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{ServiceAccountName: "a", NodeName: node}}, nil)
		}
		for _, test := range []struct {
			pod       string
			life      int64
			audiences []string
			year      bool
			node      string
		}{
			{"p", 3607, nil, true, ""}, {"p", 3608, nil, false, ""}, {"p", 3607, []string{accounts.DefaultIssuer}, true, ""},
			{"p", 3607, []string{accounts.DefaultIssuer, "x"}, false, ""}, {"q", 3607, nil, true, "n"}, {"r", 3600, nil, false, "gone"},
		} {
			token := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{
				ExpirationSeconds: &test.life, Audiences: test.audiences, BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: test.pod},
			})
			c, life, after := claims(t, token), test.life, int64(0)
			if test.year && !forbidden {
				life, after = 365*24*3600, c.Issued+test.life
			}
			node := ""
			if c.Kubernetes.Node != nil {
				node = c.Kubernetes.Node.Name
			}
			if c.Expires-c.Issued != life || c.Kubernetes.WarnAfter != after || c.Kubernetes.Pod == nil || node != test.node {
				t.Errorf("%+v: %+v", test, c)
			}
			if test.audiences == nil && whoAmI(t, srv, token) != "system:serviceaccount:default:a" {
				t.Errorf("%+v is refused", test)
			}
		}
		bound := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "p"}})
		onNode := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: "n"}})
		admin(t, srv, "DELETE", inDefault+"pods/p", nil, nil)
		admin(t, srv, "DELETE", "/api/v1/nodes/n", nil, nil)
		for _, token := range []string{bound, onNode} {
			if got := whoAmI(t, srv, token); got != "401" {
				t.Errorf("without its Pod or Node: %s", got)
			}
		}
		in := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: "q"}}}
		if code, _, message := request(t, srv, srv.Token, "POST", inDefault+"serviceaccounts/b/token", in, nil); code != http.StatusBadRequest || message != `cannot bind token for serviceaccount "b" to pod running with different serviceaccount name.` {
			t.Errorf("a Pod of another account: %d %s", code, message)
		}
	}
}

// A kind that is not served is one that no token is bound to.
func TestUnservedKinds(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{}, accounts.Options{NoControllers: true})
	makeAccount(t, srv, "a")
	for _, kind := range []string{"Pod", "Node"} {
		in := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: kind, APIVersion: "v1", Name: "x"}}}
		if code, _, message := request(t, srv, srv.Token, "POST", inDefault+"serviceaccounts/a/token", in, nil); code != http.StatusBadRequest || message != "cannot bind token to object of type /v1, Kind="+kind {
			t.Errorf("%s: %d %s", kind, code, message)
		}
	}
}

// A token that would be larger than tokens may be is refused, and no other.
func TestManyAudiences(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{}, accounts.Options{NoControllers: true})
	makeAccount(t, srv, "a")
	for size, want := range map[int]int{1000: http.StatusCreated, 1 << 20: http.StatusUnprocessableEntity} {
		in := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{accounts.DefaultIssuer, strings.Repeat("x", size)}}}
		var out authenticationv1.TokenRequest
		if code, _, message := request(t, srv, srv.Token, "POST", inDefault+"serviceaccounts/a/token", in, &out); code != want {
			t.Errorf("%d bytes: %d %s", size, code, message)
		}
		if want == http.StatusCreated && whoAmI(t, srv, out.Status.Token) == "401" {
			t.Errorf("%d bytes: the token is refused", size)
		}
	}
}

// The event of a request for a token has the id of the token, and so has the user of the token.
func TestIssuedID(t *testing.T) {
	t.Parallel()
	log := &audittest.Log{}
	policy := &audit.Policy{Rules: []audit.Rule{{Level: audit.Metadata}}}
	srv := start(t, server.Options{Policy: server.Policy{Audit: []audit.Backend{{Name: "log", Policy: policy, Sink: log}}}}, accounts.Options{NoControllers: true})
	makeAccount(t, srv, "a")
	token := tokenOf(t, srv, "a", authenticationv1.TokenRequestSpec{})
	whoAmI(t, srv, token)
	id := "JTI=" + claims(t, token).ID
	all := log.Take()
	if !slices.ContainsFunc(all, func(e *audit.Event) bool {
		return e.Annotations["authentication.kubernetes.io/issued-credential-id"] == id
	}) {
		t.Error("no event has the id of the token that was issued")
	}
	if !slices.ContainsFunc(all, func(e *audit.Event) bool {
		return slices.Equal(e.User.Extra["authentication.kubernetes.io/credential-id"], []string{id})
	}) {
		t.Error("no event has the id of the token that was used")
	}
}
