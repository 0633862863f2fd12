package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	authreviews "github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/servertest"
	"golang.org/x/net/http/httpguts"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// signer signs the certificates of clients.
type signer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newSigner(t testing.TB) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{&x509.Certificate{Subject: pkix.Name{CommonName: "ca"}, IsCA: true, KeyUsage: x509.KeyUsageCertSign}, key}
	s.cert = s.sign(t, s.cert).Leaf
	return s
}

func (s *signer) client(t testing.TB, name string, groups ...string) *tls.Certificate {
	return s.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (s *signer) sign(t testing.TB, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, &s.key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: s.key, Leaf: leaf}
}

func (s *signer) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	return pool
}

// claimants are the certificates and tokens with which a fuzzed request may come; "" is none.
type claimants struct {
	srv    *servertest.Server
	url    string
	certs  map[string]*tls.Certificate
	names  []string // of certs
	tokens []string
	http2  map[string]*http.Client // by certificate
}

// mayImpersonate is the group whose members may impersonate everybody.
const mayImpersonate = "actors"

func newClaimants(f *testing.F) *claimants {
	f.Helper()
	proxies, clients, others := newSigner(f), newSigner(f), newSigner(f)
	c := &claimants{
		certs: map[string]*tls.Certificate{
			"": nil, "front": proxies.client(f, "front"), "back": proxies.client(f, "back"), "carol": clients.client(f, "carol", mayImpersonate),
			"dave": clients.client(f, "dave", "g"), "foreign": others.client(f, "carol", "system:masters"), "nameless": clients.client(f, ""),
		},
		names:  []string{"", "front", "back", "carol", "dave", "foreign", "nameless"},
		tokens: []string{"", "alice", "bob", "wrong"},
		http2:  map[string]*http.Client{},
	}
	c.srv = servertest.Start(f, server.Options{Policy: server.Policy{
		NoAdministrator: true,
		Authorizer: authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
			if acts := strings.HasPrefix(a.Verb, "impersonate"); !acts || a.Verb == "impersonate" && a.User.InGroup(mayImpersonate) {
				return authz.Allow, "", nil
			}
			return authz.NoOpinion, "", nil
		}),
	}}, authreviews.New(authreviews.Options{}))
	proxy, err := authn.AuthenticatingProxy(authn.StandardProxy(proxies.pool, "front"))
	if err != nil {
		f.Fatal(err)
	}
	roots := clients.pool() // one pool: another one would begin the memory of certificates anew
	known := map[string]authn.User{"alice": {Name: "alice", UID: "1", Groups: []string{mayImpersonate}}, "bob": {Name: "bob"}}
	h := host(f, c.srv)
	for name, a := range map[string]authn.Authenticator{
		authn.RequestHeader: proxy, authn.ClientCertificate: authn.X509(func() *x509.CertPool { return roots }), authn.TokenFile: authn.BearerToken(authn.StaticTokens(known)),
	} {
		if err := h.Authenticate(name, a); err != nil {
			f.Fatal(err)
		}
	}
	if c.url, err = c.srv.Listen(f.Context()); err != nil {
		f.Fatal(err)
	}
	for name := range c.certs {
		transport := &http.Transport{TLSClientConfig: c.tls(name), ForceAttemptHTTP2: true}
		f.Cleanup(transport.CloseIdleConnections)
		c.http2[name] = &http.Client{Transport: transport}
	}
	return c
}

// tls returns the configuration of a client with a certificate.
func (c *claimants) tls(name string) *tls.Config {
	config := &tls.Config{InsecureSkipVerify: true}
	if cert := c.certs[name]; cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return config
}

// headersOfUsers returns those lines of a text that name a user, so that no other header takes part, with a limited length. A line
// that begins with a space continues the line before it.
func headersOfUsers(text string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(text[:min(len(text), 8<<10)], "\n") {
		line = strings.ReplaceAll(line, "\r", "")
		folded := out.Len() > 0 && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"))
		if name := strings.ToLower(line); folded || strings.HasPrefix(name, "x-remote") || strings.HasPrefix(name, "x_remote") || strings.HasPrefix(name, "impersonate") {
			out.WriteString(line + "\r\n")
		}
	}
	return out.String()
}

const whoAmIBody = `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`

