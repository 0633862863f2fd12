package authz

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/authn"
)

// fixed is an authorizer whose rules do not change.
type fixed struct {
	Func
	rules func(user *authn.User) Rules
}

// RulesFor implements RuleResolver.
func (f fixed) RulesFor(_ context.Context, user *authn.User, _ string) (Rules, error) {
	return f.rules(user), nil
}

// AlwaysAllow returns an authorizer that allows everything to every user, including the anonymous user. It is for tests, and for
// servers behind another component that authorizes requests.
func AlwaysAllow() Authorizer {
	return fixed{
		func(context.Context, Attributes) (Verdict, string, error) { return Allow, "", nil },
		func(*authn.User) Rules { return everything() },
	}
}

// AlwaysDeny returns an authorizer that allows nothing. As in the mode AlwaysDeny of kube-apiserver, the verdict is NoOpinion, so
// an authorizer after it in a [Union] may allow.
func AlwaysDeny() Authorizer {
	return fixed{
		func(context.Context, Attributes) (Verdict, string, error) {
			return NoOpinion, "Everything is forbidden.", nil
		},
		func(*authn.User) Rules { return Rules{} },
	}
}

// PrivilegedGroups returns an authorizer that allows everything to the members of groups, and has no opinion of other users.
func PrivilegedGroups(groups ...string) Authorizer {
	groups = slices.Clone(groups)
	privileged := func(u *authn.User) bool { return u != nil && slices.ContainsFunc(groups, u.InGroup) }
	return fixed{
		func(_ context.Context, a Attributes) (Verdict, string, error) {
			if privileged(a.User) {
				return Allow, "", nil
			}
			return NoOpinion, "", nil
		},
		func(u *authn.User) Rules {
			if privileged(u) {
				return everything()
			}
			return Rules{}
		},
	}
}

// Masters returns an authorizer that allows everything to the members of system:masters, and has no opinion of other users.
func Masters() Authorizer { return PrivilegedGroups(authn.MastersGroup) }
