package jwt_test

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gojose "github.com/go-jose/go-jose/v4"

	"github.com/keelson-dev/keelson/authn/jwt"
)

// recorded is what a kube-apiserver said about tokens.
type recorded struct {
	Entries []jwt.Entry       // of its configuration
	Pages   map[string]string // what the provider has at its paths
	Tokens  []recordedToken
}

type recordedToken struct {
	Name, Token string
	User        *recordedUser // nil: it answered with 401
}

type recordedUser struct {
	Username string              `json:"username,omitempty"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

// recordedAt is the address of the provider in the recording.
const recordedAt = "127.0.0.1:34443"

const tokensFile = "testdata/tokens.json"

// TestRecord records testdata/tokens.json from a kube-apiserver. It writes the file KEELSON_OIDC_CONFIG, which is the file of the flag
// --authentication-config of a server at KEELSON_OIDC_SERVER, and waits until the server uses it. The keys are made anew, and are not
// kept: the tokens never expire, or have expired long ago.
func TestRecord(t *testing.T) {
	file, server := os.Getenv("KEELSON_OIDC_CONFIG"), os.Getenv("KEELSON_OIDC_SERVER")
	if file == "" {
		t.Skip("KEELSON_OIDC_CONFIG and KEELSON_OIDC_SERVER name no kube-apiserver to record")
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := jwt.Parse(before) // anonymous must stay as it is
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, recordedAt)
	out := recordTokens(t, p)
	conf.JWT = out.Entries
	if err := os.WriteFile(file, []byte(encodeJSON(conf)), 0o644); err != nil {
		t.Fatal(err)
	}
	var ready time.Time
	for deadline := time.Now().Add(3 * time.Minute); ; {
		if user := whoIs(t, server, out.Tokens[0].Token); user != nil {
			ready = time.Now()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the server does not use the configuration")
		}
		time.Sleep(time.Second)
	}
	t.Logf("the server uses the configuration since %v", ready)
	for range 2 { // the server refuses the first distributed claims of an issuer, because it does not know the keys yet
		for i := range out.Tokens {
			out.Tokens[i].User = whoIs(t, server, out.Tokens[i].Token)
		}
		time.Sleep(time.Second)
	}
	p.pages.Range(func(path, page any) bool {
		if text, ok := page.(string); ok {
			out.Pages[path.(string)] = text
		}
		return true
	})
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tokensFile, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// whoIs returns the user of a token at a server, or nil if it answers with 401.
func whoIs(t *testing.T, server, token string) *recordedUser {
	t.Helper()
	body := `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+"/apis/authentication.k8s.io/v1/selfsubjectreviews", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	c := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	switch resp.StatusCode {
	case http.StatusUnauthorized:
		return nil
	case http.StatusCreated:
	default:
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	var review struct {
		Status struct {
			UserInfo recordedUser `json:"userInfo"`
		} `json:"status"`
	}
	if err := json.Unmarshal(text, &review); err != nil {
		t.Fatal(err)
	}
	u := &review.Status.UserInfo
	u.Groups = slices.DeleteFunc(u.Groups, func(g string) bool { return g == "system:authenticated" })
	return u
}

// TestRecorded replays the recording: this package has the same users, except for named differences.
func TestRecorded(t *testing.T) {
	const (
		nameless   = "a user has a name"
		ambiguous  = "RFC 7519, section 4: the names of claims must be unique"
		otherCase  = "RFC 7519, section 10.1.1: the names of claims are case-sensitive"
		notCompact = "RFC 7515, section 4.1.11, and RFC 7797, section 6: a header with an empty crit, or with b64, is not that of a JWT"
	)
	differs := map[string]string{
		`plain: sub ""`: nameless, "plain: sub null": nameless,
		"plain: nbf 1e300":  "a time that does not come is not in the past",
		"plain: x 1e999":    "a number that no float64 has can be read in several ways",
		"signed: sub twice": ambiguous, "signed: iss twice": ambiguous, "signed: iss twice, other last": ambiguous, "signed: claim twice": ambiguous,
		"signed: iss and ISS": otherCase, "signed: EXP": otherCase, "signed: AUD": otherCase,
		"signed: crit empty": notCompact, "signed: b64 true": notCompact,
	}
	text, err := os.ReadFile(tokensFile)
	if err != nil {
		t.Fatal(err)
	}
	var in recorded
	if err := json.Unmarshal(text, &in); err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, "127.0.0.1:0")
	for path, page := range in.Pages {
		p.pages.Store(path, page)
	}
	for i := range in.Entries {
		in.Entries[i].Issuer.CertificateAuthority = p.CA
	}
	a := newAuthenticator(t, &jwt.Configuration{JWT: in.Entries}, jwt.Options{Dial: p.dial, Limits: jwt.Limits{Pause: time.Millisecond}})
	if len(in.Tokens) < 150 {
		t.Errorf("there are only %d tokens", len(in.Tokens))
	}
	for _, token := range in.Tokens {
		resp, err := a.AuthenticateToken(t.Context(), token.Token)
		var got *recordedUser
		if resp != nil {
			got = &recordedUser{resp.User.Name, resp.User.UID, resp.User.Groups, resp.User.Extra}
		}
		same := encodeJSON(got) == encodeJSON(token.User)
		if why, named := differs[token.Name]; same == named {
			t.Errorf("%s: %s\n got %s, %v\nwant %s", token.Name, why, encodeJSON(got), err, encodeJSON(token.User))
		}
	}
}

