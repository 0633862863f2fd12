package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/keelson-dev/keelson/server/options"
)

// issuerOfTokens is an OpenID Connect issuer with one key.
type issuerOfTokens struct {
	*httptest.Server
	ca     string // in PEM
	signer jose.Signer
}

func newIssuerOfTokens(t *testing.T) *issuerOfTokens {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuerOfTokens{}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any = jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k"}}}
		if r.URL.Path != "/keys" {
			answer = map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(i.Close)
	i.ca = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
	if i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "k"}}, nil); err != nil {
		t.Fatal(err)
	}
	return i
}

// token returns a token of a user for the client "plane".
func (i *issuerOfTokens) token(t *testing.T, user string) string {
	t.Helper()
	signed, err := i.signer.Sign([]byte(fmt.Sprintf(`{"iss":%q,"aud":"plane","sub":%q,"groups":["g"],"jti":"1","exp":%d}`, i.URL, user, time.Now().Add(time.Hour).Unix())))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// config returns a file of --authentication-config.
func (i *issuerOfTokens) config(prefix, more string) string {
	return fmt.Sprintf(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","jwt":[{"issuer":{"url":%q,"audiences":["plane"],"certificateAuthority":%q},
		"claimMappings":{"username":{"claim":"sub","prefix":%q},"groups":{"expression":"claims.groups"}}}]%s}`, i.URL, i.ca, prefix, more)
}

// The file of --authentication-config decides about tokens and about anonymous requests, and is used again when it changes. A wrong one
// changes nothing.
func TestAuthenticationConfig(t *testing.T) {
	t.Parallel()
	i, dir := newIssuerOfTokens(t), t.TempDir()
	const anonymous = `,"anonymous":{"enabled":true,"conditions":[{"path":"/livez"}]}`
	file := filepath.Join(dir, "auth.json")
	write(t, file, i.config("a:", anonymous))
	write(t, filepath.Join(dir, "tokens.csv"), "t-admin,root,0,system:masters\n")
	p := start(t, dir, "--storage-file=plane.db", "--authorization-mode=RBAC", "--token-auth-file=tokens.csv", "--authentication-config=auth.json")
	root, nobody, ann := p.client("t-admin", nil, nil), p.client("", nil, nil), asked{client: p.client(i.token(t, "ann"), nil, nil)}
	ann.becomes("a:ann  [g system:authenticated] []")
	nobody.want(200, "ok", "GET", "/livez", "")
	nobody.want(401, "Unauthorized", "GET", "/version", "")
	isChecked := func(want int) {
		for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			if code, _ := root.ask("GET", "/readyz/authentication-config", ""); code == want {
				return
			}
			if time.Since(begin) > limit {
				t.Fatalf("the check of the file does not answer %d", want)
			}
		}
	}
	for _, wrong := range []string{"{", i.config("b:", ""), i.config("b:", anonymous+`,"x":1`)} {
		write(t, file, wrong)
		isChecked(500)
		ann.is("a:ann  [g system:authenticated] []")
		write(t, file, i.config("a:", anonymous))
		isChecked(200)
	}
	write(t, file, i.config("c:", anonymous))
	ann.becomes("c:ann  [g system:authenticated] []")
	shown := root.want(200, "", "GET", "/metrics", "")
	for _, want := range []string{
		"\napiserver_authentication_config_controller_automatic_reloads_total{status=\"failure\"} ",
		"\napiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds{status=\"success\"} ",
		"\napiserver_authentication_config_controller_last_config_info{hash=\"sha256:",
		"\napiserver_authentication_jwt_authenticator_latency_seconds_count{jwt_issuer_hash=\"sha256:",
		"\napiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info{hash=\"sha256:",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("the metrics lack %q", want)
		}
	}
	if strings.Contains(p.stderr.String(), "without effect yet") {
		t.Error("the flag is said to have no effect")
	}
	p.stop()
}

// Files and flags that cannot be used are named, in the words of kube-apiserver.
func TestWrongIssuers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "auth.json")
	const head = `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration",`
	write(t, file, head+`"x":1}`)
	anonymous := filepath.Join(dir, "anonymous.json")
	write(t, anonymous, head+`"anonymous":{"enabled":true}}`)
	reserved := filepath.Join(dir, "reserved.json")
	write(t, reserved, head+`"jwt":[{"issuer":{"url":"https://own","audiences":["a"]},"claimMappings":{"username":{"claim":"sub","prefix":""}}}]}`)
	for args, want := range map[string]string{
		"--authentication-config=" + file:                                                           "failed to load authentication configuration from file " + strconv.Quote(file) + `: strict decoding error: unknown field "x"`,
		"--authentication-config=" + filepath.Join(dir, "no"):                                       "no such file or directory",
		"--anonymous-auth --authentication-config=" + anonymous:                                     "anonymous: Forbidden: --anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file",
		"--service-account-issuer=https://own --authentication-config=" + reserved:                  "URL must not overlap with disallowed issuers: [https://own]",
		"--oidc-issuer-url=http://a --oidc-client-id=a":                                             `jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https`,
		"--oidc-issuer-url=https://a --oidc-client-id=a --oidc-signing-algs=HS256":                  `oidc: unsupported signing alg: "HS256"`,
		"--oidc-issuer-url=https://a --oidc-client-id=a --oidc-ca-file=" + filepath.Join(dir, "no"): "no such file or directory",
	} {
		o, err := options.Parse(program(), append(strings.Fields(args), "--storage-file="+filepath.Join(dir, "db"), "--cert-dir="+dir, "--secure-port=0", "--authorization-mode=RBAC"))
		if err == nil {
			err = serve(t.Context(), o)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", args, err, want)
		}
	}
}

// The flags of OIDC name one issuer.
func TestOIDCFlags(t *testing.T) {
	t.Parallel()
	i, dir := newIssuerOfTokens(t), t.TempDir()
	write(t, filepath.Join(dir, "issuer.crt"), i.ca)
	p := start(t, dir, "--storage-file=plane.db", "--authorization-mode=RBAC", "--oidc-issuer-url="+i.URL, "--oidc-client-id=plane", "--oidc-ca-file=issuer.crt",
		"--oidc-username-prefix=x:", "--oidc-groups-claim=groups", "--oidc-signing-algs=ES256", "--oidc-required-claim=jti=1")
	asked{client: p.client(i.token(t, "ann"), nil, nil)}.becomes("x:ann  [g system:authenticated] []")
	asked{client: p.client(strings.Replace(i.token(t, "ann"), ".", "x.", 1), nil, nil)}.is("")
	p.stop()
}
