package serviceaccount_test

// Tokens of a kube-apiserver 1.37.1 that signed with the keys of testdata, recorded in testdata/kube-apiserver.json. The flags were
// --service-account-issuer https://kubernetes.default.svc, --service-account-signing-key-file and --service-account-key-file and, for the
// key rsa, --api-audiences api,https://keelson.example.com.
//
// To have a kube-apiserver with the issuer https://kubernetes.default.svc verify tokens of this package, set its address, the token of an
// administrator, and the name of its key in testdata:
//
//	KEELSON_WIRE_SERVER=https://127.0.0.1:6443 KEELSON_WIRE_TOKEN=... KEELSON_SIGNER=p256 go test -run TestAcceptedAtAddress ./authn/serviceaccount

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// recording has the tokens of one kube-apiserver, and the objects that they name.
type recording struct {
	Signer, Issuer, Namespace string
	Audiences                 []string
	Account, Secret, Node     serviceaccount.Ref
	Pods                      []serviceaccount.Ref
	Recorded                  int64
	Tokens                    []struct {
		Name, Token string
		Spec        authenticationv1.TokenRequestSpec
	}
}

func recordings(t *testing.T) []recording {
	t.Helper()
	text, err := os.ReadFile("testdata/kube-apiserver.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []recording
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 4 {
		t.Fatalf("%d recordings", len(all))
	}
	return all
}

func (r recording) world() *world {
	w := newWorld()
	w.put(
		&corev1.ServiceAccount{ObjectMeta: meta(r.Namespace, r.Account.Name, string(r.Account.UID))},
		&corev1.Secret{ObjectMeta: meta(r.Namespace, r.Secret.Name, string(r.Secret.UID))},
		&corev1.Node{ObjectMeta: meta("", r.Node.Name, string(r.Node.UID))},
	)
	for _, pod := range r.Pods {
		w.put(&corev1.Pod{ObjectMeta: meta(r.Namespace, pod.Name, string(pod.UID))})
	}
	return w
}

// part returns a part of a token as JSON, without the spaces and with its id replaced.
func part(t *testing.T, token string, i int) (string, map[string]any) {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.Split(token, ".")[i])
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if id, ok := all["jti"].(string); ok {
		if _, err := uuid.Parse(id); err != nil {
			t.Errorf("jti %q: %v", id, err)
		}
		text = bytes.Replace(text, []byte(id), []byte("ID"), 1)
	}
	return string(text), all
}

// This package accepts the tokens of kube-apiserver, and issues tokens with the same bytes apart from the id and the signature.
func TestTokensOfKubeAPIServer(t *testing.T) {
	for _, r := range recordings(t) {
		a := authenticator(t, r.world(), keys(t, r.Signer), serviceaccount.Options{
			Issuers: []string{r.Issuer}, Audiences: append(r.Audiences, "x"), Now: func() time.Time { return time.Unix(r.Recorded, 0) },
		})
		for _, one := range r.Tokens {
			t.Run(r.Signer+" "+one.Name, func(t *testing.T) {
				if got, want := outcome(a, t.Context(), one.Token), authn.ServiceAccount(r.Namespace, r.Account.Name).Name; got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
				payload, claims := part(t, one.Token, 1)
				begin, end := time.Unix(int64(claims["iat"].(float64)), 0), time.Unix(int64(claims["exp"].(float64)), 0)
				grant := serviceaccount.Grant{Namespace: r.Namespace, Account: r.Account, Audiences: one.Spec.Audiences, Begin: begin, Lifetime: end.Sub(begin)}
				bound := claims["kubernetes.io"].(map[string]any)
				for name, to := range map[string]**serviceaccount.Ref{"secret": &grant.Secret, "pod": &grant.Pod, "node": &grant.Node} {
					if ref, ok := bound[name].(map[string]any); ok {
						text, _ := json.Marshal(ref)
						if err := json.Unmarshal(text, to); err != nil {
							t.Fatal(err)
						}
					}
				}
				if after, ok := bound["warnafter"].(float64); ok {
					grant.WarnAfter = time.Unix(int64(after), 0).Sub(begin)
				}
				ours, id, err := serviceaccount.Issuer{Keys: keys(t, r.Signer), URL: r.Issuer}.Issue(grant)
				if err != nil {
					t.Fatal(err)
				}
				if got, _ := part(t, ours, 1); got != payload {
					t.Errorf("payload\n got %s\nwant %s", got, payload)
				}
				got, _ := part(t, ours, 0)
				if want, _ := part(t, one.Token, 0); got != want {
					t.Errorf("header %s, want %s", got, want)
				}
				if _, claims := part(t, ours, 1); claims["jti"] != id {
					t.Errorf("id %q, jti %v", id, claims["jti"])
				}
				if got := outcome(a, t.Context(), ours); !strings.HasPrefix(got, "system:serviceaccount:") {
					t.Errorf("ours: %q", got)
				}
			})
		}
	}
}