// newAuthenticator returns an authenticator that knows the keys of its issuers.
func newAuthenticator(tb testing.TB, c *jwt.Configuration, o jwt.Options) *jwt.Authenticator {
	tb.Helper()
	a, err := jwt.New(c, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(a.Close)
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	if err := a.Wait(ctx); err != nil {
		tb.Fatal(err)
	}
	return a
}

// recording makes entries and tokens.
type recording struct {
	t *testing.T
	p *provider
	recorded
	key *rsa.PrivateKey
	url string // of the last entry
}

// entry adds an entry, whose issuer has the key k.
func (r *recording) entry(name string, change func(e *jwt.Entry), keys ...gojose.JSONWebKey) {
	r.url = "https://" + name + ".example"
	keys = append([]gojose.JSONWebKey{public("k", r.key)}, keys...)
	e := jwt.Entry{Issuer: jwt.Issuer{
		URL: r.url, DiscoveryURL: r.p.issue(r.url, "/"+name, keys...), CertificateAuthority: r.p.CA, Audiences: []string{"aud"},
	}}
	e.ClaimMappings.Username = jwt.PrefixedClaim{Claim: "sub", Prefix: new("")}
	change(&e)
	r.Entries = append(r.Entries, e)
}

// claims returns the claims of a valid token with changes, in JSON: "" removes a claim.
func (r *recording) claims(changes ...string) string {
	all := map[string]json.RawMessage{
		"iss": json.RawMessage(encodeJSON(r.url)), "sub": json.RawMessage(`"ann"`), "aud": json.RawMessage(`"aud"`), "exp": json.RawMessage("4102444800"), "iat": json.RawMessage("1000000000"),
	}
	for i := 0; i < len(changes); i += 2 {
		if all[changes[i]] = json.RawMessage(changes[i+1]); changes[i+1] == "" {
			delete(all, changes[i])
		}
	}
	return encodeJSON(all)
}

// token adds a token.
func (r *recording) token(name, text string) {
	name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(r.url, r.p.URL+"/"), "https://"), ".example") + ": " + name
	if slices.ContainsFunc(r.Tokens, func(t recordedToken) bool { return t.Name == name }) {
		r.t.Fatalf("two tokens %s", name)
	}
	r.Tokens = append(r.Tokens, recordedToken{Name: name, Token: text})
}

