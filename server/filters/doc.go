// Package filters provides the HTTP filters around the handlers of an API server. Each [Filter] does one thing to every request,
// and does not depend on the handler behind it.
//
// A chain is a list, outermost filter first:
//
//	h = filters.Chain(h,
//		filters.Recover(logger),
//		filters.AuditID(),
//		filters.RequestInfo(request.Resolver{}),
//		filters.Authenticate(authenticator, filters.AuthenticateOptions{}),
//		filters.Authorize(authorizer),
//	)
//
// Most filters do not depend on others. [Deadline], [InFlight] and [Authorize] need the [request.Info] of a request. They use the
// Info that [RequestInfo] has put in the context, or resolve the request themselves. Authorize and InFlight use the user that
// [Authenticate] has put in the context.
//
// Filters answer errors with [response.Error]: a Kubernetes Status in a format that the client accepts. Only the 429 of
// [InFlight] and [FlowControl] and the 500 of [Authorize] and [Recover] are plain text, as in kube-apiserver.
//
// Filters that wrap the http.ResponseWriter keep its methods Flush and, over HTTP/1.1, Hijack. Both work directly and through
// http.ResponseController.
package filters

import (
	"net/http"
	"slices"
)

// Filter wraps a handler in another handler, which does something before or after it, or answers in its place.
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
