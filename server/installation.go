package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// installation is what an extension adds to a server: collected while its Install runs, then published in one step or abandoned.
// What is added once it is published is seen at once.
type installation struct {
	s    *Server
	life context.Context // of what Go has begun; ends with the server, or when Install fails
	end  context.CancelFunc
	work sync.WaitGroup // what Go has begun

	mu      sync.Mutex // guards all below; taken before the server's
	phase   phase
	steps   []func(m *members) // of the policy, and all else that cannot fail
	paths   []path
	closers []func()
	routes  map[schema.GroupVersionResource]http.Handler // nil: served no longer
	shown   map[*served][]string                         // of ShowVerbs
}

// phase is how far an installation is.
type phase int

const (
	phaseCollecting phase = iota // no request sees anything
	phasePublished               // requests see everything
	phaseAbandoned               // Install has failed, and nothing is left
)

// errAbandoned is the error of a Host whose Install has failed.
var errAbandoned = errors.New("server: the extension is not installed, for its Install has failed: the Host is of no use any more")

type path struct {
	at      string
	handler http.Handler
}

func newInstallation(s *Server) *installation {
	i := &installation{s: s, routes: map[schema.GroupVersionResource]http.Handler{}, shown: map[*served][]string{}}
	i.life, i.end = context.WithCancel(s.life)
	return i
}

// do does step now, or when the extension is installed. step must not wait, nor lock the server or the installation.
func (i *installation) do(step func(m *members)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.phase {
	case phaseCollecting:
		i.steps = append(i.steps, step)
	case phasePublished:
		i.s.policy.change(false, step)
	case phaseAbandoned:
		return errAbandoned
	}
	return nil
}

// handle serves a fixed path now, or when the extension is installed.
func (i *installation) handle(at string, h http.Handler) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.phase {
	case phasePublished:
		return i.s.fixed.handle(at, h)
	case phaseAbandoned:
		return errAbandoned
	}
	if err := i.s.fixed.claim(at); err != nil {
		return err
	}
	i.paths = append(i.paths, path{at, h})
	return nil
}

// begin runs work in the background. If it is too late for that, work is called at once, with a context that has ended.
func (i *installation) begin(work func(ctx context.Context)) {
	i.mu.Lock()
	begun := i.phase != phaseAbandoned
	if begun {
		i.work.Add(1)
		begun = i.s.start(func() {
			defer i.work.Done()
			work(i.life)
		})
		if !begun {
			i.work.Done()
		}
	}
	i.mu.Unlock()
	if !begun {
		work(i.life)
	}
}

// start runs work in the background, and reports whether it does: not when the server has ended.
func (s *Server) start(work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	s.background.Go(work)
	return true
}

// onClose has f called when the server ends, or when Install fails.
func (i *installation) onClose(f func()) {
	i.mu.Lock()
	waits := i.phase == phaseCollecting
	if waits {
		i.closers = append(i.closers, f)
	}
	over := i.phase == phaseAbandoned
	i.mu.Unlock()
	switch {
	case over:
		f()
	case !waits:
		i.s.onClose(f)
	}
}

// lock locks i and the server. A nil installation has no lock.
func (i *installation) lock(s *Server) {
	if i != nil {
		i.mu.Lock()
	}
	s.mu.Lock()
}

func (i *installation) unlock(s *Server) {
	s.mu.Unlock()
	if i != nil {
		i.mu.Unlock()
	}
}

// collects reports whether what i changes is published later. The caller holds its lock.
func (i *installation) collects() bool { return i != nil && i.phase == phaseCollecting }

// sees reports whether r is served from the point of view of i, which may be nil: to an installation that is being prepared its
// own changes are there. The caller holds the server's mu.
func (i *installation) sees(r *served) bool {
	if i != nil && r.by == i {
		return r.pending
	}
	return !r.pending
}

// leaves returns the resources that i withdraws or replaces when it is published, and comes those that it adds then. The caller
// holds the server's mu.
func (i *installation) leaves() []*served {
	return slices.DeleteFunc(slices.Clone(i.s.served), func(r *served) bool { return r.by != i || r.pending })
}

func (i *installation) comes() []*served {
	return slices.DeleteFunc(slices.Clone(i.s.served), func(r *served) bool { return r.by != i || !r.pending })
}

func unread(r *served) bool { return r.unread }

// onClose has f called when the server ends, or now if it has.
func (s *Server) onClose(f func()) {
	s.mu.Lock()
	late := s.ended
	if !late {
		s.closers = append(s.closers, f)
	}
	s.mu.Unlock()
	if late {
		f()
	}
}
