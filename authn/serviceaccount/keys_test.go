package serviceaccount_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
)

func pemOf(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// Keys are read in the forms that kube-apiserver reads.
func TestParse(t *testing.T) {
	rsaKey, ecKey := signer(t, "rsa").(*rsa.PrivateKey), signer(t, "p384").(*ecdsa.PrivateKey)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(rsaKey)
	private := pemOf(t, "PRIVATE KEY", pkcs8, err)
	sec1, err := x509.MarshalECPrivateKey(ecKey)
	ec := pemOf(t, "EC PRIVATE KEY", sec1, err)
	pkix, err := x509.MarshalPKIXPublicKey(ecKey.Public())
	public := pemOf(t, "PUBLIC KEY", pkix, err)
	pkcs1 := pemOf(t, "RSA PUBLIC KEY", x509.MarshalPKCS1PublicKey(&rsaKey.PublicKey), nil)
	cert, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: rsaKey.N}, &x509.Certificate{}, rsaKey.Public(), rsaKey)
	certificate := pemOf(t, "CERTIFICATE", cert, err)
	other := "-----BEGIN OTHER-----\n-----END OTHER-----\n"
	for name, test := range map[string]struct {
		text string
		want int
	}{
		"PKCS 8": {private, 1}, "SEC 1": {ec, 1}, "PKIX": {public, 1}, "PKCS 1": {pkcs1, 1}, "a certificate": {certificate, 1},
		"many, and others": {"text\n" + private + other + ec + public + pkcs1, 4}, "none": {"x" + other, 0}, "empty": {"", 0},
		"damaged": {strings.Replace(public, "M", "N", 1), 0}, "damaged private": {strings.Replace(private, "M", "N", 1), 0},
	} {
		got, err := serviceaccount.ParsePublic([]byte(test.text))
		if len(got) != test.want || (err == nil) != (test.want > 0) {
			t.Errorf("%s: %d keys, %v", name, len(got), err)
		}
	}
	for name, test := range map[string]struct {
		text string
		want crypto.Signer
	}{
		"the first": {public + other + ec + private, ecKey}, "PKCS 8": {private, rsaKey}, "public": {public, nil}, "empty": {"", nil},
	} {
		got, err := serviceaccount.ParseSigner([]byte(test.text))
		if (err == nil) != (test.want != nil) || err == nil && !got.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(test.want.Public()) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Keys that are too weak, or of other kinds, are refused, and the keys from before stay.
func TestRefusedKeys(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Skip(err) // a mode of the runtime refuses it
	}
	curve, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k := keys(t, "p256")
	for name, key := range map[string]crypto.Signer{"1,024 bits": weak, "P-224": curve, "Ed25519": edwards} {
		if err := k.Replace(key); err == nil {
			t.Errorf("%s: it signs", name)
		}
		if err := k.Replace(signer(t, "rsa"), key.Public()); err == nil {
			t.Errorf("%s: it verifies", name)
		}
	}
	if err := k.Replace(nil); err == nil {
		t.Error("no keys are accepted")
	}
	var many []crypto.PublicKey
	for range serviceaccount.MaxKeys + 1 {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		many = append(many, key.Public())
	}
	if err := k.Replace(nil, many...); err == nil {
		t.Errorf("%d keys are accepted", len(many))
	}
	a := authenticator(t, account(), k, serviceaccount.Options{})
	if got := outcome(a, t.Context(), issue(t, k)); got != user {
		t.Errorf("the keys from before: %q", got)
	}
	if err := k.Replace(nil, signer(t, "p256").Public()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := (serviceaccount.Issuer{Keys: k, URL: issuer}).Issue(serviceaccount.Grant{}); err == nil {
		t.Error("a token was issued without a key")
	}
}

// issue returns a token of the account of the tests.
func issue(t testing.TB, k *serviceaccount.Keys) string {
	t.Helper()
	text, _, err := serviceaccount.Issuer{Keys: k, URL: issuer}.Issue(serviceaccount.Grant{
		Namespace: "ns", Account: serviceaccount.Ref{Name: "a", UID: "u"}, Audiences: []string{"api"}, Begin: now, Lifetime: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Keys are rotated while tokens are issued and verified, and no token is refused.
func TestRotation(t *testing.T) {
	k := keys(t, "p256")
	a := authenticator(t, account(), k, serviceaccount.Options{})
	names := []string{"p256", "p384", "p521", "rsa"}
	done := make(chan struct{})
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() {
			held := issue(t, k)
			for n := 0; ; n++ {
				if got := outcome(a, t.Context(), held); got != user {
					t.Errorf("after %d requests: %q", n, got)
					return
				}
				select {
				case <-done:
					return
				default:
				}
				held = issue(t, k)
			}
		})
	}
	for round := range 40 {
		var former []crypto.PublicKey
		for _, name := range names {
			former = append(former, signer(t, name).Public())
		}
		if err := k.Replace(signer(t, names[round%len(names)]), former...); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	close(done)
	clients.Wait()
	held := issue(t, k)
	if err := k.Replace(signer(t, "p256")); err != nil {
		t.Fatal(err)
	}
	if got := outcome(a, t.Context(), held); !strings.HasPrefix(got, "error: ") {
		t.Errorf("a token of a key that was removed: %q", got)
	}
}

// A token that could not be verified is not issued.
func TestTooLargeToIssue(t *testing.T) {
	for _, size := range []int{10 << 10, serviceaccount.MaxToken * 3 / 4, serviceaccount.MaxToken * 2} {
		k := keys(t, "p256")
		text, _, err := serviceaccount.Issuer{Keys: k, URL: issuer}.Issue(serviceaccount.Grant{
			Namespace: "ns", Account: serviceaccount.Ref{Name: "a", UID: "u"}, Audiences: []string{strings.Repeat("x", size), "api"}, Begin: now, Lifetime: time.Hour,
		})
		if small := size < serviceaccount.MaxToken/2; (err == nil) != small {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err != nil {
			continue
		}
		if got := outcome(authenticator(t, account(), k, serviceaccount.Options{}), t.Context(), text); got != user {
			t.Errorf("%d bytes: %q", size, got)
		}
	}
}

// The documents have the form of those of kube-apiserver.
func TestDocuments(t *testing.T) {
	k := keys(t, "p256", "rsa", "p384", "p256", "p521", "p384")
	got, err := k.Configuration(issuer, "https://keys.example.com/k")
	if want := `{"issuer":"` + issuer + `","jwks_uri":"https://keys.example.com/k","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256","ES384","ES512","RS256"]}`; err != nil || string(got) != want {
		t.Errorf("got  %s %v\nwant %s", got, err, want)
	}
	// As a kube-apiserver with these keys publishes them.
	const want = `{"keys":[{"use":"sig","kty":"RSA","kid":"Vq0fdS6PgQcvS7ZzZXd_s0l6_2iWC5jxy4Xn4vxbFHc","alg":"RS256","n":"sbYs-Pkwn_fYFEFCNtMr9ZIgVg3CGUb1uImP2iegPE2dB7cjtay9XXOWfk6Of5a7tc8N1rzbAmOzUlHe7t7m0wV88zyniL_kZx94y6VZBSUDZ6iZg8fR2p7Xb-CD4fFy3PlzFjVl0qRrf-gCCDadngDaYnb-lEcwmSSZEJWZCDNmgwx6u3JuYQSHO-YHp1he7S2lfthiZgpRABp3l8hz9IMjWnHvQZnduQ0PzYW5Tp9cMObS1yJlIhMe7ZLaVLVR0RK1HPypjzzolkAizbBgzHAsiVVB8iyKW8gZY2H6dPrSlBdbItZBB94uDgyVcZsKv7vRk35ij99vrvqticna0Q","e":"AQAB"},` +
		`{"use":"sig","kty":"EC","kid":"CTjmezEhv87Ktadkuibj73i_M3K8l-eay2kBu9YKIl0","crv":"P-384","alg":"ES384","x":"gEDz2r2OALfaujkTL-0_mPs7vl34eKL42oc2ejQeFKbnZoTo52Z-d4hQrZtAXly3","y":"0pcb26niZPoV1mjwjmYIfIHFT8dUAHwSWcewD10GLwrdfVujI85JklcW1iJZMwDs"},` +
		`{"use":"sig","kty":"EC","kid":"lR6utvh2-Wuxi9r73HEaoVi7J2BN8HL2Q_Qn7fiC0fU","crv":"P-256","alg":"ES256","x":"gYvIRLYjlxGmD4Ds9rR0wfJiY79P_SUEEafghg5e6KE","y":"B8aZ_-oRddXyF-hOYAiJJW8dcAOy0YYv6ADZHy1OAoQ"},` +
		`{"use":"sig","kty":"EC","kid":"E_nURbgJOnP1H6pIVUpfzqhKRPfBk0zjKtyV2yPw_2g","crv":"P-521","alg":"ES512","x":"ADpRZ7DyqR8S19LuWL11omZ5fvAEn7fCI0zzfHGKCVDisgALAGu6oE630c_CmESY8y6lzb1xNWvBVAkkKxaYWX2g","y":"ANyUhN2K2-JMfwi1MNkbkDYfOCbfOxxBOedGTAW4N-hluT5iPS8AT0atdUWFU6lwNkW_wWpZfn7E4yIDot6kRfaw"}]}`
	if got, err = k.Published(); err != nil || string(got) != want {
		t.Errorf("got  %s %v\nwant %s", got, err, want)
	}
	for issuer, ok := range map[string]bool{
		"https://a.example.com": true, "https://a.example.com/x": true, "http://a.example.com": false, "kubernetes": false, "https://": false,
		"https://a.example.com?x": false, "https://a.example.com?": false, "https://a.example.com#x": false, "%": false, "": false,
	} {
		if err := serviceaccount.CheckIssuer(issuer); (err == nil) != ok {
			t.Errorf("issuer %q: %v", issuer, err)
		}
	}
}

// Options that cannot be used are refused.
func TestOptions(t *testing.T) {
	for _, o := range []serviceaccount.Options{{}, {Issuers: []string{""}}, {Issuers: []string{"a", serviceaccount.LegacyIssuer}}, {Issuers: []string{"a"}, MaxToken: -1}} {
		if _, err := serviceaccount.New(account(), keys(t, "p256"), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
	k := keys(t, "p256")
	a := authenticator(t, account(), k, serviceaccount.Options{MaxToken: 100})
	if got := outcome(a, t.Context(), issue(t, k)); got != "no opinion" {
		t.Errorf("a token above MaxToken: %q", got)
	}
}
