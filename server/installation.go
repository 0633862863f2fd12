package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/internal/apiset"
	"go.uber.org/zap"
)

// installation has what an extension adds to a server. It is collected while Install runs, and then published in one step or
// abandoned. Requests see at once what is added after it is published.
type installation struct {
	s    *Server
	life context.Context // context of the work given to Go; ends with the server, or when Install fails
	end  context.CancelFunc
	work sync.WaitGroup // the work given to Go

	change *apiset.Change // changes of the served groups and kinds

	mu      sync.Mutex // guards all below; locked before the mutexes of the set and of the server
	phase   phase
	steps   []func(m *members) // changes of the policy, and all others that cannot fail
	paths   []path
	hooks   []*hooking
	closers []func()
}

// phase is the state of an installation.
type phase int

const (
	phaseCollecting phase = iota // no request sees anything
	phasePublished               // requests see everything
	phaseAbandoned               // Install has failed, and nothing is left
)

type path struct {
	at      string
	handler http.Handler
}

func newInstallation(s *Server) *installation {
	i := &installation{s: s, change: s.set.Begin()}
	i.life, i.end = context.WithCancel(s.life)
	return i
}

// do calls step now if the extension is installed, and otherwise when it is. step must not wait, nor lock the server or the
// installation.
func (i *installation) do(step func(m *members)) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.phase {
	case phaseCollecting:
		i.steps = append(i.steps, step)
	case phasePublished:
		i.s.policy.change(false, step)
	case phaseAbandoned:
		return apiset.ErrAbandoned
	}
	return nil
}

// handle serves a fixed path now if the extension is installed, and otherwise when it is.
func (i *installation) handle(at string, h http.Handler) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.phase {
	case phasePublished:
		return i.s.fixed.handle(at, h)
	case phaseAbandoned:
		return apiset.ErrAbandoned
	}
	if err := i.s.fixed.claim(at); err != nil {
		return err
	}
	i.paths = append(i.paths, path{at, h})
	return nil
}

// start adds hooks, which begin now if the extension is installed, and otherwise when it is.
func (i *installation) start(all []Hook) error {
	i.mu.Lock()
	phase := i.phase
	if phase == phaseAbandoned {
		i.mu.Unlock()
		return apiset.ErrAbandoned
	}
	added, err := i.s.hooks.add(all)
	if phase == phaseCollecting {
		i.hooks = append(i.hooks, added...)
	}
	i.mu.Unlock()
	if err == nil && phase == phasePublished {
		i.run(added)
	}
	return err
}

// run begins hooks in the background, each after those that it waits for.
func (i *installation) run(all []*hooking) {
	for _, one := range all {
		i.s.health.add(one.check())
	}
	for _, one := range all {
		i.begin(func(ctx context.Context) {
			err := i.s.hooks.wait(ctx, one.After)
			if err == nil {
				err = guarded(ctx, i.s.panics, one.Run)
			}
			switch {
			case err == nil:
				close(one.done)
			case ctx.Err() == nil:
				i.s.fail(fmt.Errorf("server: hook %q: %w", one.Name, err))
			}
		})
	}
}

// begin runs work in the background. If the server has ended or Install has failed, work is called before begin returns, with a
// context that has ended.
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

// fail ends a server that Run or Serve serves, with an error. Only the first error counts.
func (s *Server) fail(err error) {
	s.opts.Observe.Logger.Error("the server ends", zap.Error(err))
	select {
	case s.failure <- err:
	default:
	}
}

// start runs work in the background. It returns false if the server has ended, and does not run work then.
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

// onClose has f called when the server ends, or now if the server has ended.
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

// publish lets requests see everything: first the policy, then the paths and routes. The paths and routes serve only requests
// whose policy includes this installation. If publish returns an error, nothing has changed.
func (i *installation) publish() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.s
	err := s.set.Publish(i.change, func() (installed int64) {
		i.phase = phasePublished
		installed = s.policy.change(true, func(m *members) {
			for _, step := range i.steps {
				step(m)
			}
		})
		for _, p := range i.paths {
			s.fixed.fill(p.at, apiset.DecidedSince(installed, p.handler, http.HandlerFunc(s.fixed.notFound)))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closers = append(s.closers, i.closers...)
		return installed
	})
	if err == nil {
		i.steps, i.paths, i.closers = nil, nil, nil
	}
	return err
}

// abandonWait is how long a failed Install waits for the work that the extension has started.
const abandonWait = 3 * time.Second

// abandon removes what was prepared, and ends the work that was started. If the work does not return in time, a goroutine waits
// for it and then calls the closers.
func (i *installation) abandon() {
	s := i.s
	i.mu.Lock()
	i.phase = phaseAbandoned
	closers := i.closers
	s.hooks.remove(i.hooks)
	for _, p := range i.paths {
		s.fixed.fill(p.at, nil)
	}
	release := s.set.Abandon(i.change)
	i.mu.Unlock()
	i.end()
	done := make(chan struct{})
	closeAll := func() {
		defer close(done)
		i.work.Wait()
		for _, f := range slices.Backward(closers) {
			f()
		}
		release()
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
