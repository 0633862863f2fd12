// Package admission says whether a change is acceptable, and may complete it.
//
// Mutators run first, in order, and may change the new object; after the kind's own rules and validation,
// Validators run, in order, on copies. Reads never pass admission. A plain error refuses the change with 403
// Forbidden; an apimachinery StatusError passes through as it is. See
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/.
package admission

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Operation is what a request does.
type Operation string

// The operations that pass admission.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Delete  Operation = "DELETE"
	Connect Operation = "CONNECT"
)

// Request is one change as admission sees it. For updates it may be shown more than once, each time with what is
// stored then.
type Request struct {
	Operation   Operation
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	Namespace   string
	Name        string         // "" for a create with generateName
	Object      runtime.Object // the new object, a Mutator may change it in place; nil for Delete and Connect
	Old         runtime.Object // the stored object, not to be changed; nil for Create and Connect, and for Delete of what no registry keeps
	Options     runtime.Object // the verb's options, such as *metav1.CreateOptions
	DryRun      bool
	User        *authn.User // nil in process, without authentication
}

// Mutator may change the new object or refuse the change. The context of a create ends when that is done or has failed,
// and not before.
type Mutator interface {
	Mutate(ctx context.Context, r *Request) error
}

// Validator may refuse the change.
type Validator interface {
	Validate(ctx context.Context, r *Request) error
}

// MutatorFunc is a function that is a Mutator.
type MutatorFunc func(ctx context.Context, r *Request) error

// Mutate implements Mutator.
func (f MutatorFunc) Mutate(ctx context.Context, r *Request) error { return f(ctx, r) }

// ValidatorFunc is a function that is a Validator.
type ValidatorFunc func(ctx context.Context, r *Request) error

// Validate implements Validator.
func (f ValidatorFunc) Validate(ctx context.Context, r *Request) error { return f(ctx, r) }

// Source gives the chain that judges a request. It is asked for every request, concurrently, and cheap to ask. A Chain is
// the Source of itself; a [Live] is one that changes.
type Source interface {
	Current() Chain
}

// Chain is the mutators and validators of a server. The zero Chain accepts everything.
type Chain struct {
	Mutators   []Mutator
	Validators []Validator
}

// Current implements Source.
func (c Chain) Current() Chain { return c }

// IsZero reports whether the chain has nothing to say, so that callers can save the copies it would need.
func (c Chain) IsZero() bool { return len(c.Mutators) == 0 && len(c.Validators) == 0 }

// Mutate runs the mutators in order until one refuses.
func (c Chain) Mutate(ctx context.Context, r *Request) error {
	for _, m := range c.Mutators {
		if err := m.Mutate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Validate runs the validators in order until one refuses.
func (c Chain) Validate(ctx context.Context, r *Request) error {
	for _, v := range c.Validators {
		if err := v.Validate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Then returns a chain that runs c's members before next's.
func (c Chain) Then(next Chain) Chain {
	return Chain{slices.Concat(c.Mutators, next.Mutators), slices.Concat(c.Validators, next.Validators)}
}