// kube-apiserver accepts tokens of this package.
func TestAcceptedAtAddress(t *testing.T) {
	url, name := os.Getenv("KEELSON_WIRE_SERVER"), os.Getenv("KEELSON_SIGNER")
	if url == "" || name == "" {
		t.Skip("no KEELSON_WIRE_SERVER or KEELSON_SIGNER")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	create := func(path string, in, out any) {
		t.Helper()
		body, _ := json.Marshal(in)
		req, _ := http.NewRequestWithContext(t.Context(), "POST", url+path, bytes.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+os.Getenv("KEELSON_WIRE_TOKEN"))
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(out); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("POST %s: %s %v", path, resp.Status, err)
		}
	}
	ns := fmt.Sprintf("tokens-%d", time.Now().UnixNano())
	create("/api/v1/namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, &corev1.Namespace{})
	var account corev1.ServiceAccount
	create("/api/v1/namespaces/"+ns+"/serviceaccounts", &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &account)
	var secret corev1.Secret
	create("/api/v1/namespaces/"+ns+"/secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}}, &secret)
	issuer := serviceaccount.Issuer{Keys: keys(t, name), URL: "https://kubernetes.default.svc"}
	of := serviceaccount.Ref{Name: "a", UID: account.UID}
	legacy, err := issuer.IssueLegacy(ns, of, "legacy")
	if err != nil {
		t.Fatal(err)
	}
	create("/api/v1/namespaces/"+ns+"/secrets", &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "legacy", Annotations: map[string]string{corev1.ServiceAccountNameKey: "a"}},
		Type:       corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{"token": []byte(legacy)},
	}, &corev1.Secret{})
	grant := serviceaccount.Grant{Namespace: ns, Account: of, Audiences: []string{"x"}, Begin: time.Now(), Lifetime: time.Hour}
	plain, id, err := issuer.Issue(grant)
	if err != nil {
		t.Fatal(err)
	}
	grant.Secret = &serviceaccount.Ref{Name: "s", UID: secret.UID}
	bound, _, err := issuer.Issue(grant)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"plain": plain, "bound": bound, "legacy": legacy} {
		review := authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{"x"}}}
		if name == "legacy" {
			review.Spec.Audiences = nil
		}
		create("/apis/authentication.k8s.io/v1/tokenreviews", &review, &review)
		if !review.Status.Authenticated || review.Status.User.Username != "system:serviceaccount:"+ns+":a" || review.Status.User.UID != string(account.UID) {
			t.Errorf("%s: %+v", name, review.Status)
		}
		if name == "plain" && !reflect.DeepEqual(review.Status.User.Extra[authn.CredentialIDKey], authenticationv1.ExtraValue{"JTI=" + id}) {
			t.Errorf("%s: %+v", name, review.Status.User.Extra)
		}
	}
}
