package jwt_test

import (
	"compress/gzip"
	"context"
	"crypto/elliptic"
	"crypto/rsa"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gojose "github.com/go-jose/go-jose/v4"
	"go.uber.org/goleak"

	"github.com/keelson-dev/keelson/authn/jwt"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"), goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"))
}

const issuerURL = "https://issuer.example"

// entryOf returns the entry of an issuer at a discovery URL.
func entryOf(p *provider, discovery string) jwt.Entry {
	e := jwt.Entry{Issuer: jwt.Issuer{URL: issuerURL, DiscoveryURL: discovery, CertificateAuthority: p.CA, Audiences: []string{"aud"}}}
	e.ClaimMappings.Username = jwt.PrefixedClaim{Claim: "sub", Prefix: new("")}
	return e
}

func configurationOf(entries ...jwt.Entry) *jwt.Configuration {
	return &jwt.Configuration{JWT: entries}
}

// claimsOf returns claims with times relative to now.
func claimsOf(exp, nbf time.Duration, more string) string {
	now := time.Now()
	return fmt.Sprintf(`{"iss":%q,"aud":"aud","sub":"ann","exp":%d,"nbf":%d%s}`, issuerURL, now.Add(exp).Unix(), now.Add(nbf).Unix(), more)
}

func valid() string { return claimsOf(time.Hour, 0, "") }

// The times of a token, with the leeway of its begin.
func TestTimes(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	a := newAuthenticator(t, configurationOf(entryOf(p, p.issue(issuerURL, "/a", public("k", key)))), jwt.Options{})
	for _, c := range []struct {
		exp, nbf time.Duration
		good     bool
	}{
		{time.Hour, 0, true},
		{time.Hour, 4 * time.Minute, true},
		{time.Hour, 6 * time.Minute, false},
		{30 * time.Second, -time.Hour, true},
		{-5 * time.Second, -time.Hour, false},
	} {
		resp, err := a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, claimsOf(c.exp, c.nbf, "")))
		if (resp != nil) != c.good {
			t.Errorf("exp %v, nbf %v: %v, %v", c.exp, c.nbf, resp, err)
		}
	}
}

// A token of one issuer is refused under the keys of another, and there is no opinion of others.
func TestIssuers(t *testing.T) {
	p, keyA, keyB := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256()), newEC(t, elliptic.P256())
	a, b := entryOf(p, p.issue(issuerURL, "/a", public("k", keyA))), entryOf(p, p.issue("https://b.example", "/b", public("k", keyB)))
	b.Issuer.URL = "https://b.example"
	auth := newAuthenticator(t, configurationOf(a, b), jwt.Options{Limits: jwt.Limits{Pause: time.Millisecond}})
	ofB := strings.Replace(valid(), issuerURL, "https://b.example", 1)
	if resp, err := auth.AuthenticateToken(t.Context(), sign(t, "ES256", "k", keyB, ofB)); resp == nil {
		t.Errorf("the right key: %v", err)
	}
	for _, token := range []string{sign(t, "ES256", "k", keyB, valid()), sign(t, "ES256", "k", keyA, ofB)} {
		if resp, err := auth.AuthenticateToken(t.Context(), token); resp != nil || err == nil {
			t.Errorf("the key of another issuer: %v, %v", resp, err)
		}
	}
	for _, token := range []string{"", "x", "a.b.c", sign(t, "ES256", "k", keyA, strings.Replace(valid(), issuerURL, "https://c.example", 1))} {
		if resp, err := auth.AuthenticateToken(t.Context(), token); resp != nil || err != nil {
			t.Errorf("%q: %v, %v; want no opinion", token, resp, err)
		}
	}
}

