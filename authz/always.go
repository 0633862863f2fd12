package authz

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/authn"
)

// AlwaysAllow allows everything to everybody, the anonymous included. It is for tests, and for servers behind
// something else that decides.
func AlwaysAllow() Authorizer {
	return Func(func(context.Context, Attributes) (Verdict, string, error) { return Allow, "", nil })
}

// AlwaysDeny denies everything to everybody.
func AlwaysDeny() Authorizer {
	return Func(func(context.Context, Attributes) (Verdict, string, error) {
		return Deny, "Everything is forbidden.", nil
	})
}

// PrivilegedGroups allows everything to the members of groups, and has no opinion of others.
func PrivilegedGroups(groups ...string) Authorizer {
	groups = slices.Clone(groups)
	return Func(func(_ context.Context, a Attributes) (Verdict, string, error) {
		if a.User != nil && slices.ContainsFunc(groups, a.User.InGroup) {
			return Allow, "", nil
		}
		return NoOpinion, "", nil
	})
}

// Masters allows everything to the members of system:masters, and has no opinion of others.
func Masters() Authorizer { return PrivilegedGroups(authn.MastersGroup) }
