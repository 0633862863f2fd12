package server

import (
	"net/http"
	"sync"
)

// tenancy counts the requests to a kind in all its versions, so that the cache they read from is closed after the last of
// them when the kind is served no longer, or otherwise. The zero tenancy counts.
type tenancy struct {
	mu    sync.Mutex // guards all below
	n     int
	over  bool   // no more requests come in
	empty func() // called once, when over and n is 0
}

// enter reports whether a request may come in, and counts it.
func (t *tenancy) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return false
	}
	t.n++
	return true
}

// leave takes back an enter.
func (t *tenancy) leave() {
	t.mu.Lock()
	t.n--
	last := t.over && t.n == 0
	t.mu.Unlock()
	if last {
		t.empty()
	}
}

// end lets no more requests in, and calls empty when there are none under way: now, or in the last one. It is called once.
func (t *tenancy) end(empty func()) {
	t.mu.Lock()
	t.over, t.empty = true, empty
	last := t.n == 0
	t.mu.Unlock()
	if last {
		empty()
	}
}

// counted is the handler of a resource in the routes, nil for one that is not served. A request that was on its way to a
// resource which is served otherwise by now goes where that is: the routes have changed before the tenancy ends.
func (s *Server) counted(r *served) http.Handler {
	if r.unserved {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.tenancy.enter() {
			s.router.Handler(s.fixed).ServeHTTP(w, req)
			return
		}
		defer r.tenancy.leave()
		r.handler.ServeHTTP(w, req)
	})
}

// retire closes the caches of what is served no longer, each when the requests to its kind have ended: their
// watches have.
func (s *Server) retire(gone []*served) {
	caches := map[*tenancy]*served{} // of each kind the version that has the cache, if one has
	for _, r := range gone {
		if r.cache != nil || caches[r.tenancy] == nil {
			caches[r.tenancy] = r
		}
	}
	for t, r := range caches {
		t.end(func() {
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
