package jwt_test

import (
	"crypto"
	"crypto/elliptic"
	"testing"

	gojose "github.com/go-jose/go-jose/v4"

	"github.com/keelson-dev/keelson/authn/jwt"
)

// BenchmarkToken compares the authentication of a token that no cache knows with what the library needs to verify its signature.
func BenchmarkToken(b *testing.B) {
	for alg, key := range map[string]crypto.Signer{"RS256": newRSA(b), "ES256": newEC(b, elliptic.P256())} {
		p := newProvider(b, "127.0.0.1:0")
		e := entryOf(p, p.issue(issuerURL, "/a", public("k", key)))
		e.ClaimMappings.Groups = jwt.PrefixedClaim{Claim: "groups", Prefix: new("")}
		token := sign(b, alg, "k", key, claimsOf(1<<40, 0, `,"groups":["a","b"],"jti":"1"`))
		cel := e
		cel.ClaimMappings.Username = jwt.PrefixedClaim{Expression: "'x:' + claims.sub"}
		cel.ClaimMappings.Groups = jwt.PrefixedClaim{Expression: "claims.groups"}
		cel.UserValidationRules = []jwt.UserRule{{Expression: "!user.username.startsWith('system:')"}}
		b.Run(alg+"/library", func(b *testing.B) {
			for b.Loop() {
				signed, err := gojose.ParseSignedCompact(token, []gojose.SignatureAlgorithm{gojose.SignatureAlgorithm(alg)})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := signed.Verify(key.Public()); err != nil {
					b.Fatal(err)
				}
			}
		})
		for name, entry := range map[string]jwt.Entry{"claims": e, "expressions": cel} {
			a := newAuthenticator(b, configurationOf(entry), jwt.Options{})
			b.Run(alg+"/"+name, func(b *testing.B) {
				for b.Loop() {
					if resp, err := a.AuthenticateToken(b.Context(), token); resp == nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
