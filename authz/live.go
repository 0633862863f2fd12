package authz

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/live"
)

// Plain wraps a member of a Live whose reasons are shown without the name of the member.
type Plain struct{ Authorizer }

func (p Plain) inner() Authorizer { return p.Authorizer }

// Pin implements Pinner.
func (p Plain) Pin(ctx context.Context) Authorizer { return pin(ctx, p.Authorizer) }

// RulesFor implements RuleResolver.
func (p Plain) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	return RulesOf(ctx, p.Authorizer, user, namespace)
}

// Ready returns nil if the authorizer is ready.
func (p Plain) Ready(ctx context.Context) error { return ready(ctx, p.Authorizer) }

// Live is an authorizer whose named members may be added and removed while it is in use. The members are called as in a [Union],
// in the order in which their names were first added; a member that replaces another takes its position. If a member has no
// opinion, its reason is shown after its name, as in kube-apiserver ("rbac: RBAC: ..."), unless it is a [Plain]. Each request uses
// the authorizer that one call of [Live.Pin] returned. The zero Live has no members and no opinion. All methods may be called
// concurrently. A Live must not be copied.
type Live struct {
	members live.Members[Authorizer]
	union   atomic.Pointer[made]
}

// made is a union and the members of which it was made.
type made struct {
	of    *[]live.Member[Authorizer]
	union *union
}

// ErrMember is the error of Live.Set if the name is empty or the authorizer is nil.
var ErrMember = errors.New("an authorizer needs a name and must not be nil")

// Set adds a member, or replaces the member with this name. The change is atomic for all requests that are pinned afterwards. The
// error wraps ErrMember.
func (l *Live) Set(name string, a Authorizer) error {
	if name == "" || a == nil {
		return ErrMember
	}
	l.members.Set(name, a, nil)
	return nil
}

// Remove removes a member, and reports whether there was a member with this name.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names returns the names of the members, in the order in which they are called.
func (l *Live) Names() []string { return l.members.Names() }

// Now returns a [Union] of the current members. It is a [Pinner]. The result is the same while no member changes.
func (l *Live) Now() Authorizer {
	members := l.members.Now()
	if m := l.union.Load(); m != nil && m.of == members {
		return m.union
	}
	var all []Authorizer
	names := []memberName{}
	for _, m := range *members {
		_, plain := m.Value.(Plain)
		all, names = append(all, m.Value), append(names, memberName{m.Name, !plain})
	}
	u := newUnion(all, names)
	l.union.Store(&made{members, u})
	return u
}

// Pin implements Pinner.
func (l *Live) Pin(ctx context.Context) Authorizer { return pin(ctx, l.Now()) }

// Authorize implements Authorizer. It pins the members for this decision only.
func (l *Live) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) {
	return l.Pin(ctx).Authorize(ctx, a)
}

// RulesFor implements RuleResolver.
func (l *Live) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	return RulesOf(ctx, l.Pin(ctx), user, namespace)
}