// The keys of an issuer are replaced again and again while tokens are signed with the new ones. None is refused, and the issuer is asked
// at most twice for each replacement.
func TestRotation(t *testing.T) {
	p := newProvider(t, "127.0.0.1:0")
	const rotations, clients = 15, 8
	type signed struct{ token string }
	var now atomic.Pointer[signed]
	rotate := func(n int) {
		key := newEC(t, elliptic.P256())
		p.issue(issuerURL, "/a", public(fmt.Sprint("key", n), key))
		now.Store(&signed{sign(t, "ES256", fmt.Sprint("key", n), key, valid())})
	}
	rotate(0)
	var fetches atomic.Int32
	fetched := func(string, string, error) { fetches.Add(1) }
	a := newAuthenticator(t, configurationOf(entryOf(p, p.URL+"/a/discovery")), jwt.Options{Limits: jwt.Limits{Pause: time.Millisecond}, Hooks: jwt.Hooks{Fetched: fetched}})
	var group sync.WaitGroup
	var used atomic.Int32
	done := make(chan struct{})
	for range clients {
		group.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				with := now.Load()
				resp, err := a.AuthenticateToken(t.Context(), with.token)
				if resp == nil && now.Load() == with { // a token of keys that are replaced may be refused
					t.Errorf("refused: %v", err)
				}
				used.Add(1)
			}
		})
	}
	for n := range rotations {
		rotate(n + 1)
		for before := used.Load(); used.Load() < before+4*clients; {
			time.Sleep(time.Millisecond)
		}
	}
	close(done)
	group.Wait()
	if n := fetches.Load(); n < rotations || n > 4*rotations {
		t.Errorf("%d fetches for %d rotations", n, rotations)
	}
}

// Tokens with invented keys do not make the issuer answer more often, and only so many wait.
func TestStampede(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	discovery := p.issue(issuerURL, "/a", public("k", key))
	const waiting, clients = 20, 200
	var fetches, busy atomic.Int32
	fetched := func(string, string, error) { fetches.Add(1) }
	a := newAuthenticator(t, configurationOf(entryOf(p, discovery)), jwt.Options{Limits: jwt.Limits{Pause: time.Hour, Waiting: waiting}, Hooks: jwt.Hooks{Fetched: fetched}})
	var group sync.WaitGroup
	for n := range clients {
		token := sign(t, "ES256", fmt.Sprint("invented", n), newEC(t, elliptic.P256()), valid())
		group.Go(func() {
			_, err := a.AuthenticateToken(t.Context(), token)
			if err != nil && strings.Contains(err.Error(), "too many tokens wait") {
				busy.Add(1)
			}
		})
	}
	for busy.Load() < clients-waiting {
		time.Sleep(time.Millisecond)
	}
	if resp, err := a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, valid())); resp == nil {
		t.Errorf("a token with a known key: %v", err)
	}
	a.Close() // ends the waiting
	group.Wait()
	if fetches.Load() != 1 {
		t.Errorf("%d fetches", fetches.Load())
	}
	if resp, err := a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, valid())); resp == nil {
		t.Errorf("after Close a token with a known key: %v", err)
	}
}

