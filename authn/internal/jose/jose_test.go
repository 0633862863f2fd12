package jose_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	gojose "github.com/go-jose/go-jose/v4"

	"github.com/keelson-dev/keelson/authn/internal/jose"
)

const claims = `{"iss":"https://a.example","sub":"ann"}`

var all = jose.Algorithms()

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func newRSA(tb testing.TB) *rsa.PrivateKey {
	tb.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// signRS256 signs a header and claims as they are.
func signRS256(tb testing.TB, key *rsa.PrivateKey, header, claims string) string {
	tb.Helper()
	text := encode(header) + "." + encode(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		tb.Fatal(err)
	}
	return text + "." + encode(string(signature))
}

func verify(text string, allowed []string, keys ...jose.Key) (string, error) {
	token, ok := jose.Read(text, 0)
	if !ok {
		return "", errors.New("no opinion")
	}
	signed, err := token.Check(allowed)
	if err != nil {
		return "", err
	}
	got, err := signed.Verify(keys)
	return string(got), err
}

// Every algorithm verifies, and only if it is allowed, and with its own key.
func TestAlgorithms(t *testing.T) {
	rsaKey := newRSA(t)
	private := map[string]crypto.Signer{}
	for _, alg := range all {
		private[alg] = rsaKey
	}
	for alg, curve := range map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()} {
		key, err := ecdsa.GenerateKey(curve, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		private[alg] = key
	}
	for alg, key := range private {
		signer, err := gojose.NewSigner(gojose.SigningKey{Algorithm: gojose.SignatureAlgorithm(alg), Key: gojose.JSONWebKey{Key: key, KeyID: "k"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign([]byte(claims))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := signed.CompactSerialize()
		good := jose.Key{ID: "k", Public: key.Public()}
		if got, err := verify(text, all, good); got != claims || err != nil {
			t.Errorf("%s: %q, %v", alg, got, err)
		}
		for _, other := range all {
			if _, err := verify(text, []string{other}, good); (err == nil) != (other == alg) || other != alg && !errors.Is(err, jose.ErrAlgorithm) {
				t.Errorf("%s where %s is allowed: %v", alg, other, err)
			}
			if _, err := verify(text, all, jose.Key{ID: "k", Algorithm: other, Public: key.Public()}); (err == nil) != (other == alg) {
				t.Errorf("%s with a key for %s: %v", alg, other, err)
			}
			if _, err := verify(text, all, jose.Key{ID: "k", Public: private[other].Public()}); err == nil && private[other] != key {
				t.Errorf("%s with the key of %s is accepted", alg, other)
			}
		}
	}
}

// Tokens of which there is no opinion: they are not of the form, or have no issuer.
func TestReadRefuses(t *testing.T) {
	payload := encode(claims)
	for name, text := range map[string]string{
		"empty":             "",
		"two parts":         "a." + payload,
		"four parts":        "a." + payload + ".b.c",
		"JWE":               "a." + payload + ".b.c.d",
		"not base64":        "a.!.b",
		"padded":            "a." + base64.URLEncoding.EncodeToString([]byte(claims+" ")) + ".b",
		"not JSON":          "a." + encode("x") + ".b",
		"nested":            "a." + encode("a."+payload+".b") + ".b",
		"no issuer":         "a." + encode(`{"sub":"ann"}`) + ".b",
		"other case":        "a." + encode(`{"ISS":"https://a.example"}`) + ".b",
		"issuer is a list":  "a." + encode(`{"iss":["https://a.example"]}`) + ".b",
		"issuer is null":    "a." + encode(`{"iss":null}`) + ".b",
		"issuer is empty":   "a." + encode(`{"iss":""}`) + ".b",
		"claims are a list": "a." + encode(`[{"iss":"a"}]`) + ".b",
		"JSON form":         `{"payload":"` + payload + `","signatures":[]}`,
		"large":             "a." + payload + "." + strings.Repeat("b", jose.MaxToken),
	} {
		if token, ok := jose.Read(text, 0); ok {
			t.Errorf("%s: read with the issuer %q", name, token.Issuer())
		}
	}
	if token, ok := jose.Read("a."+payload+".b", 0); !ok || token.Issuer() != "https://a.example" {
		t.Errorf("the issuer is %q, %v", token.Issuer(), ok)
	}
	if _, ok := jose.Read("a."+payload+".b", 20); ok {
		t.Error("a token is larger than the bound")
	}
}

// Tokens that a careless verifier would accept.
func TestConfusion(t *testing.T) {
	key, other := newRSA(t), newRSA(t)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	hmacToken := func() string {
		text := encode(`{"alg":"HS256","kid":"k"}`) + "." + encode(claims)
		mac := hmac.New(sha256.New, public)
		mac.Write([]byte(text))
		return text + "." + encode(string(mac.Sum(nil)))
	}
	embedded := func() string {
		signer, err := gojose.NewSigner(gojose.SigningKey{Algorithm: gojose.RS256, Key: other}, (&gojose.SignerOptions{EmbedJWK: true}))
		if err != nil {
			t.Fatal(err)
		}
		signed, err := signer.Sign([]byte(claims))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := signed.CompactSerialize()
		return text
	}
	good := signRS256(t, key, `{"alg":"RS256","kid":"k"}`, claims)
	parts := strings.Split(good, ".")
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"good":                   {good, nil},
		"no kid":                 {signRS256(t, key, `{"alg":"RS256"}`, claims), nil},
		"alg none":               {encode(`{"alg":"none"}`) + "." + encode(claims) + ".", jose.ErrAlgorithm},
		"alg None":               {encode(`{"alg":"None"}`) + "." + encode(claims) + ".", jose.ErrAlgorithm},
		"no alg":                 {encode(`{"kid":"k"}`) + "." + encode(claims) + "." + parts[2], jose.ErrAlgorithm},
		"alg is a list":          {signRS256(t, key, `{"alg":["RS256"],"kid":"k"}`, claims), jose.ErrAlgorithm},
		"HMAC with a public key": {hmacToken(), jose.ErrAlgorithm},
		"key in the header":      {embedded(), jose.ErrSignature},
		"other key, same kid":    {signRS256(t, other, `{"alg":"RS256","kid":"k"}`, claims), jose.ErrSignature},
		"kid with a path":        {signRS256(t, key, `{"alg":"RS256","kid":"../../dev/null"}`, claims), jose.ErrSignature},
		"kid is huge":            {signRS256(t, key, `{"alg":"RS256","kid":"`+strings.Repeat("k", 20_000)+`"}`, claims), jose.ErrSignature},
		"kid is a number":        {signRS256(t, key, `{"alg":"RS256","kid":1}`, claims), jose.ErrMalformed},
		"kid twice":              {signRS256(t, key, `{"alg":"RS256","kid":"x","kid":"k"}`, claims), jose.ErrMalformed},
		"alg twice":              {signRS256(t, key, `{"alg":"none","alg":"RS256","kid":"k"}`, claims), jose.ErrMalformed},
		"crit unknown":           {signRS256(t, key, `{"alg":"RS256","kid":"k","crit":["x"],"x":1}`, claims), jose.ErrMalformed},
		"crit empty":             {signRS256(t, key, `{"alg":"RS256","kid":"k","crit":[]}`, claims), jose.ErrMalformed},
		"crit b64":               {signRS256(t, key, `{"alg":"RS256","kid":"k","crit":["b64"],"b64":false}`, claims), jose.ErrMalformed},
		"b64 alone":              {signRS256(t, key, `{"alg":"RS256","kid":"k","b64":false}`, claims), jose.ErrMalformed},
		"header is a list":       {signRS256(t, key, `["RS256"]`, claims), jose.ErrMalformed},
		"header is empty":        {"." + parts[1] + "." + parts[2], jose.ErrAlgorithm},
		"no signature":           {parts[0] + "." + parts[1] + ".", jose.ErrSignature},
		"other claims":           {parts[0] + "." + encode(strings.Replace(claims, "ann", "eve", 1)) + "." + parts[2], jose.ErrSignature},
		"claims twice":           {signRS256(t, key, `{"alg":"RS256"}`, `{"iss":"https://a.example","sub":"ann","sub":"eve"}`), jose.ErrMalformed},
		"issuer twice":           {signRS256(t, key, `{"alg":"RS256"}`, `{"iss":"https://b.example","iss":"https://a.example"}`), jose.ErrMalformed},
		"claims twice, within":   {signRS256(t, key, `{"alg":"RS256"}`, `{"iss":"https://a.example","x":{"y":1,"y":2}}`), jose.ErrMalformed},
	} {
		if _, err := verify(c.text, all, jose.Key{ID: "k", Public: key.Public()}); c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: the error is %v; want %v", name, err, c.want)
		}
	}
	if _, err := verify(good, nil, jose.Key{ID: "k", Public: key.Public()}); err == nil {
		t.Error("no algorithm is allowed, and the token is accepted")
	}
	if _, err := verify(good, []string{"none", "HS256"}, jose.Key{ID: "k", Public: key.Public()}); err == nil {
		t.Error("the token is accepted")
	}
	if _, err := verify(encode(`{"alg":"none"}`)+"."+encode(claims)+".", []string{"none"}, jose.Key{ID: "k", Public: key.Public()}); !errors.Is(err, jose.ErrAlgorithm) {
		t.Errorf("the algorithm none was listed: %v", err)
	}
	if got, err := verify(good, all, jose.Key{ID: "x", Public: key.Public()}, jose.Key{ID: "k", Public: other.Public()}, jose.Key{ID: "k", Public: []byte("secret")}, jose.Key{ID: "k", Public: key.Public()}); got != claims || err != nil {
		t.Errorf("with several keys of one id: %q, %v", got, err)
	}
	if _, err := verify(good, all); !errors.Is(err, jose.ErrSignature) {
		t.Errorf("without keys: %v", err)
	}
}

// FuzzRead checks that no text does harm, and that no text verifies that was not signed.
func FuzzRead(f *testing.F) {
	key := newRSA(f)
	good := signRS256(f, key, `{"alg":"RS256","kid":"k"}`, claims)
	for _, seed := range []string{good, good + "=", "a.b.c", encode(`{"alg":"none"}`) + "." + encode(claims) + "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := verify(text, all, jose.Key{ID: "k", Public: key.Public()}, jose.Key{Public: []byte("k")})
		if err == nil && got != claims {
			t.Errorf("%q is accepted with the claims %s", text, got)
		}
	})
}
