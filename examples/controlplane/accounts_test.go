package main

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/credentials"
)

// The flags decide by which keys and for whom tokens of service accounts are issued and accepted.
func TestServiceAccountFlags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"sign", "verify"} {
		key, err := credentials.NewSigningKey()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(key))
	}
	write(t, filepath.Join(dir, "tokens.csv"), "secret,admin,1,\"system:masters\"\n")
	run := func(flags string) *client {
		p := start(t, dir, append(strings.Fields(flags), "--storage-file=plane.db", "--token-auth-file=tokens.csv", "--authorization-mode=RBAC")...)
		t.Cleanup(func() { p.stop() })
		return p.client("secret", nil, nil)
	}
	token := func(c *client, body string) (text string, claims map[string]any) {
		t.Helper()
		var out struct{ Status struct{ Token string } }
		if err := json.Unmarshal([]byte(c.want(201, "", "POST", "/api/v1/namespaces/default/serviceaccounts/default/token", body)), &out); err != nil {
			t.Fatal(err)
		}
		payload, err := base64.RawURLEncoding.DecodeString(strings.Split(out.Status.Token, ".")[1])
		if err == nil {
			err = json.Unmarshal(payload, &claims)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out.Status.Token, claims
	}
	c := run("--service-account-issuer=https://a.example.com --service-account-issuer=https://b.example.com --service-account-signing-key-file=sign --service-account-key-file=verify --service-account-jwks-uri=https://keys.example.com/k --service-account-max-token-expiration=1h --api-audiences=plane,other")
	held, claims := token(c, `{"spec":{"expirationSeconds":7200}}`)
	if claims["iss"] != "https://a.example.com" || claims["exp"].(float64)-claims["iat"].(float64) != 3600 || len(claims["aud"].([]any)) != 2 {
		t.Errorf("claims %v", claims)
	}
	c.want(200, `"issuer":"https://a.example.com","jwks_uri":"https://keys.example.com/k"`, "GET", "/.well-known/openid-configuration", "")
	if keys := c.want(200, "", "GET", "/openid/v1/jwks", ""); strings.Count(keys, `"kid"`) != 2 {
		t.Errorf("keys %s", keys)
	}
	account := &client{t, c.url, held, c.http}
	account.want(201, `"username":"system:serviceaccount:default:default"`, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", "{}")
	account.want(200, `"kid"`, "GET", "/openid/v1/jwks", "")
	account.want(403, "", "GET", "/api/v1/namespaces/default/serviceaccounts", "")
	other, _ := token(c, `{"spec":{"audiences":["vault"]}}`)
	(&client{t, c.url, other, c.http}).want(401, "", "GET", "/api", "")
}