// valid adds a signed token with changed claims.
func (r *recording) valid(changes ...string) {
	name := strings.Join(changes, " ")
	if len(name) > 120 {
		name = name[:120]
	}
	r.token(name, sign(r.t, "RS256", "k", r.key, r.claims(changes...)))
}

func recordTokens(t *testing.T, p *provider) *recorded {
	r := &recording{t: t, p: p, key: newRSA(t)}
	r.Pages = map[string]string{}
	r.plain()
	r.claimMappings()
	r.emails()
	r.rules()
	r.expressions()
	r.users()
	r.keys()
	r.distributed()
	r.signatures()
	return &r.recorded
}

func (r *recording) plain() {
	r.entry("plain", func(e *jwt.Entry) {})
	r.valid()
	for _, sub := range []string{"", `""`, "1", "null", "true", `["ann"]`, `{"a":1}`, `"system:admin"`, `"a\u0000b"`, `"ü"`, `" ann "`, `"ann\n"`} {
		r.valid("sub", sub)
	}
	for _, aud := range []string{"", `"other"`, `["aud"]`, `["other","aud"]`, `[]`, `""`, "null", "1", `["aud",1]`, `{"aud":"aud"}`, `"AUD"`, `"aud "`, `["other"]`} {
		r.valid("aud", aud)
	}
	for _, exp := range []string{"", "0", "-1", "1000000000", "4102444800.5", "4.1024448e9", `"4102444800"`, "null", "true", "1e300", "9223372036854775807", "99999999999999999999", "1e18", "{}"} {
		r.valid("exp", exp)
	}
	for _, nbf := range []string{"0", "1000000000", "4102444000", "4102444000.5", "null", `"0"`, "true", "-1", "1e300", "[]"} {
		r.valid("nbf", nbf)
	}
	for _, iat := range []string{"", "4102444000", `"x"`, "null", "1.5"} {
		r.valid("iat", iat)
	}
	for _, jti := range []string{`"id-1"`, `""`, "1", "null", `["a"]`, `"a b"`} {
		r.valid("jti", jti)
	}
	for _, iss := range []string{"", `"https://plain.example/"`, `"https://PLAIN.example"`, `["https://plain.example"]`, "null", "1", `"https://unknown.example"`} {
		r.valid("iss", iss)
	}
	r.valid("azp", `"other"`)
	r.valid("nonce", "1")
	r.valid("at_hash", `"x"`)
	r.valid("email", `"a@b"`, "email_verified", "false")
	r.valid("_claim_names", `{"groups":"a"}`)
	r.valid("x", strings.Repeat("[", 50)+strings.Repeat("]", 50))
	r.valid("x", `1e999`)
	r.valid("x", `"`+strings.Repeat("x", 20_000)+`"`)
}

func (r *recording) claimMappings() {
	r.entry("mapped", func(e *jwt.Entry) {
		e.ClaimMappings.Username = jwt.PrefixedClaim{Claim: "name", Prefix: new("oidc:")}
		e.ClaimMappings.Groups = jwt.PrefixedClaim{Claim: "groups", Prefix: new("g:")}
		e.ClaimMappings.UID.Claim = "uid"
	})
	r.valid("name", `"ann"`, "uid", `"1"`, "groups", `["a","b"]`)
	r.valid("name", `""`, "uid", `"1"`)
	r.valid("name", `"ann"`)
	r.valid("name", `"ann"`, "uid", `""`)
	for _, uid := range []string{"1", "null", `["1"]`, "true"} {
		r.valid("name", `"ann"`, "uid", uid)
	}
	for _, groups := range []string{`"a"`, `""`, `[]`, `["a",""]`, `["a","a"]`, `["b","a"]`, "1", "null", `["a",1]`, `["a",null]`, `[["a"]]`, `{"a":"b"}`, "true", `"a,b"`} {
		r.valid("name", `"ann"`, "uid", `"1"`, "groups", groups)
	}
	r.valid("name.x", `"ann"`, "uid", `"1"`)
	r.valid("NAME", `"ann"`, "uid", `"1"`)
	r.valid("name", `{"x":"ann"}`, "uid", `"1"`)
}

