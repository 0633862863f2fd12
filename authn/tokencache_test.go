package authn_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
)

// tokenFunc is a function that implements authn.TokenAuthenticator.
type tokenFunc func(ctx context.Context, token string) (*authn.Response, error)

func (f tokenFunc) AuthenticateToken(ctx context.Context, token string) (*authn.Response, error) {
	return f(ctx, token)
}

// counted returns an authenticator that knows the tokens that begin with "good", fails for those that begin with "fail", and counts
// its calls.
func counted(calls *atomic.Int64) authn.TokenAuthenticator {
	return tokenFunc(func(ctx context.Context, token string) (*authn.Response, error) {
		n := calls.Add(1)
		switch {
		case strings.HasPrefix(token, "good"):
			return &authn.Response{
				User: authn.User{Name: fmt.Sprint(token, n)}, Audiences: authn.AudiencesFrom(ctx),
				Warnings: []string{"old"}, AuditAnnotations: map[string]string{"a": "b"},
			}, nil
		case strings.HasPrefix(token, "fail"):
			return nil, errors.New("failed")
		}
		return nil, nil
	})
}

// outcome is a result of AuthenticateToken in words.
func outcome(resp *authn.Response, err error) string {
	switch {
	case err != nil:
		return "error: " + err.Error()
	case resp == nil:
		return "no opinion"
	}
	return resp.User.Name
}

func TestCacheTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		a := authn.CacheTokens(counted(&calls), authn.CacheOptions{Success: 10 * time.Second, Failure: time.Second})
		ask := func(want, token string, audiences ...string) {
			t.Helper()
			ctx := t.Context()
			if audiences != nil {
				ctx = authn.WithAudiences(ctx, audiences)
			}
			resp, err := a.AuthenticateToken(ctx, token)
			if got := outcome(resp, err); got != want {
				t.Errorf("%s for %q: got %s, want %s", token, audiences, got, want)
			}
			if resp != nil && (!slices.Equal(resp.Audiences, audiences) || resp.Warnings[0] != "old" || resp.AuditAnnotations["a"] != "b") {
				t.Errorf("%s for %q: %+v", token, audiences, resp)
			}
		}
		ask("good1", "good")
		ask("good1", "good")
		ask("good2", "good", "x")
		ask("good3", "good", "x", "y")
		ask("good4", "good", "xy") // the same letters
		ask("good2", "good", "x")
		ask("error: failed", "fail")
		ask("error: failed", "fail")
		ask("no opinion", "unknown")
		ask("no opinion", "unknown")
		if got := calls.Load(); got != 7 {
			t.Errorf("%d calls", got)
		}
		time.Sleep(time.Second)
		ask("no opinion", "unknown")
		if got := calls.Load(); got != 8 {
			t.Errorf("%d calls after a second: a failure is remembered too long", got)
		}
		time.Sleep(9 * time.Second)
		ask("good9", "good")
	})
}

// TestCacheTokensRemembersNoFailures checks the default options, those of the cache of all token authenticators.
func TestCacheTokensRemembersNoFailures(t *testing.T) {
	var calls atomic.Int64
	a := authn.CacheTokens(counted(&calls), authn.CacheOptions{})
	none := authn.CacheTokens(counted(&calls), authn.CacheOptions{Success: -1})
	for range 3 {
		_, _ = a.AuthenticateToken(t.Context(), "unknown")
		_, _ = a.AuthenticateToken(t.Context(), "good")
		_, _ = none.AuthenticateToken(t.Context(), "good")
	}
	if got := calls.Load(); got != 3+1+3 {
		t.Errorf("%d calls", got)
	}
}

func TestCacheTokensCallsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		slow := tokenFunc(func(ctx context.Context, token string) (*authn.Response, error) {
			time.Sleep(time.Second)
			return counted(&calls).AuthenticateToken(ctx, token)
		})
		for token, want := range map[string]string{"good": "good1", "fail": "error: failed", "unknown": "no opinion"} {
			calls.Store(0)
			a := authn.CacheTokens(slow, authn.CacheOptions{})
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					if got := outcome(a.AuthenticateToken(t.Context(), token)); got != want {
						t.Errorf("%s: %s", token, got)
					}
				})
			}
			all.Wait()
			if got := calls.Load(); got != 1 {
				t.Errorf("%s: %d calls", token, got)
			}
		}
	})
}

// TestCacheTokensWhenARequestEnds checks that neither the end of the request that called nor its panic is the result of others.
func TestCacheTokensWhenARequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		a := authn.CacheTokens(tokenFunc(func(ctx context.Context, _ string) (*authn.Response, error) {
			n := calls.Add(1)
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(10 * time.Second):
			}
			if n == 2 {
				panic("broken")
			}
			return &authn.Response{User: authn.User{Name: fmt.Sprint("user", n)}}, nil
		}), authn.CacheOptions{})
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				defer func() { _ = recover() }()
				ctx, cancel := t.Context(), func() {}
				switch i {
				case 0:
					ctx, cancel = context.WithTimeout(ctx, time.Second)
				case 1, 2, 3:
					time.Sleep(time.Millisecond)
					ctx, cancel = context.WithTimeout(ctx, 2*time.Second)
				default:
					time.Sleep(time.Duration(i) * time.Millisecond)
				}
				defer cancel()
				got := outcome(a.AuthenticateToken(ctx, "x"))
				// The requests 1 to 3 may each be the one that calls, before their own ends.
				if i < 4 != strings.HasPrefix(got, "error: ") || i >= 4 && !strings.HasPrefix(got, "user") {
					t.Errorf("request %d: %s", i, got)
				}
			})
		}
		all.Wait()
		if n := calls.Load(); n > 6 {
			t.Errorf("%d calls for 20 requests", n)
		}
	})
}

func TestCacheTokensLooksForALimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := authn.CacheTokens(tokenFunc(func(ctx context.Context, _ string) (*authn.Response, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}), authn.CacheOptions{Lookup: 5 * time.Second})
		began := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if got := outcome(a.AuthenticateToken(t.Context(), "x")); got != "error: the token was not checked in time" {
					t.Error(got)
				}
			})
		}
		if all.Wait(); time.Since(began) != 5*time.Second {
			t.Errorf("took %v", time.Since(began))
		}
	})
}

func TestCacheTokensIsBounded(t *testing.T) {
	const tokens = 10_000
	for name, test := range map[string]struct {
		opts  authn.CacheOptions
		known int // how many of the tokens are remembered
	}{
		"entries": {authn.CacheOptions{Entries: 100}, 100},
		"bytes":   {authn.CacheOptions{Bytes: 100 << 10}, 100 << 10 / 600},
	} {
		var calls atomic.Int64
		a := authn.CacheTokens(counted(&calls), test.opts)
		for round := range 2 {
			for i := range tokens {
				if round == 1 {
					i = tokens - 1 - i // the last ones are remembered
				}
				_, _ = a.AuthenticateToken(t.Context(), fmt.Sprint("good", i))
			}
		}
		if known := 2*tokens - int(calls.Load()); known < test.known*9/10 || known > test.known*11/10 {
			t.Errorf("%s: %d tokens are remembered, want %d", name, known, test.known)
		}
	}
	var calls atomic.Int64
	large := authn.CacheTokens(tokenFunc(func(context.Context, string) (*authn.Response, error) {
		calls.Add(1)
		return &authn.Response{User: authn.User{Name: "x", Groups: []string{strings.Repeat("g", 30<<10)}}}, nil
	}), authn.CacheOptions{Bytes: 100 << 10})
	for range 2 {
		_, _ = large.AuthenticateToken(t.Context(), "x")
	}
	if calls.Load() != 2 {
		t.Error("a user that takes more than a quarter of the room is remembered")
	}
}

