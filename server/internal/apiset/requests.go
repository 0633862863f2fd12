package apiset

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/internal/transport"
)

// counted returns the handler of a resource for the routes, or nil if the version is Unserved. If the resource was replaced while
// a request was in the filters, the request is routed again: the routes have changed before the count is closed.
func (s *Set) counted(r *served) http.Handler {
	if r.Unserved {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.inFlight.Enter() {
			s.Handler().ServeHTTP(w, req)
			return
		}
		defer r.inFlight.Leave()
		r.handler.ServeHTTP(w, req)
	})
}

// retire closes the caches of removed resources, each when the last request to its kind has ended. Their watches have been ended
// already.
func (s *Set) retire(gone []*served) {
	caches := map[*transport.Count]*served{} // for each kind, the version that has the cache, if there is one
	for _, r := range gone {
		if r.cache != nil || caches[r.inFlight] == nil {
			caches[r.inFlight] = r
		}
	}
	for t, r := range caches {
		t.Close(func() {
			if r.cache == nil {
				return
			}
			closeCaches([]*served{r})
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.retired, r)
		})
	}
}
