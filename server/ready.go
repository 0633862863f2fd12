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

// readier is a member of the policy that can report whether it can decide.
type readier interface {
	Ready(ctx context.Context) error
}

// Prefixes of the names of the health checks of members.
const (
	authenticatorCheck = "authenticator-"
	authorizerCheck    = "authorizer-"
	admissionCheck     = "admission-"
	auditCheck         = "audit-"
)

// checkOptions adds health checks for the members that are in the options.
func (s *Server) checkOptions() {
	o := s.opts.Policy
	s.checkMember(authenticatorCheck+OptionsAuthorizer, o.Authenticator)
	s.checkMember(authorizerCheck+OptionsAuthorizer, o.Authorizer)
	for _, b := range o.Audit {
		s.checkMember(auditCheck+b.Name, b.Sink)
		s.watchSink(b)
	}
	for i, p := range o.Admission {
		s.checkMember(admissionCheck+nameOption(i, p), p.Mutator, p.Validator)
	}
}

// nameOption returns the name of a plug-in of Policy.Admission.
func nameOption(i int, p admission.Plugin) string {
	return cmp.Or(p.Name, fmt.Sprintf("options-%d", i))
}

// checkMember replaces the health check of the name by one that calls those parts of a member that are a readier. If there are
// none, the check is removed.
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

// readiers returns those parts of a member that are a readier.
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

// untilReady returns a plug-in whose requests wait until the plug-in is ready for the first time.
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

// waiter waits until a plug-in is ready, for all its requests together: one request at a time calls the plug-in, and the others
// wait.
type waiter struct {
	of    []readier
	over  atomic.Bool   // the plug-in has been ready
	ready chan struct{} // closed when over is set
	turn  chan struct{} // holds one value while a request calls the plug-in
}

func newWaiter(of []readier) *waiter {
	return &waiter{of: of, ready: make(chan struct{}), turn: make(chan struct{}, 1)}
}

// wait returns nil when the plug-in is ready or has been, and errNotReady if it is not ready in time.
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

// poll calls the plug-in until it is ready, and returns true. It returns false when ctx ends. Only the request that has put a
// value into turn calls it.
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
