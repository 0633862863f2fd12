package server

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

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
