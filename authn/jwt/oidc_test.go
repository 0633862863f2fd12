package jwt_test

import (
	"crypto/elliptic"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn/jwt"
)

// TestFlags compares the errors of flags with those of kube-apiserver.
func TestFlags(t *testing.T) {
	const together = "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
	file := func(content string) string {
		path := filepath.Join(t.TempDir(), "ca")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	_, ca := newCertificate(t)
	for name, c := range map[string]struct {
		change func(f *jwt.Flags)
		want   string
	}{
		"good":                  {func(*jwt.Flags) {}, ""},
		"no client":             {func(f *jwt.Flags) { f.ClientID = "" }, together},
		"no url":                {func(f *jwt.Flags) { f.IssuerURL = "" }, together},
		"http":                  {func(f *jwt.Flags) { f.IssuerURL = "http://a" }, `invalid authentication configuration: jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https`},
		"query":                 {func(f *jwt.Flags) { f.IssuerURL = "https://a?b=c" }, `invalid authentication configuration: jwt[0].issuer.url: Invalid value: "https://a?b=c": URL must not contain a query`},
		"user":                  {func(f *jwt.Flags) { f.IssuerURL = "https://u:p@a" }, `invalid authentication configuration: jwt[0].issuer.url: Invalid value: "https://u:p@a": URL must not contain a username or password`},
		"no username claim":     {func(f *jwt.Flags) { f.UsernameClaim = "" }, "invalid authentication configuration: jwt[0].claimMappings.username: Required value: claim or expression is required"},
		"groups prefix alone":   {func(f *jwt.Flags) { f.GroupsPrefix = "p:" }, ""},
		"required without name": {func(f *jwt.Flags) { f.RequiredClaims = map[string]string{"": "b"} }, "invalid authentication configuration: jwt[0].claimValidationRules[0]: Required value: claim or expression is required"},
		"required":              {func(f *jwt.Flags) { f.RequiredClaims = map[string]string{"a": "", "b": "c"} }, ""},
		"CA missing":            {func(f *jwt.Flags) { f.CAFile = "/nonexistent" }, "open /nonexistent: no such file or directory"},
		"CA wrong":              {func(f *jwt.Flags) { f.CAFile = file("x") }, `invalid authentication configuration: jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": data does not contain any valid RSA or ECDSA certificates`},
		"CA empty":              {func(f *jwt.Flags) { f.CAFile = file("") }, ""},
		"CA":                    {func(f *jwt.Flags) { f.CAFile = file(ca) }, ""},
		"algorithms":            {func(f *jwt.Flags) { f.SigningAlgorithms = []string{"RS256", "ES512"} }, ""},
		"algorithms empty":      {func(f *jwt.Flags) { f.SigningAlgorithms = []string{} }, ""},
		"algorithm HMAC":        {func(f *jwt.Flags) { f.SigningAlgorithms = []string{"HS256"} }, `oidc: unsupported signing alg: "HS256"`},
		"algorithm none":        {func(f *jwt.Flags) { f.SigningAlgorithms = []string{"none"} }, `oidc: unsupported signing alg: "none"`},
		"algorithm lower case":  {func(f *jwt.Flags) { f.SigningAlgorithms = []string{"rs256"} }, `oidc: unsupported signing alg: "rs256"`},
		"two algorithms":        {func(f *jwt.Flags) { f.SigningAlgorithms = []string{"X", "Y"} }, `oidc: unsupported signing alg: "X"`},
		"reserved":              {func(f *jwt.Flags) { f.IssuerURL = "https://kubernetes.default.svc" }, `issuer.url: Invalid value: "https://kubernetes.default.svc": URL must not overlap with disallowed issuers: [https://kubernetes.default.svc]`},
	} {
		f := jwt.Flags{IssuerURL: issuerURL, ClientID: "aud", UsernameClaim: "sub"}
		c.change(&f)
		got := ""
		conf, err := jwt.OIDC(f)
		if err == nil {
			var a *jwt.Authenticator
			if a, err = jwt.New(conf, jwt.Options{ReservedIssuers: []string{"https://kubernetes.default.svc"}, Dial: noNetwork}); err == nil {
				a.Close()
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

// The users that flags make of a token.
func TestFlagsUsers(t *testing.T) {
	p, key, rsaKey := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256()), newRSA(t)
	ca := filepath.Join(t.TempDir(), "ca")
	if err := os.WriteFile(ca, []byte(p.CA), 0o600); err != nil {
		t.Fatal(err)
	}
	issuer := p.URL + "/a"
	p.issue(issuer, "/a", public("k", rsaKey), public("e", key))
	page, _ := p.pages.Load("/a/discovery")
	p.pages.Store("/a/.well-known/openid-configuration", page)
	claims := strings.Replace(claimsOf(time.Hour, 0, `,"email":"ann@example.com","groups":["g"],"hd":"x"`), issuerURL, issuer, 1)
	for _, c := range []struct {
		change func(f *jwt.Flags)
		want   string // name and groups
	}{
		{func(*jwt.Flags) {}, issuer + "#ann []"},
		{func(f *jwt.Flags) { f.UsernamePrefix = "-" }, "ann []"},
		{func(f *jwt.Flags) { f.UsernamePrefix = "x:" }, "x:ann []"},
		{func(f *jwt.Flags) { f.UsernameClaim = "email" }, "ann@example.com []"},
		{func(f *jwt.Flags) { f.UsernameClaim, f.UsernamePrefix = "email", "x:" }, "x:ann@example.com []"},
		{func(f *jwt.Flags) { f.UsernamePrefix, f.GroupsClaim, f.GroupsPrefix = "-", "groups", "p:" }, "ann [p:g]"},
		{func(f *jwt.Flags) { f.UsernamePrefix, f.RequiredClaims = "-", map[string]string{"hd": "x"} }, "ann []"},
		{func(f *jwt.Flags) { f.RequiredClaims = map[string]string{"hd": "y"} }, ""},
		{func(f *jwt.Flags) { f.SigningAlgorithms = []string{"ES256"} }, ""},
	} {
		f := jwt.Flags{IssuerURL: issuer, ClientID: "aud", UsernameClaim: "sub", CAFile: ca}
		c.change(&f)
		conf, err := jwt.OIDC(f)
		if err != nil {
			t.Fatal(err)
		}
		a := newAuthenticator(t, conf, jwt.Options{})
		got := ""
		resp, err := a.AuthenticateToken(t.Context(), sign(t, "RS256", "k", rsaKey, claims))
		if resp != nil {
			got = resp.User.Name + " [" + strings.Join(resp.User.Groups, " ") + "]"
		}
		if got != c.want {
			t.Errorf("%+v: %q, %v; want %q", f, got, err, c.want)
		}
		if resp, _ := a.AuthenticateToken(t.Context(), sign(t, "ES256", "e", key, claims)); resp != nil && len(f.SigningAlgorithms) == 0 {
			t.Error("a token that is signed with ES256 is accepted by default")
		}
	}
}
