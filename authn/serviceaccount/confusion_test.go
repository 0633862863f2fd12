package serviceaccount_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
)

func kid(t testing.TB, key string) string {
	t.Helper()
	id, err := serviceaccount.KeyID(signer(t, key).Public())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func b64(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// hmacOf returns a token that is signed with a secret.
func hmacOf(t *testing.T, secret []byte) string {
	t.Helper()
	claims, err := json.Marshal(claimsOf(nil))
	if err != nil {
		t.Fatal(err)
	}
	text := b64(`{"alg":"HS256","kid":"`+kid(t, "rsa")+`"}`) + "." + b64(string(claims))
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Tokens that were not issued by a server, or not for it, have no user. The expected outcomes but those of unsigned texts are those of
// kube-apiserver.
func TestConfusion(t *testing.T) {
	der, err := x509.MarshalPKIXPublicKey(signer(t, "rsa").Public())
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := token(t, claimsOf(nil), "rsa", jose.RS256, nil)
	parts := strings.Split(good, ".")
	text := func(claims map[string]any) string {
		out, err := json.Marshal(claims)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	rs := func(claims any, headers member) string { return token(t, claims, "rsa", jose.RS256, headers) }
	const wrong = "error: the signature is not of a key of this server"
	a := authenticator(t, account(), keys(t, "rsa", "p256", "p384"), serviceaccount.Options{})
	for name, test := range map[string]struct{ token, want string }{
		"valid":                         {good, user},
		"with its key":                  {rs(claimsOf(nil), member{"kid": kid(t, "rsa")}), user},
		"of the second issuer":          {rs(claimsOf(member{"iss": "https://former.example.com"}), nil), user},
		"another key":                   {token(t, claimsOf(nil), "p256", jose.ES256, nil), user},
		"RS512":                         {token(t, claimsOf(nil), "rsa", jose.RS512, nil), user},
		"PS256":                         {token(t, claimsOf(nil), "rsa", jose.PS256, nil), user},
		"headers of no meaning":         {rs(claimsOf(nil), member{"typ": "foo", "jku": "https://evil.example.com", "x5u": "https://evil.example.com"}), user},
		"alg none":                      {b64(`{"alg":"none"}`) + "." + parts[1] + ".", "no opinion"},
		"alg None":                      {b64(`{"alg":"None"}`) + "." + parts[1] + "." + parts[2], "no opinion"},
		"no alg":                        {b64(`{}`) + "." + parts[1] + "." + parts[2], "no opinion"},
		"HMAC with the public key":      {hmacOf(t, public), "no opinion"},
		"HMAC with the DER":             {hmacOf(t, der), "no opinion"},
		"HMAC with nothing":             {hmacOf(t, nil), "no opinion"},
		"a key that is not of here":     {token(t, claimsOf(nil), "p521", jose.ES512, nil), wrong},
		"its id, and it is not here":    {token(t, claimsOf(nil), "p521", jose.ES512, member{"kid": kid(t, "p521")}), "error: invalid signature, no keys found"},
		"not here, the id of one here":  {token(t, claimsOf(nil), "p521", jose.ES512, member{"kid": kid(t, "p384")}), wrong},
		"the id of another key here":    {rs(claimsOf(nil), member{"kid": kid(t, "p256")}), wrong},
		"an unknown id":                 {rs(claimsOf(nil), member{"kid": "../../etc/passwd"}), "error: invalid signature, no keys found"},
		"an id of nothing":              {rs(claimsOf(nil), member{"kid": ""}), user},
		"a number as id":                {rs(claimsOf(nil), member{"kid": 1}), "no opinion"},
		"a critical header":             {rs(claimsOf(nil), member{"crit": []string{"x"}, "x": 1}), wrong},
		"its own key in the header":     {b64(`{"alg":"ES512","jwk":{"kty":"EC"}}`) + "." + parts[1] + "." + parts[2], "no opinion"},
		"two algs":                      {b64(`{"alg":"none","alg":"RS256"}`) + "." + parts[1] + "." + parts[2], "no opinion"},
		"two issuers":                   {rs(text(claimsOf(nil))[:1]+`"iss":"https://evil.example.com",`+text(claimsOf(nil))[1:], nil), "no opinion"},
		"two subjects":                  {rs(text(claimsOf(nil))[:1]+`"sub":"admin",`+text(claimsOf(nil))[1:], nil), "no opinion"},
		"two namespaces":                {rs(strings.Replace(text(claimsOf(nil)), `"namespace":"ns"`, `"namespace":"x","namespace":"ns"`, 1), nil), "error: service account token: json: duplicate key 'namespace' in object"},
		"a claim in upper case":         {rs(text(claimsOf(nil))[:1]+`"KUBERNETES.IO":{},`+text(claimsOf(nil))[1:], nil), user},
		"another issuer":                {rs(claimsOf(member{"iss": "https://evil.example.com"}), nil), "no opinion"},
		"an issuer with a slash":        {rs(claimsOf(member{"iss": issuer + "/"}), nil), "no opinion"},
		"no issuer":                     {rs(claimsOf(member{"iss": nil}), nil), "no opinion"},
		"a number as issuer":            {rs(claimsOf(member{"iss": 1}), nil), "no opinion"},
		"another audience":              {rs(claimsOf(member{"aud": []string{"vault"}}), nil), `error: token audiences ["vault"] is invalid for the target audiences ["api" "` + issuer + `"]`},
		"an audience as a text":         {rs(claimsOf(member{"aud": "api"}), nil), user},
		"no audience":                   {rs(claimsOf(member{"aud": nil}), nil), user},
		"no account":                    {rs(claimsOf(member{"kubernetes.io": nil}), nil), "error: the token has no claim kubernetes.io"},
		"no namespace":                  {rs(claimsOf(member{"kubernetes.io": kube(member{"namespace": nil})}), nil), "error: the token names no account"},
		"a list as account":             {rs(claimsOf(member{"kubernetes.io": []string{"x"}}), nil), "error: service account token: json: cannot unmarshal array into Go value of type serviceaccount.bound"},
		"a subject of no effect":        {rs(claimsOf(member{"sub": "system:admin"}), nil), user},
		"no uid":                        {rs(claimsOf(member{"kubernetes.io": kube(member{"serviceaccount": member{"name": "a"}})}), nil), "error: service account UID (u) does not match claim ()"},
		"for a webhook":                 {rs(claimsOf(member{"kubernetes.io": kube(member{"validatingwebhookconfiguration": member{"name": "w"}})}), nil), "error: tokens that are bound to webhook configurations are not supported"},
		"two payloads":                  {good + "." + parts[1], "no opinion"},
		"no signature":                  {parts[0] + "." + parts[1] + ".", wrong},
		"two parts":                     {parts[0] + "." + parts[1], "no opinion"},
		"JSON":                          {`{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`, "no opinion"},
		"padded":                        {good + "=", "no opinion"},
		"no JSON as payload":            {rs("x", nil), "no opinion"},
		"something after the payload":   {rs(text(claimsOf(nil))+"{}", nil), "no opinion"},
		"too large":                     {rs(claimsOf(member{"x": strings.Repeat("x", serviceaccount.MaxToken)}), nil), "no opinion"},
		"deep":                          {rs(claimsOf(member{"x": json.RawMessage(strings.Repeat("[", 9000) + strings.Repeat("]", 9000))}), nil), user},
		"another user's payload":        {parts[0] + "." + b64(strings.Replace(text(claimsOf(nil)), `"ns"`, `"kube-system"`, 1)) + "." + parts[2], wrong},
		"nothing but dots":              {"..", "no opinion"},
		"a token of a bootstrap":        {"abcdef.0123456789abcdef", "no opinion"},
		"legacy, in a bound one's form": {rs(claimsOf(member{"iss": serviceaccount.LegacyIssuer}), nil), "error: namespace claim is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outcome(a, authn.WithAudiences(t.Context(), []string{"api", issuer}), test.token); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