// TestLiveTokens checks that tokens are one union with a cache, which begins anew with each change of the members.
func TestLiveTokens(t *testing.T) {
	var calls atomic.Int64
	l := &authn.Live{}
	bearing := func(token string) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		return r
	}
	_ = l.Set(authn.TokenFile, authn.BearerToken(authn.StaticTokens(map[string]authn.User{"static": {Name: "static"}})))
	_ = l.Set(authn.OIDC, authn.BearerToken(counted(&calls)))
	_ = l.Set(authn.ClientCertificate, silent)
	_ = l.Set("own", knows("own"))
	for _, test := range [][2]string{{"static", "static"}, {"good", "good1"}, {"unknown", "own"}, {"fail", "own"}} {
		for range 2 {
			if got := result(l, bearing(test[0])); got != test[1] {
				t.Errorf("%s: %s", test[0], got)
			}
		}
	}
	if got := calls.Load(); got != 5 {
		t.Errorf("%d calls", got)
	}
	if got := outcome(l.AuthenticateToken(t.Context(), "good")); got != "good1" {
		t.Error(got)
	}
	if got := outcome(l.AuthenticateToken(t.Context(), "unknown")); got != "no opinion" {
		t.Error(got)
	}
	before := l.Now()
	l.Remove("own")
	for token, want := range map[string]string{"unknown": "error: token-file, oidc: invalid bearer token", "fail": "error: oidc: failed"} {
		if got := result(l, bearing(token)); got != want {
			t.Errorf("%s: %s", token, got)
		}
	}
	if before == l.Now() || l.Now() != l.Now() {
		t.Error("Now is not one for each state of the members")
	}
	l.Remove(authn.OIDC)
	if got := outcome(l.AuthenticateToken(t.Context(), "good")); got != "no opinion" {
		t.Errorf("a token of a member that was removed: %s", got)
	}
	l.Remove(authn.TokenFile)
	if got := result(l, bearing("static")); got != "no opinion" {
		t.Errorf("without members for tokens: %s", got)
	}
}

func TestForAudiences(t *testing.T) {
	a := authn.ForAudiences(authn.StaticTokens(map[string]authn.User{"t": {Name: "u"}}), "a", "b", "c")
	for _, test := range []struct {
		wanted []string
		token  string
		want   string
		got    []string
	}{
		{nil, "t", "u", nil},
		{[]string{"x"}, "t", "no opinion", nil},
		{[]string{}, "t", "no opinion", nil},
		{[]string{"x", "c", "a"}, "t", "u", []string{"c", "a"}},
		{[]string{"a"}, "other", "no opinion", nil},
	} {
		ctx := t.Context()
		if test.wanted != nil {
			ctx = authn.WithAudiences(ctx, test.wanted)
		}
		resp, err := a.AuthenticateToken(ctx, test.token)
		if got := outcome(resp, err); got != test.want || resp != nil && !slices.Equal(resp.Audiences, test.got) {
			t.Errorf("%q: %s %+v", test.wanted, got, resp)
		}
	}
	var calls atomic.Int64
	own := authn.ForAudiences(counted(&calls), "a")
	if got := outcome(own.AuthenticateToken(authn.WithAudiences(t.Context(), []string{"a"}), "good")); !strings.HasPrefix(got, "error: ") {
		t.Errorf("an authenticator with audiences of its own: %s", got)
	}
}

func BenchmarkCacheTokens(b *testing.B) {
	for _, size := range []int{32, 1024} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var calls atomic.Int64
			a := authn.CacheTokens(counted(&calls), authn.CacheOptions{Success: time.Hour})
			token := "good" + strings.Repeat("x", size-4)
			ctx := authn.WithAudiences(b.Context(), []string{"https://kubernetes.default.svc"})
			for b.Loop() {
				if resp, err := a.AuthenticateToken(ctx, token); resp == nil || err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
