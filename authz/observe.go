package authz

import (
	"context"
	"sync/atomic"

	"github.com/keelson-dev/keelson/authn"
)

// Observed returns an authorizer that decides as a, and calls told with each verdict. told must return quickly, and may be called
// concurrently. The authorizer is a [Pinner] that pins a, and it is ready when a is ready.
func Observed(a Authorizer, told func(Verdict)) Authorizer { return &observed{next: a, told: told} }

// observed is immutable, except for last.
type observed struct {
	next Authorizer
	told func(Verdict)
	last atomic.Pointer[observed] // the last result of Pin
}

func (o *observed) inner() Authorizer { return o.next }

// Pin implements Pinner.
func (o *observed) Pin(ctx context.Context) Authorizer {
	return pinInner(ctx, o, &o.last, func(next Authorizer) *observed { return &observed{next: next, told: o.told} })
}

// Authorize implements Authorizer.
func (o *observed) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) {
	verdict, reason, err := o.next.Authorize(ctx, a)
	o.told(verdict)
	return verdict, reason, err
}

// RulesFor implements RuleResolver.
func (o *observed) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	return RulesOf(ctx, o.next, user, namespace)
}

// Ready returns nil if the next authorizer is ready.
func (o *observed) Ready(ctx context.Context) error { return ready(ctx, o.next) }

// Explain implements Explainer.
func (o *observed) Explain(ctx context.Context, a Attributes) Explanation {
	e := Explain(ctx, o.next, a)
	o.told(e.Verdict)
	return e
}

// SubjectsFor implements SubjectResolver.
func (o *observed) SubjectsFor(ctx context.Context, a Attributes, limit int) Subjects {
	return SubjectsOf(ctx, o.next, a, limit)
}
