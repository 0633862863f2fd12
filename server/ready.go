package server

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/admission"
)

// readier is a member of the policy that tells whether it can decide.
type readier interface {
	Ready(ctx context.Context) error
}

// checkMember has /readyz ask those parts of a member of the policy that can tell whether they are ready. A member that
// replaces another replaces its check.
func (s *Server) checkMember(name string, parts ...any) {
	var asked []readier
	for _, p := range parts {
		if r, ok := p.(readier); ok {
			asked = append(asked, r)
		}
	}
	s.health.remove(name)
	if asked == nil {
		return
	}
	s.health.add(Check{Name: name, ReadyOnly: true, Check: func(ctx context.Context) error {
		for _, r := range asked {
			if err := r.Ready(ctx); err != nil {
				return err
			}
		}
		return nil
	}})
}

const (
	// readyWait is how long a request waits for a plug-in that is not ready, as in kube-apiserver.
	readyWait = 10 * time.Second
	readyPoll = 50 * time.Millisecond
)

var errNotReady = errors.New("not yet ready to handle request")

// untilReady returns a plug-in whose requests wait until it is ready for the first time.
func untilReady(p admission.Plugin) admission.Plugin {
	if r, ok := p.Mutator.(readier); ok {
		next, w := p.Mutator, &waiter{of: r}
		p.Mutator = admission.MutatorFunc(func(ctx context.Context, req *admission.Request) error {
			if err := w.wait(ctx); err != nil {
				return err
			}
			return next.Mutate(ctx, req)
		})
	}
	if r, ok := p.Validator.(readier); ok {
		next, w := p.Validator, &waiter{of: r}
		p.Validator = admission.ValidatorFunc(func(ctx context.Context, req *admission.Request) error {
			if err := w.wait(ctx); err != nil {
				return err
			}
			return next.Validate(ctx, req)
		})
	}
	return p
}

// waiter waits for one member of the policy.
type waiter struct {
	of   readier
	over atomic.Bool // it has been ready
}

// wait returns nil when the member is or has been ready, and errNotReady when it is not in time.
func (w *waiter) wait(ctx context.Context) error {
	if w.over.Load() {
		return nil
	}
	timeout, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if w.of.Ready(timeout) == nil {
			w.over.Store(true)
			return nil
		}
		select {
		case <-tick.C:
		case <-timeout.Done():
			if err := ctx.Err(); err != nil {
				return err
			}
			return errNotReady
		}
	}
}
