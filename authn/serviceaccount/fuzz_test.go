package serviceaccount_test

import (
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
)

// FuzzTokens checks that no text but a token of the server has a user, whatever it is. (A signature has many forms in base64url.)
func FuzzTokens(f *testing.F) {
	k := keys(f, "p256", "rsa")
	a := authenticator(f, whole(), k, serviceaccount.Options{})
	good := token(f, claimsOf(nil), "p256", jose.ES256, nil)
	f.Add(good)
	f.Add(token(f, claimsOf(member{"aud": "x"}), "rsa", jose.PS512, nil))
	f.Add(token(f, legacyOf(nil), "p384", jose.ES384, member{"kid": "x"}))
	f.Add("..")
	f.Add(b64(`{"alg":"none"}`) + "." + b64(`{"iss":"`+issuer+`"}`) + ".")
	accepted := good[:strings.LastIndexByte(good, '.')]
	f.Fuzz(func(t *testing.T, text string) {
		resp, err := a.AuthenticateToken(t.Context(), text)
		if resp == nil {
			return
		}
		clean := strings.Join(strings.Fields(text), "")
		if err != nil || !strings.HasPrefix(clean, accepted+".") {
			t.Errorf("%q has the user %+v, %v", text, resp.User, err)
		}
	})
}

// FuzzClaims checks that signed claims of any form neither panic nor have a user of another account.
func FuzzClaims(f *testing.F) {
	a := authenticator(f, whole(), keys(f, "p256"), serviceaccount.Options{})
	f.Add(`{"iss":"` + issuer + `","aud":["api"],"kubernetes.io":{"namespace":"ns","serviceaccount":{"name":"a","uid":"u"}}}`)
	f.Add(`{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:ns:a","kubernetes.io/serviceaccount/namespace":"ns"}`)
	f.Add(`{"iss":"` + issuer + `","exp":1e400,"aud":{}}`)
	f.Fuzz(func(t *testing.T, claims string) {
		resp, _ := a.AuthenticateToken(t.Context(), token(t, claims, "p256", jose.ES256, nil))
		if resp != nil && resp.User.Name != user && resp.User.Name != "system:serviceaccount:ns:ending" {
			t.Errorf("%q has the user %+v", claims, resp.User)
		}
	})
}