// Until an issuer answers, its tokens are refused at once. It is asked until it does.
func TestUninitialized(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	hang := make(chan struct{})
	p.pages.Store("/a/discovery", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	a, err := jwt.New(configurationOf(entryOf(p, p.URL+"/a/discovery")), jwt.Options{Limits: jwt.Limits{Retry: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	token := sign(t, "ES256", "k", key, valid())
	if _, err := a.AuthenticateToken(t.Context(), token); err == nil || !strings.Contains(err.Error(), "oidc: authenticator not initialized") {
		t.Errorf("the error is %v", err)
	}
	if a.Initialized() == nil {
		t.Error("it is initialized")
	}
	p.issue(issuerURL, "/a", public("k", key))
	close(hang)
	if err := a.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if resp, err := a.AuthenticateToken(t.Context(), token); resp == nil {
		t.Errorf("then: %v", err)
	}
}

// A key that the issuer withdraws is forgotten, also if all tokens have known keys.
func TestWithdrawnKey(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	e := entryOf(p, p.issue(issuerURL, "/a", public("k", key), public("other", newEC(t, elliptic.P256()))))
	a := newAuthenticator(t, configurationOf(e), jwt.Options{Limits: jwt.Limits{Every: time.Millisecond, Pause: time.Millisecond}})
	token := sign(t, "ES256", "k", key, valid())
	if resp, err := a.AuthenticateToken(t.Context(), token); resp == nil {
		t.Fatal(err)
	}
	p.issue(issuerURL, "/b", public("other", newEC(t, elliptic.P256()))) // discovery is asked again too
	page, _ := p.pages.Load("/b/discovery")
	p.pages.Store("/a/discovery", page)
	for {
		if resp, _ := a.AuthenticateToken(t.Context(), token); resp == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Only so many distributed claims are fetched at a time.
func TestDistributedClaimsAtATime(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	e := entryOf(p, p.issue(issuerURL, "/a", public("k", key)))
	e.ClaimMappings.Groups = jwt.PrefixedClaim{Claim: "groups", Prefix: new("")}
	a := newAuthenticator(t, configurationOf(e), jwt.Options{Limits: jwt.Limits{Waiting: 1}})
	asked, answer := make(chan struct{}), make(chan struct{})
	p.pages.Store("/c", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		_, _ = w.Write([]byte(sign(t, "ES256", "k", key, claimsOf(time.Hour, 0, `,"groups":"g"`))))
	}))
	token := sign(t, "ES256", "k", key, claimsOf(time.Hour, 0, `,"_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"`+p.URL+`/c"}}`))
	done := make(chan error)
	go func() {
		_, err := a.AuthenticateToken(t.Context(), token)
		done <- err
	}()
	<-asked
	if _, err := a.AuthenticateToken(t.Context(), token); err == nil || !strings.Contains(err.Error(), "too many distributed claims") {
		t.Errorf("the error is %v", err)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// An RSA key whose modulus is larger than the limit is skipped.
func TestModulus(t *testing.T) {
	large, key := newRSA(t), newEC(t, elliptic.P256()) // 2,048 bits
	for limit, accepted := range map[int]bool{2047: false, 2048: true, 0: true} {
		p := newProvider(t, "127.0.0.1:0")
		e := entryOf(p, p.issue(issuerURL, "/a", public("large", large), public("k", key)))
		a := newAuthenticator(t, configurationOf(e), jwt.Options{Limits: jwt.Limits{Modulus: limit, Pause: time.Millisecond}})
		if resp, err := a.AuthenticateToken(t.Context(), sign(t, "RS256", "large", large, valid())); (resp != nil) != accepted {
			t.Errorf("at most %d bits: %v, %v", limit, resp, err)
		}
		if resp, err := a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, valid())); resp == nil {
			t.Errorf("at most %d bits: another key: %v", limit, err)
		}
	}
}

// Requests to a host that are more than the connections wait for one, and are then answered.
func TestConns(t *testing.T) {
	const limit, clients = 2, 6
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	e := entryOf(p, p.issue(issuerURL, "/a", public("k", key)))
	e.ClaimMappings.Groups = jwt.PrefixedClaim{Claim: "groups", Prefix: new("")}
	var conns counts
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conns.add(1)
		return &counted{Conn: conn, in: &conns}, nil
	}
	a := newAuthenticator(t, configurationOf(e), jwt.Options{Dial: dial, Limits: jwt.Limits{Conns: limit}})
	asked, answer := make(chan struct{}, clients), make(chan struct{})
	p.pages.Store("/c", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked <- struct{}{}
		<-answer
		_, _ = w.Write([]byte(sign(t, "ES256", "k", key, claimsOf(time.Hour, 0, `,"groups":"g"`))))
	}))
	token := sign(t, "ES256", "k", key, claimsOf(time.Hour, 0, `,"_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"`+p.URL+`/c"}}`))
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			if _, err := a.AuthenticateToken(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	for range limit {
		<-asked
	}
	time.Sleep(50 * time.Millisecond) // for a further one, if there were no limit
	close(answer)
	group.Wait()
	if conns.most != limit {
		t.Errorf("%d connections at a time, want %d", conns.most, limit)
	}
}

// counts are the number of connections that are open, and its maximum.
type counts struct {
	mu         sync.Mutex
	open, most int
}

func (c *counts) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open += n
	c.most = max(c.most, c.open)
}

// counted is a connection that is counted while it is open.
type counted struct {
	net.Conn
	in   *counts
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.in.add(-1) })
	return c.Conn.Close()
}

