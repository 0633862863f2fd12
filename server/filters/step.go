package filters

import (
	"context"
	"net/http"
)

// step is a filter that may be done with a request before the handler behind it begins. Such filters, one behind the
// other, run in a loop and not inside each other: a watch, which waits for minutes behind most of them, keeps none of
// their frames on its stack. Inside each other they would be half of it, and double what it is rounded up to.
type step struct {
	do   stepFunc
	next http.Handler
}

// stepFunc reports whether next is to serve the request; if not it has answered, or has called next itself to do
// something after it. The request is its own, so that it may change the fields (not what they refer to), and the
// context by setContext.
type stepFunc func(w http.ResponseWriter, r *http.Request, next http.Handler) bool

// steps makes a filter of do.
func steps(do stepFunc) Filter {
	return func(next http.Handler) http.Handler { return &step{do, next} }
}

// ServeHTTP implements http.Handler.
func (s *step) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	own := *r
	for {
		if !s.do(w, &own, s.next) {
			return
		}
		behind, ok := s.next.(*step)
		if !ok {
			break
		}
		s = behind
	}
	s.next.ServeHTTP(w, &own)
}

// setContext is r.WithContext without a new request.
func setContext(r *http.Request, ctx context.Context) { *r = *r.WithContext(ctx) }
