package apiset

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/keelson-dev/keelson/server/internal/router"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// delegation is the state of a group version that is delegated, or is to be delegated.
type delegation struct {
	published bool
	by        *Change // the Change that begins or ends the delegation when it is published; nil: none
}

// Delegate implements server.Host.Delegate, and RemoveDelegate for a nil handler.
func (s *Set) Delegate(c *Change, gv schema.GroupVersion, h http.Handler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.delegated[gv]
	switch {
	case s.ended:
		return fmt.Errorf("server: %w", ErrEnded)
	case c.abandoned():
		return ErrAbandoned
	case d.by != nil && d.by != c:
		return fmt.Errorf("server: Delegate: %s is being changed by another extension, whose Install has not returned", gv)
	case h != nil && slices.ContainsFunc(s.served, func(r *served) bool { return r.gvr.GroupVersion() == gv && (c.sees(r) || r.by != c) }):
		return fmt.Errorf("server: Delegate: %s %w, by the server itself", gv, ErrServed)
	}
	switch key := gv.WithResource(""); {
	case !c.collects():
		s.settle(key, h != nil)
		s.router.Set(router.Routes{key: h})
	case h == nil && !d.published:
		delete(c.routes, key)
		delete(s.delegated, gv)
	default:
		c.routes[key] = h
		s.delegated[gv] = delegation{d.published, c}
	}
	return nil
}

// settle records whether a group version is delegated from now on. It ignores the key of a resource. The caller holds mu.
func (s *Set) settle(key schema.GroupVersionResource, is bool) {
	switch {
	case key.Resource != "":
	case is:
		s.delegated[key.GroupVersion()] = delegation{published: true}
	default:
		delete(s.delegated, key.GroupVersion())
	}
}

// undelegate drops the delegations that c was to begin or end. The caller holds mu.
func (s *Set) undelegate(c *Change) {
	for key := range c.routes {
		if key.Resource == "" {
			s.settle(key, s.delegated[key.GroupVersion()].published)
		}
	}
}

// checkDelegated refuses to serve resources in a group version that is delegated from the point of view of c, or that a Change
// which is not published begins or ends to delegate. The caller holds mu.
func (s *Set) checkDelegated(c *Change, groups []Group) error {
	for _, g := range groups {
		for _, v := range g.Versions {
			gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
			d, ok := s.delegated[gv]
			if ok && len(v.Resources) > 0 && (d.by == nil || d.by != c || c.routes[gv.WithResource("")] != nil) {
				return fmt.Errorf("server: group %q: version %s %w, by the handler that it is delegated to", g.Name, v.Name, ErrServed)
			}
		}
	}
	return nil
}

// AddNotFound implements server.Host.NotFound, and RemoveNotFound for a nil function.
func (s *Set) AddNotFound(c *Change, n router.NotFound) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return fmt.Errorf("server: %w", ErrEnded)
	case c.abandoned():
		return ErrAbandoned
	case c.collects():
		c.notFound = append(c.notFound, n)
	default:
		s.router.Set(nil, n)
	}
	return nil
}

// NotFound calls the not-found handlers for a request that nothing else serves, and reports whether one of them has answered.
func (s *Set) NotFound(w http.ResponseWriter, r *http.Request) bool { return s.router.NotFound(w, r) }
