// Package admission lets plug-ins change and validate the changes that clients make.
//
// A [Plugin] is a mutator, a validator, or both, with a name and the requests that it handles. A [Chain] has the plug-ins of a
// server in order:
//
//	chain := admission.Chain{
//		{Name: "owner-label", Mutator: setOwner, Handles: admission.Handles{Operations: []admission.Operation{admission.Create}}},
//		{Name: "no-deletes-on-friday", Validator: weekdays, Handles: admission.Handles{Operations: []admission.Operation{admission.Delete}}},
//	}
//
// Mutators run first and may change the new object. Then the rules and the validation of the kind run, and then the
// validators. Reads do not pass admission. If a plug-in returns a plain error, the change is refused with 403 Forbidden; an
// apimachinery StatusError is returned as it is. A plug-in that does not handle a request costs nothing, not even a copy of the
// object.
//
// A server keeps its plug-ins in a [Live], in the order of kube-apiserver. Each request is decided by one [Policy]: the state of
// all policy when the authentication of the request began.
//
// Changes are validated concurrently. If a plug-in only compared the number of objects with a limit of ten, two creates could
// both read nine objects, and then there would be eleven. So a plug-in that enforces a limit must keep its own count. It charges
// each change, under a lock or with a conditional write, and registers a function that undoes the charge with
// [Request.OnFailure].
//
// See https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/.
package admission

import (
	"context"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
)

// Operation is the kind of change that a request makes.
type Operation string

// Operations that pass admission.
const (
	Create  Operation = "CREATE"  // creates an object
	Update  Operation = "UPDATE"  // updates an object, or part of it
	Delete  Operation = "DELETE"  // deletes an object
	Connect Operation = "CONNECT" // connects to an object, such as a proxy request
)

// Mutator may change the new object or refuse the change.
type Mutator interface {
	// Mutate changes r.Object() or returns an error, which refuses the change. The context of a create ends when the create has
	// succeeded or failed, and not before.
	Mutate(ctx context.Context, r *Request) error
}

// Validator may refuse the change.
type Validator interface {
	// Validate returns an error to refuse the change.
	Validate(ctx context.Context, r *Request) error
}

// MutatorFunc is a function that implements Mutator.
type MutatorFunc func(ctx context.Context, r *Request) error

// Mutate implements Mutator.
func (f MutatorFunc) Mutate(ctx context.Context, r *Request) error { return f(ctx, r) }

// ValidatorFunc is a function that implements Validator.
type ValidatorFunc func(ctx context.Context, r *Request) error

// Validate implements Validator.
func (f ValidatorFunc) Validate(ctx context.Context, r *Request) error { return f(ctx, r) }

// Policy is everything that decides about one request: the state of all policy when the authentication of the request began. It
// is immutable, and requests share it while nothing changes. The zero Policy accepts every change.
type Policy struct {
	// Authorizer decides what a user may do, by the same rules for the whole request. It is nil if there is none.
	Authorizer authz.Authorizer
	// Plugins change and validate the changes.
	Plugins Chain
	// Readers read the objects on which the policy depends. It is nil if there are none.
	Readers runtime.Readers
	// Installed is the number of calls of Server.Install (package server) whose changes this policy includes. A request with
	// this policy cannot use what later calls add.
	Installed int64
	// State is data of the Source for its own use. A running watch does not keep it.
	State any
}

// Source returns the Policy of a new request.
type Source interface {
	// Policy is called once for each request, concurrently.
	Policy(ctx context.Context) *Policy
}

// PolicyOf returns the policy of s. If s is nil, the policy accepts every change.
func PolicyOf(ctx context.Context, s Source) *Policy {
	if s == nil {
		return &Policy{}
	}
	return s.Policy(ctx)
}
