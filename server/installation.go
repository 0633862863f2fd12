package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// prepare keeps what an exchange has made for publish, and takes back what an earlier exchange has prepared: it returns that. gone
// and added are seen by requests as before. The caller holds the locks of i and of the server.
func (i *installation) prepare(gone, added []*served, routes map[schema.GroupVersionResource]http.Handler) []*served {
	s := i.s
	var back []*served
	for _, r := range gone {
		if r.pending {
			back = append(back, r)
			continue
		}
		r.by = i
	}
	s.served = slices.DeleteFunc(s.served, func(r *served) bool { return slices.Contains(back, r) })
	// A kind that is served already is read as it is until it is replaced.
	taken := slices.ContainsFunc(added, func(r *served) bool {
		return slices.ContainsFunc(s.served, func(o *served) bool { return !o.pending && o.gvk == r.gvk })
	})
	var read []*served
	for _, r := range added {
		r.pending, r.by, r.unread = true, i, taken
		if !taken {
			read = append(read, r)
		}
	}
	s.readers.exchange(slices.DeleteFunc(slices.Clone(back), unread), read, s.retired)
	s.served = append(s.served, added...)
	maps.Copy(i.routes, routes)
	return back
}

func unread(r *served) bool { return r.unread }

// publish has requests see everything: policy, then paths and routes, to which only requests come whose policy was taken with
// that. With an error nothing has happened.
func (i *installation) publish() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.s
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return fmt.Errorf("server: %w", errEnded)
	}
	i.phase = phasePublished
	gone, added := i.leaves(), i.comes()
	if len(gone) > 0 || slices.ContainsFunc(added, unread) {
		s.readers.exchange(gone, slices.DeleteFunc(slices.Clone(added), func(r *served) bool { return !r.unread }), s.retired)
	}
	since := s.policy.change(true, func(m *members) {
		for _, step := range i.steps {
			step(m)
		}
	})
	for _, p := range i.paths {
		s.fixed.fill(p.at, s.decidedSince(since, p.handler, http.HandlerFunc(s.fixed.notFound)))
	}
	s.closers = append(s.closers, i.closers...)
	for r, verbs := range i.shown {
		r.shown, r.said.discovery = verbs, nil
	}
	if len(i.routes) > 0 {
		i.route(since, gone)
	}
	for _, r := range added {
		r.pending, r.unread, r.by = false, false, nil
	}
	s.served = slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return slices.Contains(gone, r) })
	s.leave(gone)
	if len(i.routes)+len(i.shown) > 0 {
		s.changed()
	}
	s.mu.Unlock()
	s.retire(gone)
	i.steps, i.paths, i.closers, i.routes, i.shown = nil, nil, nil, nil, nil
	return nil
}

// route has requests reach what was added, and not what is gone. The caller holds the locks of i and of the server.
func (i *installation) route(since int64, gone []*served) {
	replaced := map[schema.GroupVersionResource]bool{}
	for _, r := range gone {
		replaced[r.gvr] = !r.unserved
	}
	for gvr, h := range i.routes {
		switch {
		case h == nil:
		case replaced[gvr]:
			i.routes[gvr] = i.s.decidedSince(since, h, http.HandlerFunc(askAgain))
		default:
			i.routes[gvr] = i.s.decidedSince(since, h, i.s.fixed)
		}
	}
	i.s.router.Set(i.routes)
}

// askAgain answers a request that is decided by a policy without the guards of what it has reached: the resource has been replaced
// while the request was on its way.
func askAgain(w http.ResponseWriter, r *http.Request) {
	filters.WriteStatus(w, r, apierrors.NewTooManyRequests("the resource has been replaced while the request was on its way, please try again", 1))
}

// decidedSince serves by h the requests that are decided by the policy as of so many installations or later, and by before
// those that are on their way with an older one.
func (s *Server) decidedSince(installed int64, h, before http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if taken := request.PolicyFrom(r.Context()); taken != nil && taken.Installed < installed {
			before.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// abandonWait is how long a failed Install waits for the work that the extension has begun.
const abandonWait = 3 * time.Second

// abandon takes back what was prepared, and ends what was begun. Work that does not return in time is waited for in the
// background, and after it the rest is closed.
func (i *installation) abandon() {
	s := i.s
	i.lock(s)
	i.phase = phaseAbandoned
	added, closers := i.comes(), i.closers
	for _, r := range i.leaves() {
		r.by = nil
	}
	for _, p := range i.paths {
		s.fixed.fill(p.at, nil)
	}
	s.served = slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return slices.Contains(added, r) })
	s.readers.exchange(slices.DeleteFunc(slices.Clone(added), unread), nil, s.retired)
	s.forget(added)
	s.changed()
	i.unlock(s)
	i.end()
	done := make(chan struct{})
	closeAll := func() {
		defer close(done)
		i.work.Wait()
		for _, f := range slices.Backward(closers) {
			f()
		}
		closeCaches(added)
	}
	if !s.start(closeAll) {
		closeAll()
	}
	timeout := time.NewTimer(abandonWait)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
	}
}
