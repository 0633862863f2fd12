package authz_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
)

// always returns an authorizer with a fixed result.
func always(v authz.Verdict, reason string) authz.Authorizer {
	return authz.Func(func(context.Context, authz.Attributes) (authz.Verdict, string, error) { return v, reason, nil })
}

func ask(t *testing.T, a authz.Authorizer) string {
	t.Helper()
	v, reason, err := a.Authorize(t.Context(), authz.Attributes{User: &authn.User{Name: "u"}, Verb: "get", Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", v, reason)
}

func TestLive(t *testing.T) {
	live := &authz.Live{}
	if got := ask(t, live); got != "0 " {
		t.Errorf("an empty one says %s", got)
	}
	set := func(name string, a authz.Authorizer) {
		t.Helper()
		if err := live.Set(name, a); err != nil {
			t.Fatal(err)
		}
	}
	set("rbac", always(authz.NoOpinion, "no role"))
	set("webhook", always(authz.Deny, "no")) // a reason to deny is shown without the name, as in kube-apiserver
	before := live.Pin(t.Context())
	if again := live.Pin(t.Context()); again != before {
		t.Error("nothing has changed, but the pinned authorizer is another")
	}
	if got := ask(t, live); got != "2 no" {
		t.Errorf("both say %s", got)
	}
	set("rbac", always(authz.Allow, "a role"))
	if got := live.Names(); !slices.Equal(got, []string{"rbac", "webhook"}) {
		t.Errorf("a member that was replaced has lost its place: %q", got)
	}
	if got := ask(t, live); got != "1 a role" {
		t.Errorf("after a member was replaced: %s", got)
	}
	if got := ask(t, before); got != "2 no" {
		t.Errorf("what was pinned before decides by what came later: %s", got)
	}
	if !live.Remove("rbac") || live.Remove("rbac") {
		t.Error("Remove")
	}
	if got := ask(t, live); got != "2 no" {
		t.Errorf("after a member was removed: %s", got)
	}
	if live.Set("", always(authz.Allow, "")) == nil || live.Set("x", nil) == nil {
		t.Error("a member without a name, or without an authorizer, was taken")
	}
}

// generation is a Pinner to an authorizer whose reason is the number given to set.
type generation struct {
	n atomic.Pointer[authz.Authorizer]
}

func (g *generation) set(n int) {
	var a authz.Authorizer = &fixedGeneration{n}
	g.n.Store(&a)
}
func (g *generation) Pin(context.Context) authz.Authorizer { return *g.n.Load() }
func (g *generation) Authorize(ctx context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	return g.Pin(ctx).Authorize(ctx, a)
}

type fixedGeneration struct{ n int }

func (f *fixedGeneration) Authorize(context.Context, authz.Attributes) (authz.Verdict, string, error) {
	return authz.Allow, fmt.Sprint(f.n), nil
}

// TestPin checks that a pinned request uses one state of every member.
func TestPin(t *testing.T) {
	live, g := &authz.Live{}, &generation{}
	g.set(1)
	_ = live.Set("none", always(authz.NoOpinion, ""))
	_ = live.Set("counts", g)
	first := live.Pin(t.Context())
	if live.Pin(t.Context()) != first {
		t.Error("nothing has changed, but the pinned authorizer is another")
	}
	g.set(2)
	if got := ask(t, first); got != "1 1" {
		t.Errorf("what was pinned decides by a later state: %s", got)
	}
	if got := ask(t, live); got != "1 2" {
		t.Errorf("a later request: %s", got)
	}
	if n := testing.AllocsPerRun(100, func() { live.Pin(t.Context()) }); n > 0 {
		t.Errorf("Pin allocates %v times while nothing changes", n)
	}
}

// TestLiveUnderLoad changes the members while requests run. Each request uses the members before or after a change.
func TestLiveUnderLoad(t *testing.T) {
	live := &authz.Live{}
	_ = live.Set("first", always(authz.NoOpinion, ""))
	var readers, writers sync.WaitGroup
	done := make(chan struct{})
	for w := range 4 {
		writers.Go(func() {
			name := fmt.Sprint("member-", w)
			for i := range 300 {
				_ = live.Set(name, always(authz.NoOpinion, fmt.Sprint(i)))
				if i%3 == 0 {
					live.Remove(name)
				}
			}
			live.Remove(name)
		})
	}
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				pin := live.Pin(context.Background())
				_, one, _ := pin.Authorize(context.Background(), authz.Attributes{User: &authn.User{}})
				if _, two, _ := pin.Authorize(context.Background(), authz.Attributes{User: &authn.User{}}); one != two {
					t.Errorf("one pin says %q and then %q", one, two)
					return
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if got := live.Names(); !slices.Equal(got, []string{"first"}) {
		t.Errorf("left are %q", got)
	}
}
