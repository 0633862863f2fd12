package authz

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

// Union calls authorizers in order. The first that allows or denies decides, with its reason. If none does, the result is no
// opinion, with the reasons of all, one per line, and their errors as an aggregate of apimachinery. An empty union has no opinion.
//
// An error without a verdict does not end the union: a later member may allow or deny, and then the error is dropped, as in
// kube-apiserver. An authorizer that can deny, but cannot decide because it is not ready, returns Deny with an error, which ends it.
//
// A Union is a [Pinner]: it pins its members that are Pinners. It is ready when all of its members with a method
// Ready(context.Context) error are ready.
func Union(members ...Authorizer) Authorizer { return newUnion(slices.Clone(members), nil) }

// union is immutable, except for last.
type union struct {
	members []Authorizer
	names   []memberName // of the members; nil means no names
	pins    bool         // at least one member is a Pinner
	last    atomic.Pointer[union]
}

// memberName is the name of a member of a Live.
type memberName struct {
	name  string
	shown bool // before the reasons of the member
}

func newUnion(members []Authorizer, names []memberName) *union {
	return &union{members: members, names: names, pins: slices.ContainsFunc(members, pins)}
}

// Pin implements Pinner.
func (u *union) Pin(ctx context.Context) Authorizer {
	if !u.pins {
		return u
	}
	last := u.last.Load()
	if last == nil {
		last = &union{members: u.members, names: u.names}
	}
	next := last
	for i, m := range u.members {
		if !pins(m) {
			continue
		}
		now := pin(ctx, m)
		if same(now, next.members[i]) {
			continue
		}
		if next == last {
			next = &union{members: slices.Clone(last.members), names: u.names}
		}
		next.members[i] = now
	}
	if u.last.Load() != next {
		u.last.Store(next)
	}
	return next
}

// Authorize implements Authorizer.
func (u *union) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) {
	var none opinions
	for i, m := range u.members {
		verdict, reason, err := m.Authorize(ctx, a)
		switch verdict {
		case Allow:
			return Allow, reason, nil
		case Deny:
			return Deny, reason, err
		}
		none.add(u, i, reason, err)
	}
	reason, err := none.result()
	return NoOpinion, reason, err
}

// opinions are what the members of a union without a verdict said about a request.
type opinions struct {
	reasons []string
	errs    []error
}

// add adds what the member i of u said.
func (o *opinions) add(u *union, i int, reason string, err error) {
	if err != nil {
		o.errs = append(o.errs, err)
	}
	if reason == "" {
		return
	}
	if u.names != nil && u.names[i].shown {
		reason = u.names[i].name + ": " + reason
	}
	o.reasons = append(o.reasons, reason)
}

// result returns the reason and the error of the union.
func (o *opinions) result() (string, error) {
	return strings.Join(o.reasons, "\n"), aggregate(o.errs)
}

// aggregate returns several errors as one, whose text has those that differ; nil if there are none.
func aggregate(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return utilerrors.NewAggregate(errs)
}

// Ready returns the error of the first member that is not ready.
func (u *union) Ready(ctx context.Context) error {
	for _, m := range u.members {
		if err := ready(ctx, m); err != nil {
			return err
		}
	}
	return nil
}
