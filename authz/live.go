package authz

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime/live"
)

// Pinner is an optional power of an [Authorizer] whose decisions follow objects that change while it decides.
type Pinner interface {
	// Pin returns an authorizer that decides by the objects as they are now, however long it is used: one for all the
	// decisions of a request. What was acknowledged before the call counts. While nothing changes it returns the same
	// authorizer, comparable with ==: a pointer, for one.
	Pin(ctx context.Context) Authorizer
}

// Plain is a member of a Live whose reasons are shown as they are, without the name of the member.
type Plain struct{ Authorizer }

// Live is an authorizer whose members come and go while it decides; each is known by its name. They are asked as those of
// a [Union] are, in the order in which their names came first; a member that replaces another takes its place. The reason of
// a member that does not allow is shown behind its name, as in kube-apiserver ("rbac: RBAC: ..."), unless it is a [Plain]. A
// request asks all members through one [Live.Pin]. The zero Live is empty and has no opinion. All methods may be called
// concurrently; a Live must not be copied.
type Live struct {
	members live.Members[Authorizer]
	pinned  atomic.Pointer[pinned] // the last that Pin returned
}

// pinned is the members as they decide at one time.
type pinned struct {
	union
	of *[]live.Member[Authorizer]
}

// ErrMember is wrapped by the error of a Set that names no member.
var ErrMember = errors.New("a member needs a name and an authorizer")

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

// Pin implements Pinner.
func (l *Live) Pin(ctx context.Context) Authorizer {
	members, last := l.members.Now(), l.pinned.Load()
	if last == nil || last.of != members {
		last = &pinned{of: members}
		for _, m := range *members {
			last.union = append(last.union, named{m.Name, m.Value})
		}
	}
	next := last
	for i, m := range *members {
		p, ok := m.Value.(Pinner)
		if !ok {
			continue
		}
		if a := p.Pin(ctx); a != last.union[i].(named).Authorizer {
			if next == last {
				next = &pinned{slices.Clone(last.union), members}
			}
			next.union[i] = named{m.Name, a}
		}
	}
	l.pinned.Store(next)
	return next
}

// named is a member whose reasons say which it is.
type named struct {
	name string
	Authorizer
}

// Authorize implements Authorizer.
func (n named) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) {
	verdict, reason, err := n.Authorizer.Authorize(ctx, a)
	if _, plain := n.Authorizer.(Plain); !plain && verdict != Allow && reason != "" {
		reason = n.name + ": " + reason
	}
	return verdict, reason, err
}

// RulesFor implements RuleResolver.
func (n named) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	if p, ok := n.Authorizer.(Plain); ok {
		return RulesOf(ctx, p.Authorizer, user, namespace)
	}
	return RulesOf(ctx, n.Authorizer, user, namespace)
}

// Authorize implements Authorizer, pinned for this decision alone.
func (l *Live) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) {
	return l.Pin(ctx).Authorize(ctx, a)
}

// RulesFor implements RuleResolver.
func (l *Live) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	return RulesOf(ctx, l.Pin(ctx), user, namespace)
}