func (r *recording) emails() {
	r.entry("email", func(e *jwt.Entry) { e.ClaimMappings.Username.Claim = "email" })
	r.valid("email", `"a@b"`)
	for _, verified := range []string{"true", "false", `"true"`, "null", "1"} {
		r.valid("email", `"a@b"`, "email_verified", verified)
	}
	r.valid("email", "1", "email_verified", "true")
	r.valid("email_verified", "true")
}

func (r *recording) rules() {
	r.entry("required", func(e *jwt.Entry) {
		e.ClaimValidationRules = []jwt.ClaimRule{{Claim: "hd", RequiredValue: "example.com"}, {Claim: "empty"}}
	})
	r.valid("hd", `"example.com"`, "empty", `""`)
	r.valid("hd", `"example.com"`)
	r.valid("empty", `""`)
	for _, hd := range []string{`"other"`, `["example.com"]`, "1", "null", "true", `"EXAMPLE.com"`} {
		r.valid("hd", hd, "empty", `""`)
	}
	r.valid("hd", `"example.com"`, "empty", "null")
	r.entry("audiences", func(e *jwt.Entry) {
		e.Issuer.Audiences, e.Issuer.AudienceMatchPolicy = []string{"a", "b"}, "MatchAny"
	})
	for _, aud := range []string{`"a"`, `"b"`, `["b"]`, `["c","b"]`, `["c"]`, `["a","b"]`, `"ab"`} {
		r.valid("aud", aud)
	}
}

func (r *recording) expressions() {
	r.entry("cel", func(e *jwt.Entry) {
		e.ClaimMappings.Username = jwt.PrefixedClaim{Expression: "claims.sub + ':x'"}
		e.ClaimMappings.Groups = jwt.PrefixedClaim{Expression: "claims.?roles.orValue([])"}
		e.ClaimMappings.UID = jwt.Claim{Expression: "claims.?uid.orValue('none')"}
		e.ClaimMappings.Extra = []jwt.ExtraMapping{{Key: "example.com/tenant", ValueExpression: "claims.?tenant.orValue('')"}, {Key: "example.com/b", ValueExpression: "claims.?b.orValue(['x'])"}}
		e.ClaimValidationRules = []jwt.ClaimRule{{Expression: "!has(claims.fail) || claims.fail != true"}, {Expression: "!has(claims.nbf) || claims.exp - claims.nbf <= 4000000000"}}
		e.UserValidationRules = []jwt.UserRule{{Expression: "!user.username.startsWith('system:')"}, {Expression: "user.groups.all(g, g != 'forbidden')"}}
	})
	r.valid()
	r.valid("sub", "")
	r.valid("sub", "1")
	r.valid("sub", `"system:x"`)
	r.valid("fail", "true")
	r.valid("fail", "false")
	r.valid("fail", "1")
	r.valid("nbf", "0")
	r.valid("nbf", "1000000000")
	for _, roles := range []string{`["a","b"]`, `"a"`, `[]`, `""`, "1", "null", `["a",""]`, `["a",1]`, `["forbidden"]`, `["a",null]`, `[" "]`, `["a","a"]`} {
		r.valid("roles", roles)
	}
	for _, uid := range []string{`"u"`, `""`, "1", "null", `["u"]`} {
		r.valid("uid", uid)
	}
	for _, tenant := range []string{`"t"`, `["t","u"]`, `[]`, `[""]`, `["","t"]`, "null", "1", "true", "{}", `[["t"]]`, `" "`} {
		r.valid("tenant", tenant)
	}
	r.valid("jti", `"7"`, "tenant", `"t"`)
	kind := "type(claims.n) == int ? 'int' : type(claims.n) == double ? 'double' : type(claims.n) == string ? 'string' : type(claims.n) == bool ? 'bool' : type(claims.n) == list ? 'list' : type(claims.n) == map ? 'map' : type(claims.n) == null_type ? 'null' : 'other'"
	r.entry("types", func(e *jwt.Entry) { e.ClaimMappings.Username = jwt.PrefixedClaim{Expression: kind} })
	for _, n := range []string{"1", "1.0", "1.5", "1e2", "9007199254740993", "9223372036854775807", "9223372036854775808", "-1", `"a"`, "true", "[]", "{}", "null", "1e400", "-0"} {
		r.valid("n", n)
	}
	r.entry("names", func(e *jwt.Entry) { e.ClaimMappings.Username = jwt.PrefixedClaim{Expression: "claims.n"} })
	for _, n := range []string{`"a"`, `""`, "1", "true", "null", "[]", `["a"]`, `" "`, `"a\nb"`} {
		r.valid("n", n)
	}
	r.entry("loops", func(e *jwt.Entry) {
		e.ClaimMappings.Username = jwt.PrefixedClaim{Expression: "dyn(claims.n).filter(x, x != '').map(x, x + '!')[0]"}
		e.ClaimMappings.Groups = jwt.PrefixedClaim{Expression: "claims.m.a.b"}
	})
	r.valid("n", `["","a"]`, "m", `{"a":{"b":["c"]}}`)
	r.valid("n", `[]`, "m", `{"a":{"b":["c"]}}`)
	r.valid("n", `["a"]`, "m", `{"a":{}}`)
	r.valid("n", `{"a":1}`, "m", `{"a":{"b":"c"}}`)
	r.valid("n", `["a"]`, "m", `[]`)
}

