package apiset

import (
	"slices"

	"github.com/keelson-dev/keelson/server/internal/router"
)

// Change has the changes of a Set that an extension makes. They are collected while the extension is installed, and then
// published in one step or abandoned. Later changes take effect at once. A nil Change is treated like a published one. The mutex
// of the Set guards a Change.
type Change struct {
	phase    phase
	routes   router.Routes        // a nil handler: the key is not served any more
	notFound []router.NotFound    // in their order; one without a function is to be removed
	shown    map[*served][]string // verbs given to ShowVerbs
}

// phase is the state of a Change.
type phase int

const (
	phaseCollecting phase = iota // no request sees anything
	phasePublished               // requests see everything
	phaseAbandoned               // nothing is left
)

// Begin returns a Change in the phase of collecting.
func (s *Set) Begin() *Change {
	return &Change{routes: router.Routes{}, shown: map[*served][]string{}}
}

// collects reports whether changes by c are published later.
func (c *Change) collects() bool { return c != nil && c.phase == phaseCollecting }

// abandoned reports whether c may not change anything any more.
func (c *Change) abandoned() bool { return c != nil && c.phase == phaseAbandoned }

// sees reports whether c counts r as served. A Change that collects counts its own changes as made.
func (c *Change) sees(r *served) bool {
	if c != nil && r.by == c {
		return r.pending
	}
	return !r.pending
}

// leaves returns the resources that c withdraws or replaces when it is published. comes returns the resources that it adds then.
// The caller holds mu.
func (s *Set) leaves(c *Change) []*served {
	return slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return r.by != c || r.pending })
}

func (s *Set) comes(c *Change) []*served {
	return slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return r.by != c || !r.pending })
}

func unread(r *served) bool { return r.unread }
