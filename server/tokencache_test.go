package server_test

import (
	"context"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// manyTokens authenticates tokens that begin with "good", and counts the calls.
type manyTokens struct {
	calls atomic.Int64
	group string // of every user
}

func (m *manyTokens) AuthenticateToken(_ context.Context, token string) (*authn.Response, error) {
	m.calls.Add(1)
	if !strings.HasPrefix(token, "good") {
		return nil, nil
	}
	return &authn.Response{User: authn.User{Name: token, Groups: []string{strings.Clone(m.group)}}}, nil
}

// ask sends a request with each of the tokens first to last, and returns how many were checked for it.
func (m *manyTokens) ask(t *testing.T, srv *servertest.Server, first, last int) int64 {
	t.Helper()
	before, client := m.calls.Load(), srv.Anonymous()
	for i := first; i < last; i++ {
		a := roundTrip(t, client, "GET", srv.URL+"/version", "", "Authorization", fmt.Sprint("Bearer good", i))
		wantCode(t, 200, a.code, a.body)
	}
	return m.calls.Load() - before
}

// The cache of tokens has the bounds of Policy.TokenCache, whatever clients send. A token that was dropped is checked again.
func TestTokenCacheHasTheBoundsOfThePolicy(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]authn.CacheOptions{
		"entries": {Entries: 100, Success: time.Hour}, "bytes": {Bytes: 100 * 700, Success: time.Hour},
	} {
		tokens := &manyTokens{group: strings.Repeat("g", 100)}
		srv := servertest.Start(t, server.Options{Policy: server.Policy{TokenCache: o}})
		if err := host(t, srv).Authenticate(authn.TokenWebhook, authn.BearerToken(tokens)); err != nil {
			t.Fatal(err)
		}
		const sent = 2000
		if n := tokens.ask(t, srv, 0, sent); n != sent {
			t.Errorf("%s: %d checks of %d new tokens", name, n, sent)
		}
		if n := tokens.ask(t, srv, sent-80, sent); n != 0 {
			t.Errorf("%s: the last tokens are not remembered: %d checks", name, n)
		}
		if n := tokens.ask(t, srv, sent-400, sent-200); n != 200 {
			t.Errorf("%s: more tokens are remembered than the bound allows: %d checks", name, n)
		}
	}
	none := &manyTokens{}
	srv := servertest.Start(t, server.Options{Policy: server.Policy{TokenCache: authn.CacheOptions{Success: -1}}})
	if err := host(t, srv).Authenticate(authn.TokenWebhook, authn.BearerToken(none)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if none.ask(t, srv, 0, 1) != 1 {
			t.Error("a token is remembered")
		}
	}
}

// With the default bounds, 10,000 tokens of large users, and wrong ones, take bounded memory, and all tokens go on working.
func TestTenThousandTokens(t *testing.T) { // not parallel: it measures the memory
	const sent, userBytes, most = 10_000, 16 << 10, 64 << 20 // all users would take 160 MiB
	tokens := &manyTokens{group: strings.Repeat("g", userBytes)}
	srv := servertest.Start(t, server.Options{Policy: server.Policy{
		Users: map[string]authn.User{"static": {Name: "static"}}, TokenCache: authn.CacheOptions{Success: time.Hour}, // the bounds are the default ones
	}})
	if err := host(t, srv).Authenticate(authn.TokenWebhook, authn.BearerToken(tokens)); err != nil {
		t.Fatal(err)
	}
	before := heap()
	if n := tokens.ask(t, srv, 0, sent); n != sent {
		t.Errorf("%d checks of %d new tokens", n, sent)
	}
	client := srv.Anonymous()
	for i := range sent / 10 {
		a := roundTrip(t, client, "GET", srv.URL+"/version", "", "Authorization", fmt.Sprint("Bearer bad", i))
		wantCode(t, 401, a.code, a.body)
	}
	if grown := heap() - before; grown > most {
		t.Errorf("the heap has grown by %d MiB", grown>>20)
	} else if grown < 16<<20 {
		t.Errorf("the heap has grown by %d MiB only: are users remembered?", grown>>20)
	}
	if n := tokens.ask(t, srv, 0, 100); n != 100 {
		t.Errorf("%d checks of tokens that were dropped", n)
	}
	if n := tokens.ask(t, srv, sent-500, sent); n != 0 {
		t.Errorf("%d checks of the last tokens", n)
	}
	a := roundTrip(t, client, "GET", srv.URL+"/apis", "", "Authorization", "Bearer static")
	wantCode(t, 200, a.code, a.body)
}

// heap returns the bytes that are in use.
func heap() int64 {
	goruntime.GC()
	goruntime.GC()
	var stats goruntime.MemStats
	goruntime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// A request without a credential is accepted exactly at the paths of authn.Anonymous, as by kube-apiserver with such conditions. A
// wrong credential is refused there too, and all other authenticators go on working.
func TestAnonymousAtPaths(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, server.Options{Policy: server.Policy{
		Authenticator: authn.Anonymous("/livez", "/readyz"), Users: map[string]authn.User{"t": {Name: "joe"}},
	}})
	for _, c := range []struct {
		method, path, token string
		code                int
		header              []string
	}{
		{"GET", "/livez", "", 200, nil},
		{"GET", "/readyz", "", 200, nil},
		{"GET", "/%6civez", "", 200, nil}, // the same path
		{"POST", "/livez", "", 403, nil},  // nobody may
		{"GET", "/livez", "", 403, []string{"Impersonate-User", "x"}},
		{"GET", "/livez/", "", 401, nil},
		{"GET", "/livez/ping", "", 401, nil},
		{"GET", "//livez", "", 401, nil},
		{"GET", "/LIVEZ", "", 401, nil},
		{"GET", "/./livez", "", 401, nil},
		{"GET", "/readyz/../livez", "", 401, nil},
		{"GET", "/livez/../api", "", 401, nil},
		{"GET", "/livez%2f", "", 401, nil},
		{"GET", "/livez%3Fa", "", 401, nil},
		{"GET", "/healthz", "", 401, nil},
		{"GET", "/version", "", 401, nil},
		{"GET", "/api", "", 401, nil},
		{"GET", "/livez", "wrong", 401, nil},
		{"GET", "/livez", "t", 200, nil},
		{"GET", "/apis", "t", 200, nil},
	} {
		header := c.header
		if c.token != "" {
			header = append(header, "Authorization", "Bearer "+c.token)
		}
		if a := roundTrip(t, srv.Anonymous(), c.method, srv.URL+c.path, "", header...); a.code != c.code {
			t.Errorf("%s %s %s: %d, want %d", c.method, c.path, c.token, a.code, c.code)
		}
	}
	if code, body := tryCall(t, srv.Client(), "GET", srv.URL+"/apis", ""); code != 200 {
		t.Errorf("the administrator: %d %s", code, body)
	}
	nobody := servertest.Start(t, server.Options{Policy: server.Policy{Authenticator: authn.Union()}})
	if a := roundTrip(t, nobody.Anonymous(), "GET", nobody.URL+"/livez", ""); a.code != 401 {
		t.Errorf("nobody is anonymous: %d", a.code)
	}
}