// head returns a request up to its body.
func head(token, lines string) string {
	text := "POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
	if token != "" {
		text += "Authorization: Bearer " + token + "\r\n"
	}
	return text + fmt.Sprintf("Content-Length: %d\r\n%s\r\n", len(whoAmIBody), lines)
}

// expected is the model: the code of the answer and the user that it names.
func (c *claimants) expected(cert, token string, h http.Header) (code int, user authenticationv1.UserInfo) {
	user, known := c.claimed(cert, token, h)
	if !known {
		return http.StatusUnauthorized, user
	}
	wanted := userOf(h, "Impersonate-")
	switch {
	case wanted.Username == "" && wanted.UID == "" && len(wanted.Groups) == 0 && len(wanted.Extra) == 0:
		return http.StatusCreated, user
	case wanted.Username == "":
		return http.StatusBadRequest, wanted
	case !slices.Contains(user.Groups, mayImpersonate):
		return http.StatusForbidden, wanted
	}
	if namespace, name, ok := authn.SplitServiceAccount(wanted.Username); ok && len(wanted.Groups) == 0 {
		wanted.Groups = authn.ServiceAccount(namespace, name).Groups
	}
	return http.StatusCreated, inGroups(wanted, "system:unauthenticated")
}

// claimed is the part of the model about authentication.
func (c *claimants) claimed(cert, token string, h http.Header) (user authenticationv1.UserInfo, known bool) {
	failed := false // a credential is wrong
	switch user = userOf(h, "X-Remote-"); {
	case cert == "front" && user.Username != "":
		user.Groups = slices.DeleteFunc(user.Groups, func(g string) bool { return g == "" })
		return inGroups(user, ""), true
	case cert == "carol" || cert == "dave":
		of := c.certs[cert].Leaf
		sum := sha256.Sum256(of.Raw)
		return inGroups(authenticationv1.UserInfo{Username: cert, Groups: of.Subject.Organization, Extra: map[string]authenticationv1.ExtraValue{
			authn.CredentialIDKey: {fmt.Sprintf("X509SHA256=%x", sum)},
		}}, ""), true
	case cert != "": // one of a proxy that names no user, or that nobody accepts
		failed = true
	}
	switch {
	case token == "alice":
		return inGroups(authenticationv1.UserInfo{Username: "alice", UID: "1", Groups: []string{mayImpersonate}}, ""), true
	case token == "bob":
		return inGroups(authenticationv1.UserInfo{Username: "bob"}, ""), true
	case token != "" || failed:
		return user, false
	}
	return authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}, true
}

// userOf returns the user of headers with a prefix.
func userOf(h http.Header, prefix string) authenticationv1.UserInfo {
	u := authenticationv1.UserInfo{Username: h.Get(prefix + "User"), UID: h.Get(prefix + "Uid"), Groups: slices.Clone(h[prefix+"Group"])}
	var names []string
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), strings.ToLower(prefix)+"extra-") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		key := strings.ToLower(name[len(prefix+"Extra-"):])
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		if u.Extra == nil {
			u.Extra = map[string]authenticationv1.ExtraValue{}
		}
		u.Extra[key] = append(u.Extra[key], h[name]...)
	}
	return u
}

// inGroups adds the group of authenticated users unless the user is in a group of all users, or ofAnonymous to the anonymous user.
func inGroups(u authenticationv1.UserInfo, ofAnonymous string) authenticationv1.UserInfo {
	in := func(group string) bool { return slices.Contains(u.Groups, group) }
	group := ""
	switch {
	case u.Username == "system:anonymous" && !in(ofAnonymous):
		group = ofAnonymous
	case u.Username != "system:anonymous" && !in("system:authenticated") && !in("system:unauthenticated"):
		group = "system:authenticated"
	}
	if group != "" {
		u.Groups = append(slices.Clip(u.Groups), group)
	}
	return u
}

// valid reports whether HTTP allows the names and values of headers.
func valid(h http.Header) bool {
	for name, values := range h {
		if !httpguts.ValidHeaderFieldName(name) || slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
			return false
		}
	}
	return true
}

// sendRaw sends a request over a TLS connection of its own.
func (c *claimants) sendRaw(t *testing.T, cert, text string) *http.Response {
	t.Helper()
	conn, err := tls.Dial("tcp", strings.TrimPrefix(c.url, "https://"), c.tls(cert))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return resp
}