// Issuers that answer wrongly, with too much or never cost little, and are not initialized.
func TestHostileIssuers(t *testing.T) {
	key := newEC(t, elliptic.P256())
	document := func(p *provider, keys string) string {
		return encodeJSON(map[string]string{"issuer": issuerURL, "jwks_uri": keys})
	}
	endless := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat(" ", 4096))); err != nil {
				return
			}
		}
	})
	bomb := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 1000 {
			_, _ = z.Write(make([]byte, 10_000))
		}
		_ = z.Close()
	})
	hang := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	huge := &rsa.PublicKey{N: new(big.Int).Lsh(big.NewInt(1), 10_000), E: 65537}
	for name, c := range map[string]struct {
		discovery, keys func(p *provider) any // "" serves nothing
		want            string
	}{
		"nothing there":        {want: "code 404"},
		"hang":                 {discovery: func(*provider) any { return hang }, want: "Timeout"},
		"endless":              {discovery: func(*provider) any { return endless }, want: "more than 4096 bytes"},
		"bomb":                 {discovery: func(*provider) any { return bomb }, want: "more than 4096 bytes"},
		"no JSON":              {discovery: func(*provider) any { return "<html>" }, want: "cannot be read"},
		"another issuer":       {discovery: func(*provider) any { return `{"issuer":"https://other.example"}` }, want: `that of the issuer "https://other.example"`},
		"no keys":              {discovery: func(p *provider) any { return document(p, "") }, want: "no https URL"},
		"keys by http":         {discovery: func(p *provider) any { return document(p, "http://127.0.0.1:1/keys") }, want: "no https URL"},
		"keys in a file":       {discovery: func(p *provider) any { return document(p, "file:///etc/passwd") }, want: "no https URL"},
		"redirect to http":     {discovery: func(*provider) any { return redirect("http://127.0.0.1:1/") }, want: "not followed"},
		"redirect in a circle": {discovery: func(p *provider) any { return redirect(p.URL + "/a/discovery") }, want: "more than 3 redirects"},
		"keys hang":            {keys: func(*provider) any { return hang }, want: "Timeout"},
		"keys endless":         {keys: func(*provider) any { return endless }, want: "more than 4096 bytes"},
		"keys no JSON":         {keys: func(*provider) any { return "[]" }, want: "no JSON Web Key Set"},
		"keys empty":           {keys: func(*provider) any { return `{"keys":[]}` }, want: "none that can verify"},
		"keys too many":        {keys: func(*provider) any { return `{"keys":[` + strings.Repeat(`{},`, 10) + `{}]}` }, want: "there are 11 keys, at most 10"},
		"keys of other kinds":  {keys: func(*provider) any { return `{"keys":[{"kty":"oct","k":"AAAA"},{"kty":"x"},1,null]}` }, want: "none that can verify"},
		"keys of huge size": {keys: func(*provider) any {
			return encodeJSON(gojose.JSONWebKeySet{Keys: []gojose.JSONWebKey{{Key: huge, KeyID: "k"}}})
		}, want: "none that can verify"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, "127.0.0.1:0")
			p.Config.ErrorLog = nil
			if c.discovery != nil {
				p.pages.Store("/a/discovery", c.discovery(p))
			} else if c.keys != nil {
				p.pages.Store("/a/discovery", document(p, p.URL+"/a/keys"))
				p.pages.Store("/a/keys", c.keys(p))
			}
			failed := make(chan error, 10)
			o := jwt.Options{
				Limits: jwt.Limits{Retry: time.Hour, Document: 4096, Keys: 10, Redirects: 3},
				Hooks:  jwt.Hooks{Fetched: func(_, _ string, err error) { failed <- err }},
			}
			if strings.HasSuffix(name, "hang") {
				o.Limits.Timeout = 200 * time.Millisecond
			}
			a, err := jwt.New(configurationOf(entryOf(p, p.URL+"/a/discovery")), o)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			if err := <-failed; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; want %q", err, c.want)
			}
			if _, err := a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, valid())); err == nil {
				t.Error("a token is accepted")
			}
		})
	}
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) }
}

