// Package admission says whether a change is acceptable, and may complete it.
//
// A [Plugin] is a mutator, a validator, or both, with a name and with what it handles. A [Chain] is the plug-ins of a
// server, in order:
//
//	chain := admission.Chain{
//		{Name: "owner-label", Mutator: setOwner, Handles: admission.Handles{Operations: []admission.Operation{admission.Create}}},
//		{Name: "no-deletes-on-friday", Validator: weekdays, Handles: admission.Handles{Operations: []admission.Operation{admission.Delete}}},
//	}
//
// Mutators run first and may change the new object; after the kind's own rules and validation, validators run. Reads never
// pass admission. A plain error refuses the change with 403 Forbidden; an apimachinery StatusError passes through as it is.
// A plug-in that does not handle a request costs it nothing, not even a copy of the object.
//
// A server keeps its plug-ins in a [Live], in kube-apiserver's order. Each request is decided by one [Policy], the state of
// all policy when the request came to be authenticated.
//
// Changes are judged at the same time: two creates may both read nine objects, and then there are eleven. A plug-in that
// limits something keeps count itself: it charges each change, under a lock or with a conditional write, and registers with
// [Request.OnFailure] how to undo the charge.
//
// See https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/.
package admission

import (
	"context"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
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

// Policy is everything that decides about one request: the state of all policy when the request was authenticated. It is
// immutable, and shared by requests while nothing changes. The zero Policy accepts every change.
type Policy struct {
	// Authorizer decides what a user may do, by the same rules for the whole request; nil: there is none.
	Authorizer authz.Authorizer
	// Plugins judge and complete changes.
	Plugins Chain
	// Readers read the objects that policy goes by; nil: there are none.
	Readers runtime.Readers
	// Installed is the number of Installs that this policy includes. A request that it decides does not reach what later ones
	// serve.
	Installed int64
	// State is what else the Source knows of the policy, for itself; a watch that is under way keeps none.
	State any
}

// Source gives the Policy of a request that begins now. It is asked once for each request, concurrently.
type Source interface {
	Policy(ctx context.Context) *Policy
}

// PolicyOf returns the policy of s, which may be nil: then it accepts every change.
func PolicyOf(ctx context.Context, s Source) *Policy {
	if s == nil {
		return &Policy{}
	}
	return s.Policy(ctx)
}
