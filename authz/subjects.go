package authz

import (
	"context"

	"github.com/keelson-dev/keelson/authn"
)

// Subjects are who may make a request. The zero Subjects has nobody.
type Subjects struct {
	// Grants allow the request, unless an authorizer before the one that has them denies it. The same subject may be in several of them. A
	// subject of the kind Group stands for all its members.
	Grants []Grant
	// Incomplete means that there are or may be others, or fewer: an authorizer that does not name its subjects, such as a webhook, may allow
	// others, and may deny what a later one grants.
	Incomplete bool
}

// SubjectResolver is an optional interface of an [Authorizer]. It lists who may make a request. [Union], [Live],
// [ForGroup], [Plain] and [Observed] implement it, whether or not their members do.
type SubjectResolver interface {
	// SubjectsFor returns who may make a request; a.User is not used. At most limit grants are returned.
	SubjectsFor(ctx context.Context, a Attributes, limit int) Subjects
}

// SubjectsOf returns who may make a request, in at most limit grants: who can get the Secrets of a namespace, for example. a.User is
// not used. If the authorizer is not a SubjectResolver, the result has nobody and is incomplete.
func SubjectsOf(ctx context.Context, by Authorizer, a Attributes, limit int) Subjects {
	if r, ok := by.(SubjectResolver); ok {
		return r.SubjectsFor(ctx, a, limit)
	}
	return Subjects{Incomplete: true}
}

// SubjectsFor implements SubjectResolver. It returns the grants of all members, in order.
func (u *union) SubjectsFor(ctx context.Context, a Attributes, limit int) Subjects {
	var all Subjects
	for _, m := range u.members {
		one := SubjectsOf(ctx, m, a, limit-len(all.Grants))
		all.Grants = append(all.Grants, one.Grants...)
		all.Incomplete = all.Incomplete || one.Incomplete
	}
	return all
}

// SubjectsFor implements SubjectResolver.
func (l *Live) SubjectsFor(ctx context.Context, a Attributes, limit int) Subjects {
	return SubjectsOf(ctx, l.Pin(ctx), a, limit)
}

// SubjectsFor implements SubjectResolver.
func (p Plain) SubjectsFor(ctx context.Context, a Attributes, limit int) Subjects {
	return SubjectsOf(ctx, p.Authorizer, a, limit)
}

// SubjectsFor implements SubjectResolver. Only members of the group may do what the next authorizer allows. If that names its subjects, the
// result has those of them that are the group itself, or all authenticated users, and is incomplete if there are others, because some of
// them may be members. Members of system:unauthenticated are not authenticated.
func (g *forGroup) SubjectsFor(ctx context.Context, a Attributes, limit int) Subjects {
	next := SubjectsOf(ctx, g.next, a, limit)
	var all Subjects
	for _, one := range next.Grants {
		if s := one.Subject; s == nil || s.Kind != groupKind || !g.within(s.Name) {
			all.Incomplete = true
			continue
		}
		one.Subject = group(g.group)
		all.Grants = append(all.Grants, one)
	}
	all.Incomplete = all.Incomplete || next.Incomplete
	return all
}

// within reports whether all members of the group are members of another one.
func (g *forGroup) within(other string) bool {
	return other == g.group || other == authn.AuthenticatedAll && g.group != authn.UnauthenticatedAll
}

const groupKind = "Group"

// group returns a group as a subject.
func group(name string) *Object { return &Object{Kind: groupKind, Name: name} }