// An issuer whose certificate is of another authority is not trusted.
func TestWrongAuthority(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	e := entryOf(p, p.issue(issuerURL, "/a", public("k", key)))
	_, e.Issuer.CertificateAuthority = newCertificate(t)
	failed := make(chan error, 10)
	a, err := jwt.New(configurationOf(e), jwt.Options{Hooks: jwt.Hooks{Fetched: func(_, _ string, err error) { failed <- err }}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "x509") {
		t.Errorf("the error is %v", err)
	}
}

// A token that is larger than the limit is not looked at.
func TestTokenLimit(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	c := configurationOf(entryOf(p, p.issue(issuerURL, "/a", public("k", key))))
	for _, o := range []struct{ limit, size int }{{0, 64 << 10}, {1000, 1000}} {
		a := newAuthenticator(t, c, jwt.Options{Limits: jwt.Limits{Token: o.limit}})
		for _, over := range []bool{false, true} {
			n := o.size * 3 / 8
			if over {
				n = o.size
			}
			token := sign(t, "ES256", "k", key, claimsOf(time.Hour, 0, `,"x":"`+strings.Repeat("x", n)+`"`))
			if resp, err := a.AuthenticateToken(t.Context(), token); (resp == nil) != over || err != nil {
				t.Errorf("%d bytes where %d are allowed: %v, %v", len(token), o.size, resp, err)
			}
		}
	}
}

// Rules that cost too much end, within the budget of a token.
func TestCostLimit(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	e := entryOf(p, p.issue(issuerURL, "/a", public("k", key)))
	e.ClaimValidationRules = []jwt.ClaimRule{{Expression: "dyn(claims.x).all(a, dyn(claims.x).all(b, dyn(claims.x).all(c, a + b + c > 0)))"}}
	a := newAuthenticator(t, configurationOf(e), jwt.Options{})
	for n, good := range map[int]bool{10: true, 1000: false} {
		token := sign(t, "ES256", "k", key, claimsOf(time.Hour, 0, `,"x":[1`+strings.Repeat(",1", n)+`]`))
		if resp, err := a.AuthenticateToken(t.Context(), token); (resp != nil) != good || !good && !strings.Contains(err.Error(), "cost limit exceeded") {
			t.Errorf("%d numbers: %v, %v", n, resp, err)
		}
	}
}

// Distributed claims: the endpoint gets the access token, its answer is bounded, and so is the number of issuers.
func TestDistributedClaims(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	e := entryOf(p, p.issue(issuerURL, "/a", public("k", key)))
	e.ClaimMappings.Groups = jwt.PrefixedClaim{Claim: "groups", Prefix: new("")}
	a := newAuthenticator(t, configurationOf(e), jwt.Options{Limits: jwt.Limits{Claims: 2000, Sources: 2, Retry: time.Millisecond}})
	var got atomic.Value
	serve := func(path, issuer string, more string) string {
		token := sign(t, "ES256", "k", key, strings.Replace(claimsOf(time.Hour, 0, more), issuerURL, issuer, 1))
		p.pages.Store(path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got.Store(r.Header.Get("Authorization"))
			_, _ = w.Write([]byte(token))
		}))
		return p.URL + path
	}
	ask := func(endpoint string) ([]string, error) {
		resp, err := a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, claimsOf(time.Hour, 0, `,"_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"`+endpoint+`","access_token":"secret"}}`)))
		if err != nil {
			return nil, err
		}
		return resp.User.Groups, nil
	}
	if groups, err := ask(serve("/c", issuerURL, `,"groups":["a"]`)); err != nil || len(groups) != 1 || got.Load() != "Bearer secret" {
		t.Errorf("%q, %v, %v", groups, err, got.Load())
	}
	if _, err := ask(serve("/c", issuerURL, `,"groups":["`+strings.Repeat("a", 2000)+`"]`)); err == nil || !strings.Contains(err.Error(), "more than 2000 bytes") {
		t.Errorf("a large answer: %v", err)
	}
	if _, err := ask("http://127.0.0.1:1/"); err == nil || !strings.Contains(err.Error(), "no https URL") {
		t.Errorf("an endpoint without TLS: %v", err)
	}
	for n := range 3 {
		issuer := p.URL + fmt.Sprint("/issuer", n)
		p.issue(issuer, fmt.Sprint("/issuer", n), public("k", key))
		page, _ := p.pages.Load(fmt.Sprintf("/issuer%d/discovery", n))
		p.pages.Store(fmt.Sprintf("/issuer%d/.well-known/openid-configuration", n), page)
		groups, err := ask(serve("/c", issuer, `,"groups":"g"`))
		switch {
		case n < 2 && (err != nil || len(groups) != 1):
			t.Errorf("issuer %d: %q, %v", n, groups, err)
		case n == 2 && (err == nil || !strings.Contains(err.Error(), "more than 2 issuers")):
			t.Errorf("issuer %d: %v", n, err)
		}
	}
	other := newProvider(t, "127.0.0.1:0")
	other.TLS.Certificates = p.TLS.Certificates
	leaked := make(chan string, 1)
	other.pages.Store("/", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked <- r.Header.Get("Authorization") }))
	p.pages.Store("/r", redirect(strings.Replace(other.URL, "127.0.0.1", "issuer.example", 1)+"/"))
	if _, err := ask(p.URL + "/r"); err == nil {
		t.Error("a redirect to another host gives claims")
	}
	select {
	case token := <-leaked:
		if token != "" {
			t.Errorf("another host got %q", token)
		}
	default:
	}
}

