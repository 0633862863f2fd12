package authz

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/keelson-dev/keelson/authn"
)

// ForGroup returns an authorizer that calls a for the members of a group, and has no opinion of other users. It is a [Pinner]
// that pins a, and it is ready when a is ready.
func ForGroup(group string, a Authorizer) Authorizer { return &forGroup{group: group, next: a} }

// forGroup is immutable, except for last.
type forGroup struct {
	group string
	next  Authorizer
	last  atomic.Pointer[forGroup] // the last result of Pin
}

func (g *forGroup) inner() Authorizer { return g.next }

// Pin implements Pinner.
func (g *forGroup) Pin(ctx context.Context) Authorizer {
	return pinInner(ctx, g, &g.last, func(next Authorizer) *forGroup { return &forGroup{group: g.group, next: next} })
}

// Authorize implements Authorizer.
func (g *forGroup) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) {
	if !slices.Contains(a.User.Groups, g.group) {
		return NoOpinion, "", nil
	}
	return g.next.Authorize(ctx, a)
}

// RulesFor implements RuleResolver.
func (g *forGroup) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	if user == nil || !user.InGroup(g.group) {
		return Rules{}, nil
	}
	return RulesOf(ctx, g.next, user, namespace)
}

// Ready returns nil if the next authorizer is ready.
func (g *forGroup) Ready(ctx context.Context) error { return ready(ctx, g.next) }
