package server

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/request"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// installation collects what an extension adds until it is installed, and does it at once from then on.
type installation struct {
	s    *Server
	life context.Context // of what Go has begun; ends with the server, or when Install fails
	end  context.CancelFunc
	work sync.WaitGroup // what Go has begun

	mu      sync.Mutex // guards all below; taken before the server's
	done    bool       // published, or abandoned
	steps   []func()   // of the policy, and all else that cannot fail
	paths   []path
	closers []func()
	added   []*served // prepared, and not in the routes yet
	routes  map[schema.GroupVersionResource]http.Handler
}

type path struct {
	at      string
	handler http.Handler
}

func newInstallation(s *Server) *installation {
	i := &installation{s: s, routes: map[schema.GroupVersionResource]http.Handler{}}
	i.life, i.end = context.WithCancel(s.life)
	return i
}

// do does step now, or when the extension is installed.
func (i *installation) do(step func()) {
	i.mu.Lock()
	waits := !i.done
	if waits {
		i.steps = append(i.steps, step)
	}
	i.mu.Unlock()
	if !waits {
		step()
	}
}

// handle serves a fixed path now, or when the extension is installed.
func (i *installation) handle(at string, h http.Handler) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.done {
		return i.s.fixed.handle(at, h)
	}
	if err := i.s.fixed.claim(at); err != nil {
		return err
	}
	i.paths = append(i.paths, path{at, h})
	return nil
}

// begin runs work in the background.
func (i *installation) begin(work func(ctx context.Context)) {
	i.work.Add(1)
	i.s.background.Go(func() {
		defer i.work.Done()
		work(i.life)
	})
}

// onClose has f called when the server ends, or when Install fails.
func (i *installation) onClose(f func()) {
	i.mu.Lock()
	waits := !i.done
	if waits {
		i.closers = append(i.closers, f)
	}
	i.mu.Unlock()
	if !waits {
		i.s.onClose(f)
	}
}

// lock is taken before the server's mu. A nil installation has no lock.
func (i *installation) lock() {
	if i != nil {
		i.mu.Lock()
	}
}

func (i *installation) unlock() {
	if i != nil {
		i.mu.Unlock()
	}
}

// prepares reports whether an exchange that takes gone away is published later: not if requests see some of that. The caller
// holds the locks of i and of the server.
func (i *installation) prepares(gone []*served) bool {
	return i != nil && !i.done && !slices.ContainsFunc(gone, func(r *served) bool { return !r.pending })
}

// prepare takes what an exchange has made, for publish. The caller holds the locks of i and of the server.
func (i *installation) prepare(gone, added []*served, routes map[schema.GroupVersionResource]http.Handler) {
	for _, r := range added {
		r.pending = true
	}
	i.added = append(slices.DeleteFunc(i.added, func(r *served) bool { return slices.Contains(gone, r) }), added...)
	maps.Copy(i.routes, routes)
}

// publish has requests see everything: policy, then paths and routes, to which only requests come whose policy was taken with
// that.
func (i *installation) publish() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.done = true
	s := i.s
	for _, step := range i.steps {
		step()
	}
	since := s.policy.installed.Add(1)
	for _, p := range i.paths {
		s.fixed.fill(p.at, s.decidedSince(since, p.handler, http.HandlerFunc(s.fixed.notFound)))
	}
	for _, f := range i.closers {
		s.onClose(f)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(i.routes) == 0 {
		return nil
	}
	if s.ended {
		return errors.New("server: the server has ended")
	}
	for gvr, h := range i.routes {
		if h != nil {
			i.routes[gvr] = s.decidedSince(since, h, s.fixed)
		}
	}
	for _, r := range i.added {
		r.pending = false
	}
	s.router.Set(i.routes)
	s.changed()
	return nil
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
	i.mu.Lock()
	i.done = true
	added, closers, paths := i.added, i.closers, i.paths
	i.mu.Unlock()
	s := i.s
	for _, p := range paths {
		s.fixed.fill(p.at, nil)
	}
	i.end()
	s.mu.Lock()
	gone := slices.DeleteFunc(slices.Clone(added), func(r *served) bool { return !slices.Contains(s.served, r) })
	s.served = slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return slices.Contains(gone, r) })
	s.readers.exchange(gone, nil, s.retired)
	s.forget(gone)
	s.mu.Unlock()
	done := make(chan struct{})
	s.background.Go(func() {
		defer close(done)
		i.work.Wait()
		for _, f := range slices.Backward(closers) {
			f()
		}
		closeCaches(gone)
	})
	timeout := time.NewTimer(abandonWait)
	defer timeout.Stop()
	select {
	case <-done:
	case <-timeout.C:
	}
}
