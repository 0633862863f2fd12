package apiset

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Publish lets requests see the changes that c has collected. policy publishes the policy that guards them, and returns the
// number of installations in that policy: requests that are decided by an older policy are not served. policy is called when no
// error is possible any more, and must not call the Set. If Publish returns an error, nothing has changed.
func (s *Set) Publish(c *Change, policy func() (installed int64)) error {
	gone, err := s.publish(c, policy)
	s.retire(gone)
	return err
}

// publish is Publish without closing the caches of removed resources.
func (s *Set) publish(c *Change, policy func() (installed int64)) (gone []*served, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, fmt.Errorf("server: %w", ErrEnded)
	}
	c.phase = phasePublished
	added := s.comes(c)
	gone = s.leaves(c)
	if len(gone) > 0 || slices.ContainsFunc(added, unread) {
		s.readers.exchange(gone, slices.DeleteFunc(slices.Clone(added), func(r *served) bool { return !r.unread }), s.retired)
	}
	since := policy()
	for r, verbs := range c.shown {
		r.shown, r.cached.discovery = verbs, nil
	}
	s.route(c, since)
	for _, r := range added {
		r.pending, r.unread, r.by = false, false, nil
	}
	s.served = slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return slices.Contains(gone, r) })
	s.leave(gone)
	if len(c.routes)+len(c.shown) > 0 {
		s.changed()
	}
	c.routes, c.notFound, c.shown = nil, nil, nil
	return gone, nil
}

// route sets the routes, so that requests reach added resources, and not removed ones. The caller holds mu.
func (s *Set) route(c *Change, since int64) {
	for key, h := range c.routes {
		switch {
		case h == nil:
		case s.router.Serves(key):
			c.routes[key] = DecidedSince(since, h, http.HandlerFunc(askAgain))
		default:
			c.routes[key] = DecidedSince(since, h, s.opts.NotFound)
		}
		s.settle(key, h != nil)
	}
	for i, n := range c.notFound {
		if n.Serve == nil {
			continue
		}
		replaces := s.router.Answers(n.Name)
		c.notFound[i].Serve = func(w http.ResponseWriter, r *http.Request) bool {
			switch {
			case decided(r, since):
				return n.Serve(w, r)
			case replaces: // the replaced function might have answered
				askAgain(w, r)
			}
			return replaces
		}
	}
	s.router.Set(c.routes, c.notFound...)
}

// askAgain answers a request that is decided by a policy without the guards of the resource that it has reached: the resource has
// been replaced while the request was in the filters.
func askAgain(w http.ResponseWriter, r *http.Request) {
	response.Error(w, r, apierrors.NewTooManyRequests("the resource has been replaced while the request was on its way, please try again", 1))
}

// DecidedSince returns a handler that serves requests with h if their policy has at least so many installations, and with before
// if their policy is older.
func DecidedSince(installed int64, h, before http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !decided(r, installed) {
			before.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// decided reports whether the policy of a request has at least so many installations.
func decided(r *http.Request, installed int64) bool {
	taken := request.PolicyFrom(r.Context())
	return taken == nil || taken.Installed >= installed
}

// Abandon drops the changes that c has collected; c cannot change anything any more. The caller calls release when no work of the
// extension uses its resources: release closes the caches.
func (s *Set) Abandon(c *Change) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.phase = phaseAbandoned
	added := s.comes(c)
	for _, r := range s.leaves(c) {
		r.by = nil
	}
	s.served = slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return slices.Contains(added, r) })
	s.readers.exchange(slices.DeleteFunc(slices.Clone(added), unread), nil, s.retired)
	s.forget(added)
	s.undelegate(c)
	s.changed()
	return func() { closeCaches(added) }
}