// The place of an issuer of distributed claims that has no keys is given to another issuer, and so is that of one that was not used for
// an hour. The ones that were used last stay.
func TestPlacesOfDistributedClaims(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	e := entryOf(p, p.issue(issuerURL, "/a", public("k", key)))
	e.ClaimMappings.Groups = jwt.PrefixedClaim{Claim: "groups", Prefix: new("")}
	var fetched sync.Map // issuer -> true
	a := newAuthenticator(t, configurationOf(e), jwt.Options{Limits: jwt.Limits{Sources: 2, Retry: time.Hour}, Hooks: jwt.Hooks{
		Fetched: func(issuer, _ string, _ error) { fetched.Store(issuer, true) },
	}})
	var late atomic.Int64
	a.SetClock(func() time.Time { return time.Now().Add(time.Duration(late.Load())) })
	ask := func(name string) error { // a pause makes the times of uses different
		time.Sleep(time.Millisecond)
		issuer := p.URL + "/" + name
		token := sign(t, "ES256", "k", key, strings.Replace(claimsOf(9*time.Hour, 0, `,"groups":"g"`), issuerURL, issuer, 1))
		p.pages.Store("/c", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(token)) }))
		_, err := a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, claimsOf(9*time.Hour, 0, `,"_claim_names":{"groups":"s"},"_claim_sources":{"s":{"endpoint":"`+p.URL+`/c"}}`)))
		return err
	}
	for _, name := range []string{"good0", "good1", "good2"} {
		p.issue(p.URL+"/"+name, "/"+name, public("k", key))
		page, _ := p.pages.Load("/" + name + "/discovery")
		p.pages.Store("/"+name+"/.well-known/openid-configuration", page)
	}
	want := func(name, fault string) {
		t.Helper()
		if err := ask(name); (err == nil) != (fault == "") || err != nil && !strings.Contains(err.Error(), fault) {
			t.Errorf("%s: %v, want %q", name, err, fault)
		}
	}
	before := goruntime.NumGoroutine()
	for i := range 20 {
		want(fmt.Sprint("wrong", i), "discovery of")
	}
	if after := goruntime.NumGoroutine(); after > before+15 {
		t.Errorf("%d goroutines, before %d", after, before)
	}
	want("good0", "")
	want("wrong", "discovery of")
	want("good1", "")
	want("wrong", "more than 2 issuers")
	late.Store(int64(50 * time.Minute))
	want("good1", "")
	late.Store(int64(100 * time.Minute))
	want("good2", "")
	fetched.Clear()
	want("good1", "")
	if _, again := fetched.Load(p.URL + "/good1"); again {
		t.Error("the issuer that was used last has lost its place")
	}
	want("good0", "more than 2 issuers")
}

