package apiset

import (
	"slices"

	"github.com/keelson-dev/keelson/server/internal/router"
)

// Change is what an extension changes of a Set: collected while it is installed, then published in one step or abandoned. What it
// changes after that is seen at once. A nil Change is one that is published. The mutex of the Set guards it.
type Change struct {
	phase    phase
	routes   router.Routes        // nil: served no longer
	notFound []router.NotFound    // in their order; those without a function are to go
	shown    map[*served][]string // of ShowVerbs
}

// phase is how far a Change is.
type phase int

const (
	phaseCollecting phase = iota // no request sees anything
	phasePublished               // requests see everything
	phaseAbandoned               // nothing is left
)

// Begin returns a Change that collects.
func (s *Set) Begin() *Change {
	return &Change{routes: router.Routes{}, shown: map[*served][]string{}}
}

// collects reports whether what c changes is published later.
func (c *Change) collects() bool { return c != nil && c.phase == phaseCollecting }

// abandoned reports whether nothing may be changed by c.
func (c *Change) abandoned() bool { return c != nil && c.phase == phaseAbandoned }

// sees reports whether r is served from the point of view of c: to one that collects its own changes are there.
func (c *Change) sees(r *served) bool {
	if c != nil && r.by == c {
		return r.pending
	}
	return !r.pending
}

// leaves returns the resources that c withdraws or replaces when it is published, and comes those that it adds then. The caller
// holds mu.
func (s *Set) leaves(c *Change) []*served {
	return slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return r.by != c || r.pending })
}

func (s *Set) comes(c *Change) []*served {
	return slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return r.by != c || !r.pending })
}

func unread(r *served) bool { return r.unread }
