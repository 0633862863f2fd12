package authz

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/authn"
)

// fixed is an authorizer whose rules do not change.
type fixed struct {
	Func
	rules  func(user *authn.User) Rules
	groups []string // whose members are those to whom the Func allows something
}

// RulesFor implements RuleResolver.
func (f fixed) RulesFor(_ context.Context, user *authn.User, _ string) (Rules, error) {
	return f.rules(user), nil
}

// SubjectsFor implements SubjectResolver.
func (f fixed) SubjectsFor(ctx context.Context, a Attributes, limit int) Subjects {
	var all Subjects
	for _, name := range f.groups {
		a.User = &authn.User{Groups: []string{name}}
		if verdict, _, _ := f.Func(ctx, a); verdict != Allow {
			continue
		}
		if len(all.Grants) == limit {
			all.Incomplete = true
			break
		}
		all.Grants = append(all.Grants, Grant{Subject: group(name)})
	}
	return all
}

// everybody returns the groups of which one has every user.
func everybody() []string { return []string{authn.AuthenticatedAll, authn.UnauthenticatedAll} }

// AlwaysAllow returns an authorizer that allows everything to every user, including the anonymous user. It is for tests, and for
// servers behind another component that authorizes requests.
func AlwaysAllow() Authorizer {
	return fixed{
		func(context.Context, Attributes) (Verdict, string, error) { return Allow, "", nil },
		func(*authn.User) Rules { return everything() },
		everybody(),
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
		nil,
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
		groups,
	}
}

// Masters returns an authorizer that allows everything to the members of system:masters, and has no opinion of other users.
func Masters() Authorizer { return PrivilegedGroups(authn.MastersGroup) }
