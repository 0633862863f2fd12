package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// wholes makes members of all four kinds. Members with the same number belong together and check this.
type wholes struct {
	t                 *testing.T
	numbers           atomic.Int64
	admitted, mutated atomic.Int64 // number of requests of users with a number
}

// numberOf returns the number of a user, or "".
func numberOf(u *authn.User) string {
	if u == nil || len(u.Extra["number"]) == 0 {
		return ""
	}
	return u.Extra["number"][0]
}

// check reports whether a user has a number, which must be that of the member.
func (w *wholes) check(what, number string, u *authn.User) bool {
	got := numberOf(u)
	if got != "" && got != number {
		w.t.Errorf("the %s of %s decides about a user of the authenticator of %s", what, number, got)
	}
	return got != ""
}

// next is an extension that replaces all members, or removes all of them.
func (w *wholes) next(remove bool) server.Extension {
	number := fmt.Sprint(w.numbers.Add(1))
	set := []func(h *server.Host) error{
		func(h *server.Host) error {
			return h.Authenticate("whole", authn.Func(func(r *http.Request) (*authn.Response, error) {
				if r.Header.Get("X-Whole") == "" {
					return nil, nil
				}
				return &authn.Response{User: authn.User{Name: "whole", Extra: map[string][]string{"number": {number}}}}, nil
			}))
		},
		func(h *server.Host) error {
			return h.Authorize("whole", authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
				if w.check("authorizer", number, a.User) {
					return authz.Allow, "", nil
				}
				return authz.NoOpinion, "", nil
			}))
		},
		func(h *server.Host) error {
			return h.Admit(admission.Plugin{Name: "whole", Mutator: admission.MutatorFunc(func(_ context.Context, r *admission.Request) error {
				if w.check("plug-in", number, r.User) {
					w.mutated.Add(1)
					r.Object().(*Widget).Spec.Color = "number " + number
				}
				return nil
			})})
		},
		func(h *server.Host) error { return h.Control(wholeTurns{w, number}) },
	}
	if remove {
		set = []func(h *server.Host) error{
			func(h *server.Host) error { return h.RemoveAuthenticator("whole") },
			func(h *server.Host) error { return h.RemoveAuthorizer("whole") },
			func(h *server.Host) error { return h.RemovePlugin("whole") },
			func(h *server.Host) error { return h.Control(nil) },
		}
	}
	rand.Shuffle(len(set), func(i, j int) { set[i], set[j] = set[j], set[i] })
	return server.ExtensionFunc(func(h *server.Host) error {
		var errs []error
		for _, one := range set {
			errs = append(errs, one(h))
		}
		return errors.Join(errs...)
	})
}

// wholeTurns is the flow controller with a number.
type wholeTurns struct {
	w      *wholes
	number string
}

func (c wholeTurns) Admit(_ context.Context, a authz.Attributes) (func(), error) {
	if c.w.check("flow controller", c.number, a.User) {
		c.w.admitted.Add(1)
	}
	return func() {}, nil
}

// Members of all kinds are added and removed. Each request is decided by all members of one Install, or by none.
func TestRequestsAreDecidedByWholeInstalls(t *testing.T) {
	t.Parallel()
	const writers, clients, requests = 4, 16, 60
	srv := servertest.New(t, widgets())
	w := &wholes{t: t}
	if err := srv.Install(w.next(false)); err != nil {
		t.Fatal(err)
	}
	var over atomic.Bool
	var asking, installing sync.WaitGroup
	var created, unknown atomic.Int64
	for range clients {
		asking.Go(func() {
			c := srv.Anonymous()
			for range requests {
				code, body := tryCall(t, c, "POST", srv.URL+widgetsPath, `{"metadata":{"generateName":"a-"}}`, "X-Whole", "1")
				switch {
				case code == 201 && strings.Contains(body, `"color":"number `):
					created.Add(1)
				case code == 403 && strings.Contains(body, "system:anonymous"):
					unknown.Add(1)
				default:
					t.Errorf("%d %s", code, body)
				}
			}
		})
	}
	for range writers {
		installing.Go(func() {
			for !over.Load() {
				if err := srv.Install(w.next(rand.IntN(4) == 0)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asking.Wait()
	over.Store(true)
	installing.Wait()
	if created.Load() != w.admitted.Load() || created.Load() != w.mutated.Load() {
		t.Errorf("%d created, %d admitted by flow control, %d by admission", created.Load(), w.admitted.Load(), w.mutated.Load())
	}
	if created.Load() == 0 || unknown.Load() == 0 {
		t.Errorf("%d created, %d of nobody, in %d installs", created.Load(), unknown.Load(), w.numbers.Load())
	}
	if err := srv.Close(); err != nil { // fails if a goroutine is left
		t.Error(err)
	}
}
