package jwt_test

import (
	"crypto/elliptic"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn/jwt"
)

// FuzzParse checks that no file does harm, and that what Parse accepts can be validated.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/configurations.json")
	if err != nil {
		f.Fatal(err)
	}
	var all []struct{ File string }
	if err := json.Unmarshal(text, &all); err != nil {
		f.Fatal(err)
	}
	for i := 0; i < len(all); i += 5 {
		f.Add([]byte(all[i].File))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := jwt.Parse(file)
		if err != nil {
			return
		}
		if err := jwt.Validate(c); err != nil {
			return
		}
		a, err := jwt.New(c, jwt.Options{Dial: noNetwork})
		if err == nil {
			a.Close()
		}
	})
}

// FuzzClaims checks that no claims do harm, and that each user has a name.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{valid(), `{}`, `[]`, `{"iss":"` + issuerURL + `","aud":["aud",null],"exp":1e300,"sub":null}`} {
		f.Add(seed)
	}
	p, key := newProvider(f, "127.0.0.1:0"), newEC(f, elliptic.P256())
	e := entryOf(p, p.issue(issuerURL, "/a", public("k", key)))
	e.ClaimMappings.Groups = jwt.PrefixedClaim{Expression: "claims.?groups.orValue([])"}
	e.ClaimMappings.Extra = []jwt.ExtraMapping{{Key: "example.com/x", ValueExpression: "claims.?x.orValue('')"}}
	e.UserValidationRules = []jwt.UserRule{{Expression: "user.groups.all(g, g != user.username)"}}
	a := newAuthenticator(f, configurationOf(e), jwt.Options{Limits: jwt.Limits{Pause: time.Millisecond}})
	f.Fuzz(func(t *testing.T, claims string) {
		resp, err := a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, claims))
		if resp != nil && (err != nil || resp.User.Name == "") {
			t.Errorf("%s: %+v, %v", claims, resp, err)
		}
	})
}

// FuzzToken checks that no text is taken for a token, unless it is the one that was signed.
func FuzzToken(f *testing.F) {
	p, key := newProvider(f, "127.0.0.1:0"), newEC(f, elliptic.P256())
	a := newAuthenticator(f, configurationOf(entryOf(p, p.issue(issuerURL, "/a", public("k", key)))), jwt.Options{Limits: jwt.Limits{Pause: time.Microsecond}})
	good := sign(f, "ES256", "k", key, valid())
	f.Add(good)
	f.Add(signHMAC(`{"alg":"HS256"}`, []byte("x"), valid()))
	f.Fuzz(func(t *testing.T, token string) {
		resp, err := a.AuthenticateToken(t.Context(), token)
		if resp != nil && (err != nil || resp.User.Name != "ann") {
			t.Errorf("%q is a token of %q", token, resp.User.Name)
		}
	})
}
