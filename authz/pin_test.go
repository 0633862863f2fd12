package authz_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
)

// crew authorizes a request of a member of the group crew.
func crew(t *testing.T, a authz.Authorizer) string {
	t.Helper()
	v, reason, err := a.Authorize(t.Context(), authz.Attributes{User: &authn.User{Name: "u", Groups: []string{"crew"}}, Verb: "get", Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", v, reason)
}

// TestPinReachesWhatIsAsked checks that nested authorizers are pinned too.
func TestPinReachesWhatIsAsked(t *testing.T) {
	none := always(authz.NoOpinion, "")
	for name, around := range map[string]func(a authz.Authorizer) authz.Authorizer{
		"a union":         func(a authz.Authorizer) authz.Authorizer { return authz.Union(none, a) },
		"a group":         func(a authz.Authorizer) authz.Authorizer { return authz.ForGroup("crew", a) },
		"a plain one":     func(a authz.Authorizer) authz.Authorizer { return authz.Plain{Authorizer: a} },
		"an observed one": func(a authz.Authorizer) authz.Authorizer { return authz.Observed(a, func(authz.Verdict) {}) },
		"all of them": func(a authz.Authorizer) authz.Authorizer {
			return authz.Union(none, authz.ForGroup("crew", authz.Plain{Authorizer: authz.Union(a)}))
		},
		"a plain member":    func(a authz.Authorizer) authz.Authorizer { return liveOf(authz.Plain{Authorizer: a}) },
		"a union in a live": func(a authz.Authorizer) authz.Authorizer { return liveOf(authz.Union(none, authz.ForGroup("crew", a))) },
	} {
		g := &generation{}
		g.set(1)
		a, ok := around(g).(authz.Pinner)
		if !ok {
			t.Errorf("%s is no Pinner", name)
			continue
		}
		first := a.Pin(t.Context())
		if a.Pin(t.Context()) != first {
			t.Errorf("%s: nothing has changed, but the pinned authorizer is another", name)
		}
		g.set(2)
		if got := crew(t, first); got != "1 1" {
			t.Errorf("%s: what was pinned decides by a later state: %s", name, got)
		}
		if got := crew(t, a.Pin(t.Context())); got != "1 2" {
			t.Errorf("%s: what is pinned later: %s", name, got)
		}
		if n := testing.AllocsPerRun(100, func() { a.Pin(t.Context()) }); n > 0 {
			t.Errorf("%s: Pin allocates %v times while nothing changes", name, n)
		}
	}
}

func liveOf(a authz.Authorizer) *authz.Live {
	live := &authz.Live{}
	_ = live.Set("m", a)
	return live
}

// incomparable is a Pinner whose pinned authorizers are not comparable.
type incomparable []string

func (p incomparable) Pin(context.Context) authz.Authorizer { return p }
func (p incomparable) Authorize(context.Context, authz.Attributes) (authz.Verdict, string, error) {
	return authz.NoOpinion, p[0], nil
}

// pinnedTo is a Pinner whose Pin returns the embedded authorizer.
type pinnedTo struct{ authz.Authorizer }

func (p pinnedTo) Pin(context.Context) authz.Authorizer { return p.Authorizer }

func TestPinnedThatCannotBeCompared(t *testing.T) {
	for _, a := range []authz.Authorizer{incomparable{"x"}, pinnedTo{always(authz.NoOpinion, "x")}, pinnedTo{authz.Union(incomparable{"x"})}, pinnedTo{authz.Plain{Authorizer: incomparable{"x"}}}} {
		for _, p := range []authz.Pinner{authz.Union(a).(authz.Pinner), authz.ForGroup("crew", a).(authz.Pinner), liveOf(authz.Plain{Authorizer: a})} {
			for range 3 {
				if got := crew(t, p.Pin(t.Context())); got != "0 x" {
					t.Errorf("%T: %s", a, got)
				}
			}
		}
	}
}

// fails returns an authorizer that returns an error.
func fails(v authz.Verdict, text string) authz.Authorizer {
	return authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) { return v, "", errors.New(text) })
}

// TestUnionOfWhatIsNotReady checks that an error without a verdict does not prevent a later member from allowing, and that Deny
// with an error does.
func TestUnionOfWhatIsNotReady(t *testing.T) {
	allow := always(authz.Allow, "")
	for _, tc := range []struct {
		name    string
		members []authz.Authorizer
		verdict authz.Verdict
		err     string
	}{
		{"it could allow only", []authz.Authorizer{fails(authz.NoOpinion, "loading"), allow}, authz.Allow, ""},
		{"and nobody else allows", []authz.Authorizer{fails(authz.NoOpinion, "loading"), fails(authz.NoOpinion, "too")}, authz.NoOpinion, "[loading, too]"},
		{"it could deny", []authz.Authorizer{fails(authz.Deny, "loading"), allow}, authz.Deny, "loading"},
		{"the errors before are dropped", []authz.Authorizer{fails(authz.NoOpinion, "first"), fails(authz.Deny, "loading"), allow}, authz.Deny, "loading"},
		{"who comes before may allow", []authz.Authorizer{allow, fails(authz.Deny, "loading")}, authz.Allow, ""},
	} {
		live := &authz.Live{}
		for i, m := range tc.members {
			_ = live.Set(fmt.Sprint(i), m)
		}
		for _, a := range []authz.Authorizer{authz.Union(tc.members...), live} {
			verdict, _, err := a.Authorize(t.Context(), authz.Attributes{User: &authn.User{}})
			text := ""
			if err != nil {
				text = err.Error()
			}
			if verdict != tc.verdict || text != tc.err {
				t.Errorf("%s: %d %q, want %d %q", tc.name, verdict, text, tc.verdict, tc.err)
			}
		}
	}
}

// loading is an authorizer that is not ready.
type loading struct{ authz.Authorizer }

func (loading) Ready(context.Context) error { return errors.New("loading") }

func TestReadyOfWhatIsAsked(t *testing.T) {
	type readier interface{ Ready(context.Context) error }
	silent := always(authz.NoOpinion, "")
	for _, around := range []func(a authz.Authorizer) authz.Authorizer{
		func(a authz.Authorizer) authz.Authorizer { return authz.Union(silent, a) },
		func(a authz.Authorizer) authz.Authorizer { return authz.ForGroup("crew", a) },
		func(a authz.Authorizer) authz.Authorizer { return authz.Plain{Authorizer: a} },
		func(a authz.Authorizer) authz.Authorizer { return authz.Observed(a, func(authz.Verdict) {}) },
	} {
		if err := around(loading{silent}).(readier).Ready(t.Context()); err == nil || err.Error() != "loading" {
			t.Errorf("%T: %v", around(silent), err)
		}
		if err := around(silent).(readier).Ready(t.Context()); err != nil {
			t.Errorf("%T: %v", around(silent), err)
		}
	}
}

func TestObserved(t *testing.T) {
	var told []authz.Verdict
	for _, v := range []authz.Verdict{authz.Allow, authz.NoOpinion, authz.Deny} {
		a := authz.Observed(always(v, "x"), func(v authz.Verdict) { told = append(told, v) })
		if got := crew(t, a); got != fmt.Sprintf("%d x", v) || told[len(told)-1] != v {
			t.Errorf("%s, told %v", got, told)
		}
	}
	rules, err := authz.RulesOf(t.Context(), authz.Observed(authz.AlwaysAllow(), nil), &authn.User{}, "")
	if len(rules.Resources) != 1 || err != nil {
		t.Error(rules, err)
	}
}
