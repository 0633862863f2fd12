package authz

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/live"
)

// Plain is a member of a Live whose reasons are shown as they are, without the name of the member.
type Plain struct{ Authorizer }

// Pin implements Pinner.
func (p Plain) Pin(ctx context.Context) Authorizer { return pin(ctx, p.Authorizer) }

// RulesFor implements RuleResolver.
func (p Plain) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	return RulesOf(ctx, p.Authorizer, user, namespace)
}

// Ready returns nil when the authorizer is ready.
func (p Plain) Ready(ctx context.Context) error { return ready(ctx, p.Authorizer) }

// Live is an authorizer whose members come and go while it decides; each is known by its name. They are asked as those of
// a [Union] are, in the order in which their names came first; a member that replaces another takes its place. The reason of
// a member that does not allow is shown behind its name, as in kube-apiserver ("rbac: RBAC: ..."), unless it is a [Plain]. A
// request asks all members through one [Live.Pin]. The zero Live is empty and has no opinion. All methods may be called
// concurrently; a Live must not be copied.
type Live struct {
	members live.Members[Authorizer]
	union   atomic.Pointer[made]
}

// made is a union and what it was made of.
type made struct {
	of    *[]live.Member[Authorizer]
	union *union
}

// ErrMember is wrapped by the error of a Set without a name or an authorizer.
var ErrMember = errors.New("an authorizer needs a name and must not be nil")

// Set adds a member, or replaces the one of that name, in one step for all requests that are pinned afterwards.
func (l *Live) Set(name string, a Authorizer) error {
	if name == "" || a == nil {
		return ErrMember
	}
	l.members.Set(name, a, nil)
	return nil
}

// Remove takes a member away, and reports whether there was one of that name.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names lists the members, in the order in which they are asked.
func (l *Live) Names() []string { return l.members.Names() }

// Now returns the members as they are now, as a [Union] of them. It is a [Pinner], and the same while no member changes.
func (l *Live) Now() Authorizer {
	members := l.members.Now()
	if m := l.union.Load(); m != nil && m.of == members {
		return m.union
	}
	var all []Authorizer
	names := []string{}
	for _, m := range *members {
		name := m.Name
		if _, plain := m.Value.(Plain); plain {
			name = ""
		}
		all, names = append(all, m.Value), append(names, name)
	}
	u := newUnion(all, names)
	l.union.Store(&made{members, u})
	return u
}

// Pin implements Pinner.
func (l *Live) Pin(ctx context.Context) Authorizer { return pin(ctx, l.Now()) }

// Authorize implements Authorizer, pinned for this decision alone.
func (l *Live) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) {
	return l.Pin(ctx).Authorize(ctx, a)
}

// RulesFor implements RuleResolver.
func (l *Live) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	return RulesOf(ctx, l.Pin(ctx), user, namespace)
}
