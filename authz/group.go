package authz

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/authn"
)

// ForGroup asks a about the members of a group alone, and has no opinion of others.
func ForGroup(group string, a Authorizer) Authorizer { return &forGroup{group, a} }

type forGroup struct {
	group string
	next  Authorizer
}

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