func (r *recording) users() {
	for i, rule := range []string{"has(user.uid)", "user.uid == ''", "has(user.groups)", "size(user.groups) == 0", "has(user.extra)", "size(user.extra) == 0", "'authentication.kubernetes.io/credential-id' in user.extra", "user.extra.all(k, user.extra[k].size() == 1)", "user.username == 'ann'", "type(user.groups) == list", "dyn(user) != null"} {
		r.entry(fmt.Sprintf("user%d", i), func(e *jwt.Entry) { e.UserValidationRules = []jwt.UserRule{{Expression: rule}} })
		r.valid()
		r.valid("jti", `"1"`)
	}
	r.entry("usergroups", func(e *jwt.Entry) {
		e.ClaimMappings.Groups = jwt.PrefixedClaim{Claim: "groups", Prefix: new("")}
		e.UserValidationRules = []jwt.UserRule{{Expression: "user.groups.exists(g, g == 'a')"}, {Expression: "!user.groups.exists(g, g.startsWith('system:'))"}}
	})
	r.valid("groups", `["a"]`)
	r.valid("groups", `["b"]`)
	r.valid()
	r.valid("groups", `["a","system:masters"]`)
}

func (r *recording) keys() {
	t := r.t
	e256, e384, e521, other := newEC(t, elliptic.P256()), newEC(t, elliptic.P384()), newEC(t, elliptic.P521()), newRSA(t)
	enc, wrongAlg, noID := public("enc", other), public("alg", other), public("", other)
	enc.Use, wrongAlg.Algorithm, noID.Use = "enc", "RS512", ""
	r.entry("keys", func(e *jwt.Entry) {}, public("e256", e256), public("e384", e384), public("e521", e521), enc, wrongAlg, noID, public("k", other), public("ed", e256))
	page, _ := r.p.pages.Load("/keys/keys")
	r.p.pages.Store("/keys/keys", strings.Replace(page.(string), `{"keys":[`, `{"keys":[{"kty":"oct","kid":"oct","k":"c2VjcmV0"},{"kty":"OKP","crv":"Ed25519","kid":"ed","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},`, 1))
	c := r.claims()
	for _, alg := range []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"} {
		r.token(alg, sign(t, alg, "k", r.key, c))
		r.token(alg+" by the second key of an id", sign(t, alg, "k", other, c))
	}
	r.token("ES256", sign(t, "ES256", "e256", e256, c))
	r.token("ES384", sign(t, "ES384", "e384", e384, c))
	r.token("ES512", sign(t, "ES512", "e521", e521, c))
	r.token("key for encryption", sign(t, "RS256", "enc", other, c))
	r.token("key for another algorithm", sign(t, "RS256", "alg", other, c))
	r.token("key id empty", sign(t, "RS256", "", other, c))
	r.token("key id unknown", sign(t, "RS256", "unknown", r.key, c))
	r.token("key id of another key", sign(t, "RS256", "e256", r.key, c))
	r.token("HMAC with a key of the set", signHMAC(`{"alg":"HS256","kid":"oct"}`, []byte("secret"), c))
	r.token("key that nobody has", sign(t, "RS256", "k", newRSA(t), c))
}

