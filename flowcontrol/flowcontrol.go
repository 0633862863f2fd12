// Package flowcontrol says whose turn it is when more is asked of a server than it should do at once.
//
// A [Controller] is asked before a request is served, and lets it pass, makes it wait, or turns it away with a
// [RejectedError]. It knows nothing of HTTP: a [Request] is the little it judges by. Requests that last, such as
// watches, are not shown to it.
//
// [InFlight] is the simplest one: it bounds how many requests that read, and how many that write, are served at the
// same time, and never makes anybody wait:
//
//	limit := flowcontrol.NewInFlight(400, 200)
//	release, err := limit.Admit(ctx, flowcontrol.Request{User: user, Verb: "list"})
//	if err != nil {
//		return err // a *RejectedError: ask again after its RetryAfter
//	}
//	defer release()
//
// The rules are those of https://kubernetes.io/docs/concepts/cluster-administration/flow-control/.
package flowcontrol

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authn"
)

// Request is what flow control knows of a request. The zero Request is one that writes, by nobody.
type Request struct {
	User *authn.User // nil when nobody was authenticated
	Verb string      // as in authz.Attributes

	// Resource tells a request for an API resource from one for a path.
	Resource bool
	// Of a resource request.
	APIGroup, APIVersion, ResourceName, Subresource, Namespace, Name string

	Path string // of a request for a path
}

// IsReadOnly reports whether the verb changes nothing.
func (r Request) IsReadOnly() bool {
	return r.Verb == "get" || r.Verb == "list" || r.Verb == "watch" || r.Verb == "head"
}

// Controller decides whose turn it is. Controllers are called concurrently.
type Controller interface {
	// Admit returns when it is r's turn; release must then be called exactly once, when r is done. Otherwise
	// release is nil and the error is a *RejectedError, or that of ctx, which ended while r waited.
	Admit(ctx context.Context, r Request) (release func(), err error)
}

// RejectedError is the error for a request that is turned away.
type RejectedError struct {
	// RetryAfter is how long the client should wait before it asks again, in whole seconds.
	RetryAfter time.Duration
	// Reason says which bound was reached.
	Reason string
}

// Error implements error.
func (r *RejectedError) Error() string { return "too many requests: " + r.Reason }
