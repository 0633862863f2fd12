package serviceaccount_test

import (
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/keelson-dev/keelson/authn/serviceaccount"
)

// BenchmarkVerify compares the authenticator with the bare verification of the library: parsing, the signature, and the standard
// claims. On a machine with two cores, the least of eight runs of 500 tokens: RSA 41.7 µs with the authenticator and 40.7 µs with the
// library, P-256 82.0 µs and 80.8 µs. The target is a ratio of 1.3.
func BenchmarkVerify(b *testing.B) {
	for name, alg := range map[string]jose.SignatureAlgorithm{"rsa": jose.RS256, "p256": jose.ES256} {
		k := keys(b, name)
		text := issue(b, k)
		a := authenticator(b, account(), k, serviceaccount.Options{})
		public := signer(b, name).Public()
		b.Run(name+"/library", func(b *testing.B) {
			for b.Loop() {
				parsed, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{alg})
				if err != nil {
					b.Fatal(err)
				}
				var c jwt.Claims
				if err := parsed.Claims(public, &c); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/authenticator", func(b *testing.B) {
			ctx := b.Context()
			for b.Loop() {
				if resp, err := a.AuthenticateToken(ctx, text); err != nil || resp == nil {
					b.Fatal(err)
				}
			}
		})
	}
}
