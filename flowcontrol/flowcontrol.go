// Package flowcontrol says whose turn it is when more is asked of a server than it should do at once.
//
// A [Controller] is asked before a request is served, and lets the request pass, makes it wait, or rejects it with a
// [RejectedError]. A Controller knows nothing of HTTP: it decides by the same [authz.Attributes] as an authorizer.
// Requests that last, such as watches, are not shown to it.
//
// [InFlight] is the simplest one: it bounds how many requests that read, and how many that write, are served at the
// same time, and never makes anybody wait:
//
//	limit := flowcontrol.NewInFlight(400, 200)
//	release, err := limit.Admit(ctx, authz.Attributes{User: user, Verb: "list"})
//	if err != nil {
//		return err // a *RejectedError: ask again after its RetryAfter
//	}
//	defer release()
//
// A [Budget] bounds what is held rather than how many ask: bytes, watches or connections, in all, by user and by address:
//
//	watches := flowcontrol.NewBudget("watches", flowcontrol.Bounds{All: 10000, User: 5000, Address: -1})
//	share, err := watches.Take(flowcontrol.Holder{User: user.Name, Address: address}, 1)
//	if err != nil {
//		return err // a *RejectedError
//	}
//	defer share.Release()
//
// The rules of turns are those of https://kubernetes.io/docs/concepts/cluster-administration/flow-control/.
package flowcontrol

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authz"
)

// Controller decides whose turn it is. Controllers are called concurrently.
type Controller interface {
	// Admit returns when it is the turn of the request with these attributes, whose User may be nil; release must then be
	// called exactly once, when the request is done. Otherwise release is nil and the error is a *RejectedError, or that of
	// ctx, which ended while the request waited.
	Admit(ctx context.Context, a authz.Attributes) (release func(), err error)
}

// RejectedError is the error for a request that is turned away.
type RejectedError struct {
	// RetryAfter is how long the client should wait before it asks again, in whole seconds.
	RetryAfter time.Duration
	// Reason says which bound was reached.
	Reason string
	// Bound is the bound of a Budget that was reached.
	Bound Bound
}

// Seconds is RetryAfter as HTTP says it: in whole seconds, of which there is at least one (RFC 9110, section 10.2.3).
func (r *RejectedError) Seconds() int { return max(1, int((r.RetryAfter+time.Second-1)/time.Second)) }

// Error implements error.
func (r *RejectedError) Error() string { return "too many requests: " + r.Reason }