func (r *recording) distributed() {
	groups := func(e *jwt.Entry) { // the issuer is where the provider is, because that is where its keys are looked for again
		path := "/" + strings.TrimSuffix(strings.TrimPrefix(r.url, "https://"), ".example")
		r.url = r.p.URL + path
		e.Issuer.URL, e.Issuer.DiscoveryURL = r.url, ""
		r.p.issue(r.url, path, public("k", r.key))
		page, _ := r.p.pages.Load(path + "/discovery")
		r.p.pages.Store(path+"/.well-known/openid-configuration", page)
		e.ClaimMappings.Groups = jwt.PrefixedClaim{Claim: "groups", Prefix: new("d:")}
	}
	r.entry("distributed", groups)
	page := func(path, issuer string, changes ...string) string {
		was := r.url
		r.url = issuer
		text := sign(r.t, "RS256", "k", r.key, r.claims(changes...))
		r.url = was
		r.p.pages.Store(path, text)
		return encodeJSON(r.p.URL + path)
	}
	refer := func(name, endpoint string, more ...string) {
		r.token(name, sign(r.t, "RS256", "k", r.key, r.claims(append([]string{"_claim_names", `{"groups":"src"}`, "_claim_sources", `{"src":{"endpoint":` + endpoint + `,"access_token":"t"}}`}, more...)...)))
	}
	refer("good", page("/claims/good", r.url, "groups", `["a","b"]`))
	refer("string", page("/claims/string", r.url, "groups", `"a"`))
	refer("without the claim", page("/claims/without", r.url))
	refer("expired", page("/claims/expired", r.url, "groups", `["a"]`, "exp", "1000000000"))
	refer("other audience", page("/claims/audience", r.url, "groups", `["a"]`, "aud", `"other"`))
	refer("wrong type", page("/claims/type", r.url, "groups", "1"))
	refer("null", page("/claims/null", r.url, "groups", "null"))
	refer("unknown issuer", page("/claims/unknown", "https://unknown.example:1", "groups", `["a"]`))
	refer("claim is there already", page("/claims/there", r.url, "groups", `["a"]`), "groups", `["own"]`)
	refer("claim is there as null", page("/claims/there2", r.url, "groups", `["a"]`), "groups", `null`)
	refer("no endpoint", `""`)
	refer("not found", encodeJSON(r.p.URL+"/claims/missing"))
	refer("relative endpoint", `"/claims/good"`)
	refer("endpoint is a number", `1`)
	r.p.pages.Store("/claims/text", "no token")
	refer("no token", encodeJSON(r.p.URL+"/claims/text"))
	r.p.pages.Store("/claims/key", sign(r.t, "RS256", "k", newRSA(r.t), r.claims("groups", `["a"]`)))
	refer("other key", encodeJSON(r.p.URL+"/claims/key"))
	good := encodeJSON(r.p.URL + "/claims/good")
	raw := func(name, names, sources string) {
		r.token(name, sign(r.t, "RS256", "k", r.key, r.claims("_claim_names", names, "_claim_sources", sources)))
	}
	raw("source missing", `{"groups":"src"}`, `{"other":{"endpoint":`+good+`}}`)
	raw("sources missing", `{"groups":"src"}`, "")
	raw("names of other claims", `{"x":"src"}`, `{"src":{"endpoint":`+good+`}}`)
	raw("names is a list", `[]`, `{"src":{"endpoint":`+good+`}}`)
	raw("names is null", `null`, `{"src":{"endpoint":`+good+`}}`)
	raw("name is a number", `{"groups":1}`, `{"src":{"endpoint":`+good+`}}`)
	raw("sources is a list", `{"groups":"src"}`, `[]`)
	raw("sources is null", `{"groups":"src"}`, `null`)
	raw("source is a string", `{"groups":"src"}`, `{"src":"x"}`)
	raw("source is null", `{"groups":"src"}`, `{"src":null}`)
	raw("aggregated", `{"groups":"src"}`, `{"src":{"JWT":"a.b.c"}}`)
	raw("no access token", `{"groups":"src"}`, `{"src":{"endpoint":`+good+`}}`)
	raw("another source is wrong", `{"groups":"src"}`, `{"src":{"endpoint":`+good+`},"x":1}`)
	raw("access token is a number", `{"groups":"src"}`, `{"src":{"endpoint":`+good+`,"access_token":1}}`)
	r.entry("distributedcel", func(e *jwt.Entry) {
		e.ClaimMappings.Groups = jwt.PrefixedClaim{Expression: "claims.?groups.orValue(['none'])"}
	})
	raw("by an expression", `{"groups":"src"}`, `{"src":{"endpoint":`+good+`}}`)
	r.entry("distributedname", func(e *jwt.Entry) { groups(e); e.ClaimMappings.Username.Claim = "groups" })
	raw("for the name", `{"groups":"src"}`, `{"src":{"endpoint":`+page("/claims/name", r.url, "groups", `"a"`)+`}}`)
}

