// Package flowcontrol limits how much work a server does at the same time.
//
// A [Controller] is called before a request is served. It admits the request, delays it, or rejects it with a [RejectedError]. A
// Controller does not depend on HTTP: it decides by the same [authz.Attributes] as an authorizer. Long-running requests, such as
// watches, do not pass it.
//
// [InFlight] is the simplest Controller. It bounds how many reading and how many writing requests are served at the same time,
// and never delays a request:
//
//	limit := flowcontrol.NewInFlight(400, 200)
//	release, err := limit.Admit(ctx, authz.Attributes{User: user, Verb: "list"})
//	if err != nil {
//		return err // a *RejectedError: retry after its RetryAfter
//	}
//	defer release()
//
// A [Budget] bounds how much of a resource is held, such as bytes, watches or connections: in total, by user and by address:
//
//	watches := flowcontrol.NewBudget("watches", flowcontrol.Bounds{All: 10000, User: 5000, Address: -1})
//	share, err := watches.Take(flowcontrol.Holder{User: user.Name, Address: address}, 1)
//	if err != nil {
//		return err // a *RejectedError
//	}
//	defer share.Release()
//
// The package does not implement API Priority and Fairness, which
// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/ describes.
package flowcontrol

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authz"
)

// Controller decides when a request may be served. It may be called concurrently.
type Controller interface {
	// Admit returns when the request with these attributes may be served. The User of the attributes may be nil. The caller must
	// call release exactly once, when the request is done. If the request may not be served, release is nil. The error is then a
	// *RejectedError, or the error of ctx if it ended while the request waited.
	Admit(ctx context.Context, a authz.Attributes) (release func(), err error)
}

// RejectedError is the error for a rejected request.
type RejectedError struct {
	// RetryAfter is the time after which the client should retry, in whole seconds.
	RetryAfter time.Duration
	// Reason says which bound was reached.
	Reason string
	// Bound is the bound of a Budget that was reached. It is zero if another Controller, such as InFlight, rejected the request.
	Bound Bound
}

// Seconds returns RetryAfter in whole seconds for the Retry-After header, at least 1 (RFC 9110, section 10.2.3).
func (r *RejectedError) Seconds() int { return max(1, int((r.RetryAfter+time.Second-1)/time.Second)) }

// Error implements error.
func (r *RejectedError) Error() string { return "too many requests: " + r.Reason }
