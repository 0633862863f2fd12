package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/admission"
)

// readier is a member of the policy that tells whether it can decide.
type readier interface {
	Ready(ctx context.Context) error
}

// What the names of the health checks of members begin with.
const (
	authenticatorCheck = "authenticator-"
	authorizerCheck    = "authorizer-"
	admissionCheck     = "admission-"
)

// checkOptions has /readyz ask the members that the options name.
func (s *Server) checkOptions() {
	o := s.opts.Policy
	s.checkMember(authenticatorCheck+OptionsAuthorizer, o.Authenticator)
	s.checkMember(authorizerCheck+OptionsAuthorizer, o.Authorizer)
	for i, p := range o.Admission {
		s.checkMember(admissionCheck+nameOption(i, p), p.Mutator, p.Validator)
	}
}

// nameOption is the name of a plug-in of Policy.Admission.
func nameOption(i int, p admission.Plugin) string {
	return cmp.Or(p.Name, fmt.Sprintf("options-%d", i))
}

// checkMember has /readyz ask those parts of a member of the policy that can tell whether they are ready, instead of what it
// asked by that name before.
func (s *Server) checkMember(name string, parts ...any) {
	asked := readiers(parts...)
	if asked == nil {
		s.health.replace(name)
		return
	}
	s.health.replace(name, Check{Name: name, ReadyOnly: true, Check: func(ctx context.Context) error {
		return allReady(ctx, asked)
	}})
}

// readiers are those parts of a member that can tell whether they are ready.
func readiers(parts ...any) []readier {
	var out []readier
	for _, p := range parts {
		if r, ok := p.(readier); ok {
			out = append(out, r)
		}
	}
	return out
}

func allReady(ctx context.Context, asked []readier) error {
	for _, r := range asked {
		if err := r.Ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

const (
	// readyWait is how long a request waits for a plug-in that is not ready, as in kube-apiserver.
	readyWait = 10 * time.Second
	readyPoll = 50 * time.Millisecond
)

var errNotReady = errors.New("not yet ready to handle request")

// untilReady returns a plug-in whose requests wait until it is ready for the first time.
func untilReady(p admission.Plugin) admission.Plugin {
	asked := readiers(p.Mutator, p.Validator)
	if asked == nil {
		return p
	}
	w := newWaiter(asked)
	if next := p.Mutator; next != nil {
		p.Mutator = admission.MutatorFunc(func(ctx context.Context, req *admission.Request) error {
			if err := w.wait(ctx); err != nil {
				return err
			}
			return next.Mutate(ctx, req)
		})
	}
	if next := p.Validator; next != nil {
		p.Validator = admission.ValidatorFunc(func(ctx context.Context, req *admission.Request) error {
			if err := w.wait(ctx); err != nil {
				return err
			}
			return next.Validate(ctx, req)
		})
	}
	return p
}

// waiter waits for a plug-in, for all its requests together: one of them asks whether it is ready, and the others wait for that.
type waiter struct {
	of    []readier
	over  atomic.Bool   // it has been ready
	ready chan struct{} // closed then
	turn  chan struct{} // has what who asks has put there
}

func newWaiter(of []readier) *waiter {
	return &waiter{of: of, ready: make(chan struct{}), turn: make(chan struct{}, 1)}
}

// wait returns nil when the plug-in is or has been ready, and errNotReady when it is not in time.
func (w *waiter) wait(ctx context.Context) error {
	if w.over.Load() {
		return nil
	}
	timeout, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	select {
	case <-w.ready:
		return nil
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
		if w.poll(timeout) {
			return nil
		}
	case <-timeout.Done():
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errNotReady
}

// poll asks until the plug-in is ready, or ctx ends: then it returns false. Only the request whose turn it is calls it.
func (w *waiter) poll(ctx context.Context) bool {
	if w.over.Load() {
		return true
	}
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		if allReady(ctx, w.of) == nil {
			w.over.Store(true)
			close(w.ready)
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
