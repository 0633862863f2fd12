// Package filters holds what surrounds the handlers of an API server: each [Filter] does one thing to every request
// that passes, and knows nothing of what is behind it.
//
// A chain is a list, outermost first:
//
//	h = filters.Chain(h,
//		filters.Recover(logger),
//		filters.AuditID(),
//		filters.RequestInfo(request.Resolver{}),
//		filters.Authenticate(authenticator, filters.AuthenticateOptions{}),
//		filters.Authorize(authorizer),
//	)
//
// Most filters stand alone. Those that ask what a request wants (Deadline, InFlight, Authorize) take the info that
// [RequestInfo] has put in the context, or resolve it themselves; Authorize and InFlight go by the user that
// [Authenticate] has put there.
//
// Filters answer errors with [response.Error]: a Kubernetes Status in the format the client accepts.
//
// What wraps the http.ResponseWriter keeps its powers: Flush and, where the connection has it (HTTP/1.1), Hijack,
// directly and through http.ResponseController.
package filters

import (
	"net/http"
	"slices"
)

// Filter wraps a handler in one that does something before or after it, or answers in its place.
type Filter = func(http.Handler) http.Handler

// Chain wraps h in filters, the first of which is the outermost. nil filters are skipped.
func Chain(h http.Handler, fs ...Filter) http.Handler {
	for _, f := range slices.Backward(fs) {
		if f != nil {
			h = f(h)
		}
	}
	return h
}