func (r *recording) signatures() {
	t := r.t
	r.entry("signed", func(e *jwt.Entry) {})
	c := r.claims()
	good := signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, c)
	parts := strings.Split(good, ".")
	der, err := x509.MarshalPKIXPublicKey(r.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	other := newRSA(t)
	jwk := encodeJSON(public("k", other))
	for _, one := range [][2]string{
		{"good", good},
		{"alg none", base64URL(`{"alg":"none"}`) + "." + parts[1] + "."},
		{"alg none with a signature", base64URL(`{"alg":"none","kid":"k"}`) + "." + parts[1] + "." + parts[2]},
		{"alg None", base64URL(`{"alg":"None"}`) + "." + parts[1] + "."},
		{"alg missing", base64URL(`{"kid":"k"}`) + "." + parts[1] + "." + parts[2]},
		{"alg in lower case", signRaw(t, `{"alg":"rs256","kid":"k"}`, r.key, c)},
		{"alg of another length", signRaw(t, `{"alg":"RS512","kid":"k"}`, r.key, c)},
		{"HMAC with the key in PEM", signHMAC(`{"alg":"HS256","kid":"k"}`, pemKey, c)},
		{"HMAC with the key in DER", signHMAC(`{"alg":"HS256","kid":"k"}`, der, c)},
		{"HMAC with the modulus", signHMAC(`{"alg":"HS256","kid":"k"}`, r.key.N.Bytes(), c)},
		{"kid missing", signRaw(t, `{"alg":"RS256"}`, r.key, c)},
		{"kid is a path", signRaw(t, `{"alg":"RS256","kid":"../../../dev/null"}`, r.key, c)},
		{"kid is huge", signRaw(t, `{"alg":"RS256","kid":"`+strings.Repeat("k", 8000)+`"}`, r.key, c)},
		{"kid is a number", signRaw(t, `{"alg":"RS256","kid":1}`, r.key, c)},
		{"kid is null", signRaw(t, `{"alg":"RS256","kid":null}`, r.key, c)},
		{"kid twice", signRaw(t, `{"alg":"RS256","kid":"x","kid":"k"}`, r.key, c)},
		{"alg twice", signRaw(t, `{"alg":"none","alg":"RS256","kid":"k"}`, r.key, c)},
		{"jwk in the header", signRaw(t, `{"alg":"RS256","kid":"k","jwk":`+jwk+`}`, other, c)},
		{"jwk in the header, good key", signRaw(t, `{"alg":"RS256","kid":"k","jwk":`+jwk+`}`, r.key, c)},
		{"jku in the header", signRaw(t, `{"alg":"RS256","kid":"k","jku":"https://evil.example/keys"}`, other, c)},
		{"jku in the header, good key", signRaw(t, `{"alg":"RS256","kid":"k","jku":"https://evil.example/keys"}`, r.key, c)},
		{"x5c wrong, good key", signRaw(t, `{"alg":"RS256","kid":"k","x5c":["AAAA"]}`, r.key, c)},
		{"crit unknown", signRaw(t, `{"alg":"RS256","kid":"k","crit":["x"],"x":1}`, r.key, c)},
		{"crit empty", signRaw(t, `{"alg":"RS256","kid":"k","crit":[]}`, r.key, c)},
		{"crit b64", signRaw(t, `{"alg":"RS256","kid":"k","crit":["b64"],"b64":false}`, r.key, c)},
		{"b64 false", signRaw(t, `{"alg":"RS256","kid":"k","b64":false}`, r.key, c)},
		{"b64 true", signRaw(t, `{"alg":"RS256","kid":"k","b64":true}`, r.key, c)},
		{"typ", signRaw(t, `{"alg":"RS256","kid":"k","typ":"at+jwt"}`, r.key, c)},
		{"cty", signRaw(t, `{"alg":"RS256","kid":"k","cty":"JWT"}`, r.key, c)},
		{"nested", signRaw(t, `{"alg":"RS256","kid":"k","cty":"JWT"}`, r.key, good)},
		{"header is a list", signRaw(t, `[]`, r.key, c)},
		{"header has more after it", signRaw(t, `{"alg":"RS256","kid":"k"}{}`, r.key, c)},
		{"no signature", parts[0] + "." + parts[1] + "."},
		{"no third part", parts[0] + "." + parts[1]},
		{"four parts", good + ".x"},
		{"five parts", good + ".x.y"},
		{"padding", good + "=="},
		{"signature of standard base64", parts[0] + "." + parts[1] + "." + strings.NewReplacer("-", "+", "_", "/").Replace(parts[2])},
		{"other signature", parts[0] + "." + parts[1] + "." + base64URL(strings.Repeat("x", 256))},
		{"other claims", parts[0] + "." + base64URL(strings.Replace(c, "ann", "eve", 1)) + "." + parts[2]},
		{"claims are a list", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, "["+c+"]")},
		{"claims have more after them", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, c+"{}")},
		{"claims have spaces", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, " "+c+"\n")},
		{"claims end early", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, c[:len(c)-1])},
		{"claims have a byte order mark", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, "\ufeff"+c)},
		{"claims are not UTF-8", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, strings.Replace(c, "ann", "a\xff", 1))},
		{"sub twice", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, c[:len(c)-1]+`,"sub":"eve"}`)},
		{"iss twice", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, `{"iss":"https://plain.example",`+c[1:])},
		{"iss twice, other last", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, c[:len(c)-1]+`,"iss":"https://keys.example"}`)},
		{"iss and ISS", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, c[:len(c)-1]+`,"ISS":"https://other.example"}`)},
		{"claim twice", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, c[:len(c)-1]+`,"x":1,"x":2}`)},
		{"SUB", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, strings.Replace(c, `"sub"`, `"SUB"`, 1))},
		{"EXP", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, strings.Replace(c, `"exp"`, `"EXP"`, 1))},
		{"AUD", signRaw(t, `{"alg":"RS256","kid":"k"}`, r.key, strings.Replace(c, `"aud"`, `"AUD"`, 1))},
		{"issuer of another entry", signRaw(t, `{"alg":"RS256","kid":"k"}`, other, strings.Replace(c, "signed.example", "plain.example", 1))},
	} {
		r.token(one[0], one[1])
	}
}