// A file is used without waiting the first time; later only when its issuers answer. A wrong file changes nothing.
func TestFile(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	file := func(path string, change func(c *jwt.Configuration)) []byte {
		c := configurationOf(entryOf(p, p.URL+path+"/discovery"))
		c.APIVersion, c.Kind = "apiserver.config.k8s.io/v1", "AuthenticationConfiguration"
		c.Anonymous = &jwt.AnonymousRequests{Enabled: true, Conditions: []jwt.AnonymousPath{{Path: "/livez"}}}
		change(c)
		return []byte(encodeJSON(c))
	}
	same := func(*jwt.Configuration) {}
	var current *jwt.Authenticator
	var refuse error
	f := jwt.NewBriefFile(func(a *jwt.Authenticator) error {
		if refuse == nil {
			current = a
		}
		return refuse
	}, jwt.Options{Limits: jwt.Limits{Retry: 10 * time.Millisecond}})
	defer f.Close()
	if f.Anonymous() != nil {
		t.Error("there is a configuration before the first")
	}
	if err := f.Use([]byte("{")); err == nil || current != nil {
		t.Errorf("no configuration: %v", err)
	}
	if err := f.Use(file("/later", same)); err != nil || current.Initialized() == nil {
		t.Fatalf("the first time: %v", err)
	}
	p.issue(issuerURL, "/later", public("k", key))
	if err := current.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := current
	refuse = errors.New("refused")
	p.issue(issuerURL, "/b", public("k", key))
	for want, content := range map[string][]byte{
		"strict decoding error": []byte(`{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AuthenticationConfiguration","x":1}`),
		"invalid authentication configuration: jwt[0].issuer.audiences":    file("/b", func(c *jwt.Configuration) { c.JWT[0].Issuer.Audiences = nil }),
		"anonymous: Forbidden: changed from initial configuration file":    file("/b", func(c *jwt.Configuration) { c.Anonymous.Conditions[0].Path = "/readyz" }),
		`authenticator for issuer "https://issuer.example" is not healthy`: file("/missing", same),
		"refused": file("/b", same),
	} {
		f.Patience(time.Minute)
		if strings.Contains(want, "not healthy") {
			f.Patience(50 * time.Millisecond)
		}
		if err := f.Use(content); err == nil || !strings.Contains(err.Error(), want) || current != first {
			t.Errorf("the error is %v; want %q", err, want)
		}
	}
	refuse = nil
	f.Patience(time.Minute)
	if err := f.Use(file("/b", func(c *jwt.Configuration) { *c.JWT[0].ClaimMappings.Username.Prefix = "b:" })); err != nil || current == first {
		t.Fatalf("a good file: %v", err)
	}
	if resp, err := current.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, valid())); resp == nil || resp.User.Name != "b:ann" {
		t.Errorf("%v, %v", resp, err)
	}
	if paths, ok := jwt.Paths(f.Anonymous()); !ok || len(paths) != 1 || paths[0] != "/livez" {
		t.Errorf("anonymous paths: %q, %v", paths, ok)
	}
	f.Close()
	if err := f.Use(file("/b", same)); err == nil {
		t.Error("a closed file is used")
	}
}

func TestPaths(t *testing.T) {
	for _, a := range []*jwt.AnonymousRequests{nil, {}, {Conditions: []jwt.AnonymousPath{{Path: "/a"}}}} {
		if _, ok := jwt.Paths(a); ok {
			t.Errorf("%v accepts requests", a)
		}
	}
	if paths, ok := jwt.Paths(&jwt.AnonymousRequests{Enabled: true}); !ok || paths != nil {
		t.Errorf("%q, %v", paths, ok)
	}
}

// TestHooks checks that the hooks are called for each token, and for each attempt to get keys.
func TestHooks(t *testing.T) {
	p, key := newProvider(t, "127.0.0.1:0"), newEC(t, elliptic.P256())
	var told []string
	var mu sync.Mutex
	tell := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, fmt.Sprintf(format, args...))
	}
	a := newAuthenticator(t, configurationOf(entryOf(p, p.issue(issuerURL, "/a", public("k", key)))), jwt.Options{Hooks: jwt.Hooks{
		Authenticated: func(issuer string, err error, took time.Duration) {
			tell("%s %v %v", issuer, err == nil, took > 0)
		},
		Fetched: func(issuer, keys string, err error) { tell("%s %d %v", issuer, len(keys), err) },
	}})
	for _, claims := range []string{valid(), claimsOf(-time.Hour, 0, "")} {
		_, _ = a.AuthenticateToken(t.Context(), sign(t, "ES256", "k", key, claims))
	}
	a.Close()
	mu.Lock()
	defer mu.Unlock()
	want := fmt.Sprintf("[%[1]s 71 <nil> %[1]s true true %[1]s false true]", issuerURL)
	if fmt.Sprint(told) != want {
		t.Errorf("told: %v\nwant: %v", told, want)
	}
}
