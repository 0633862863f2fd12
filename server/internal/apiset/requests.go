package apiset

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/internal/transport"
)

// counted is the handler of a resource in the routes, nil for one that is not served. A request that was on its way to a
// resource which is served otherwise by now goes where that is: the routes have changed before its count closes.
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

// retire closes the caches of what is served no longer, each when the requests to its kind have ended: their
// watches have.
func (s *Set) retire(gone []*served) {
	caches := map[*transport.Count]*served{} // of each kind the version that has the cache, if one has
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
