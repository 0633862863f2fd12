package apiset

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Withdraw stops serving resources, in all their versions. If it returns an error, none is withdrawn.
func (s *Set) Withdraw(c *Change, resources []schema.GroupResource) error {
	gone, err := s.take(c, resources)
	s.retire(gone)
	return err
}

// Exchange serves groups in place of resources, some of which may not be served.
func (s *Set) Exchange(c *Change, resources []schema.GroupResource, groups []Group) error {
	gone, err := s.replace(c, resources, groups)
	s.retire(gone)
	return err
}

// replace is Exchange without closing the caches of removed resources.
func (s *Set) replace(c *Change, resources []schema.GroupResource, groups []Group) ([]*served, error) {
	s.mu.Lock()
	defer s.mu.Unlock() // deferred, since a function of the program may panic
	return s.exchange("Replace", c, resources, groups)
}

// take is Withdraw without closing the caches of removed resources.
func (s *Set) take(c *Change, resources []schema.GroupResource) ([]*served, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, gr := range resources {
		if !slices.ContainsFunc(s.served, func(r *served) bool { return c.sees(r) && r.gvr.GroupResource() == gr }) {
			return nil, fmt.Errorf("server: Withdraw: %s is not served; want its group and plural, such as widgets.example.com", gr)
		}
	}
	return s.exchange("Withdraw", c, resources, nil)
}

// exchange stops serving resources, and serves groups, in one step: it does all of this or nothing. It returns the resources that
// were removed. With a Change that collects, nothing is published yet, and it returns those resources of an earlier exchange that
// it drops. The caller holds mu, and calls retire with the result.
func (s *Set) exchange(what string, c *Change, resources []schema.GroupResource, groups []Group) ([]*served, error) {
	switch {
	case s.ended:
		return nil, fmt.Errorf("server: %w", ErrEnded)
	case c.abandoned():
		return nil, ErrAbandoned
	}
	if err := s.checkDelegated(c, groups); err != nil {
		return nil, err
	}
	before := s.served
	var gone, left []*served
	routes := map[schema.GroupVersionResource]http.Handler{}
	for _, r := range before {
		switch {
		case !slices.Contains(resources, r.gvr.GroupResource()):
			if c.sees(r) || r.by != c { // c may add what it withdraws
				left = append(left, r)
			}
		case r.by != nil && r.by != c:
			return nil, fmt.Errorf("server: %s: %s is being changed by another extension, whose Install has not returned", what, r.gvr.GroupResource())
		case c.sees(r):
			gone, routes[r.gvr] = append(gone, r), nil
		}
	}
	for _, r := range gone {
		if j := slices.IndexFunc(left, func(o *served) bool { return o.hub == r.hub && o.scheme == r.scheme }); j >= 0 {
			return nil, fmt.Errorf("server: %s: %s has the same objects as %s; withdraw both", what, r.gvr.GroupResource(), left[j].gvr.GroupResource())
		}
	}
	s.served = left
	added, more, err := s.add(groups)
	if s.served = slices.Clone(before); err != nil {
		return nil, err
	}
	maps.Copy(routes, more)
	if c.collects() {
		gone = s.prepare(c, gone, added, routes)
	} else {
		s.served = slices.Concat(left, added)
		s.readers.exchange(gone, added, s.retired)
		s.router.Set(routes)
	}
	s.leave(gone)
	s.changed() // after their names are free: a caller that waits for the change may serve them again
	return gone, nil
}

// prepare stores the result of an exchange in c, for publish, and drops resources that an earlier exchange has prepared: it
// returns these. Requests see no change. The caller holds mu.
func (s *Set) prepare(c *Change, gone, added []*served, routes map[schema.GroupVersionResource]http.Handler) []*served {
	var back []*served
	for _, r := range gone {
		if r.pending {
			back = append(back, r)
			continue
		}
		r.by = c
	}
	s.served = slices.DeleteFunc(s.served, func(r *served) bool { return slices.Contains(back, r) })
	// A kind that is served already is read from its old source until it is replaced.
	taken := slices.ContainsFunc(added, func(r *served) bool {
		return slices.ContainsFunc(s.served, func(o *served) bool { return !o.pending && o.gvk == r.gvk })
	})
	var read []*served
	for _, r := range added {
		r.pending, r.by, r.unread = true, c, taken
		if !taken {
			read = append(read, r)
		}
	}
	s.readers.exchange(slices.DeleteFunc(slices.Clone(back), unread), read, s.retired)
	s.served = append(s.served, added...)
	maps.Copy(c.routes, routes)
	return back
}

// leave frees resources that are not served any more, without closing their caches. The caller holds mu.
func (s *Set) leave(gone []*served) {
	s.forget(gone)
	for _, r := range gone {
		if r.cache != nil {
			s.retired[r] = true
		}
	}
}

// changed publishes the served resources to discovery, OpenAPI and metrics, and closes the channel for the change. The caller
// holds mu.
func (s *Set) changed() {
	s.kinds = nil
	s.opts.Discovery.Set(s.discoveryGroups())
	s.opts.OpenAPI.Set(s.openAPIVersions())
	s.opts.Metrics.Serve(s.metered())
	close(s.change)
	s.change = make(chan struct{})
}