// check compares an answer with the model.
func (c *claimants) check(t *testing.T, resp *http.Response, wantCode int, want authenticationv1.UserInfo) {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != wantCode {
		t.Fatalf("%s: %d %s, want %d", resp.Proto, resp.StatusCode, body, wantCode)
	}
	if wantCode != http.StatusCreated {
		return
	}
	var review authenticationv1.SelfSubjectReview
	if err := json.Unmarshal(body, &review); err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(want)      // bytes that are not UTF-8 become others
	want = authenticationv1.UserInfo{} // reads them
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, review.Status.UserInfo, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: -want +got: %s", resp.Proto, diff)
	}
}

// FuzzUsers sends headers that name users over TLS, as different clients, with HTTP/1.1 and HTTP/2. The user of each request is the
// one that a simple model names, and no request makes the server fail.
func FuzzUsers(f *testing.F) {
	seeds := []string{
		"",
		"X-Remote-User: dora\nX-Remote-Group: g\nX-Remote-Group: system:masters\nX-Remote-Uid: 7\nX-Remote-Extra-Example.com%2fScopes: a\nx-remote-extra-example.com%2Fscopes: b",
		"x-remote-user: dora\nX-REMOTE-USER: eve\nX-Remote-Group:\nX-Remote-Extra-: v\nX-Remote-Extra-%zz: v",
		"X-Remote-User:\nX-Remote-User: eve\nX-Remote-Group: actors\nImpersonate-User: x",
		"X-Remote-User: system:anonymous\nX_Remote_Group: system:masters\nX-Remote-Groups: g",
		"X-Remote-User: dora\n folded\nX-Remote-Group: a\n\tb",
		"X-Remote-User : dora",
		"X-Remote-User: d\x00ra",
		"X-Remote-User: d\xffra\nX-Remote-Extra-\xfe: v",
		"Impersonate-User: eve\nImpersonate-Group: g\nImpersonate-Group: system:masters\nImpersonate-Uid: 1\nImpersonate-Extra-A%20b: v\nimpersonate-extra-a%20B: w",
		"impersonate-user: eve\nImpersonate-User: root",
		"Impersonate-User: system:serviceaccount:a:b",
		"Impersonate-User: system:serviceaccount:a:b\nImpersonate-Group: g",
		"Impersonate-User: system:node:a",
		"Impersonate-User: system:anonymous",
		"Impersonate-User: system:anonymous\nImpersonate-Group: system:authenticated",
		"Impersonate-User: system:anonymous\nImpersonate-Group: system:unauthenticated",
		"Impersonate-User: system:node:A b",
		"Impersonate-User: system:masters\nImpersonate-Group: system:unauthenticated",
		"Impersonate-Group: system:masters",
		"Impersonate-Uid: 1",
		"Impersonate-User:\nImpersonate-Extra-K: v",
		"Impersonate-User: eve\nX-Remote-User: dora\nX-Remote-Group: actors",
	}
	for i, seed := range seeds {
		for cert := range 7 {
			f.Add(byte(cert), byte(i+cert), seed)
		}
	}
	c := newClaimants(f)
	f.Fuzz(func(t *testing.T, certificate, bearer byte, text string) {
		cert, token := c.names[int(certificate)%len(c.names)], c.tokens[int(bearer)%len(c.tokens)]
		raw := head(token, headersOfUsers(text)) + whoAmIBody
		code, user := http.StatusBadRequest, authenticationv1.UserInfo{} // what is no HTTP
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(raw)))
		wellFormed := err == nil && valid(r.Header)
		if wellFormed {
			code, user = c.expected(cert, token, r.Header)
		}
		c.check(t, c.sendRaw(t, cert, raw), code, user)
		if !wellFormed {
			return
		}
		r2, err := http.NewRequestWithContext(t.Context(), r.Method, c.url+r.URL.Path, strings.NewReader(whoAmIBody))
		if err != nil {
			t.Fatal(err)
		}
		r2.Header = r.Header
		r2.Header.Del("Connection")
		resp, err := c.http2[cert].Do(r2)
		if err != nil {
			t.Fatal(err)
		}
		if resp.ProtoMajor != 2 {
			t.Errorf("the second request was sent by %s", resp.Proto)
		}
		c.check(t, resp, code, user)
	})
}
