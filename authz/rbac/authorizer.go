package rbac

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Authorizer decides by the stored roles and bindings as they are at each request: what was acknowledged before the request
// counts. Make one with New. All methods may be called concurrently.
type Authorizer struct {
	opts    Options
	kinds   [4]kind
	changed [4]interface{ Changed() int64 } // of kinds
	started time.Time

	turn   chan struct{}         // has an element while somebody reads: guards writes of now, failed and resume
	now    atomic.Pointer[state] // never nil
	failed atomic.Pointer[error] // why the last reading failed; nil: it did not
	resume atomic.Int64          // until this time since started nobody reads again
}

// state is what a reading brought.
type state struct {
	policy   *Policy
	revision int64    // at which all kinds were read; later than that of the policy if nothing has changed in between
	since    [4]int64 // where the next reading of each kind begins
}

// Options refines New. The zero Options is fine.
type Options struct {
	// RetryAfter is how long requests are decided by what is known, after a reading of the objects has failed, before another
	// request tries again; 0 is a second. It bounds how many requests wait for a storage that does not answer.
	RetryAfter time.Duration
	// MaxMissing bounds how many roles that do not exist the reason of one decision names; 0 is 100.
	MaxMissing int
	Hooks      Hooks
}

// Hooks are called when something happens; nil functions are not called. They must return soon.
type Hooks struct {
	// Failed is called when the objects have changed and cannot be read, or not all at one revision: until the next reading
	// requests are decided by the Policy as it was.
	Failed func(err error)
}

const (
	defaultRetryAfter = time.Second
	defaultMaxMissing = 100
	// maxReadings is how often one request reads anew because the state that it asked for is not retained any more.
	maxReadings = 4
)

// New returns the authorizer that follows the roles and bindings of from, in rbac.authorization.k8s.io/v1. They may be served
// later: until all four kinds are, and are loaded, the authorizer has no opinion.
func New(from runtime.Readers, o Options) (*Authorizer, error) {
	if from == nil {
		return nil, errors.New("rbac: there is nothing to read roles and bindings from")
	}
	if o.RetryAfter < 0 || o.MaxMissing < 0 {
		return nil, fmt.Errorf("rbac: Options.RetryAfter is %s and MaxMissing is %d; they must not be negative; 0 is the default", o.RetryAfter, o.MaxMissing)
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = defaultRetryAfter
	}
	if o.MaxMissing == 0 {
		o.MaxMissing = defaultMaxMissing
	}
	if o.Hooks.Failed == nil {
		o.Hooks.Failed = func(error) {}
	}
	a := &Authorizer{opts: o, kinds: kindsOf(from), started: time.Now(), turn: make(chan struct{}, 1)}
	for i, k := range a.kinds {
		a.changed[i] = k.objects
	}
	a.now.Store(&state{policy: &Policy{}})
	return a, nil
}

// Pin implements authz.Pinner: it returns the *Policy of now. When something has changed, one of the requests that find it so
// reads the changes, and the others wait for it, each no longer than its ctx; whose ctx ends gets the Policy before. Without
// a change Pin allocates nothing.
func (a *Authorizer) Pin(ctx context.Context) authz.Authorizer { return a.policy(ctx) }

func (a *Authorizer) policy(ctx context.Context) *Policy {
	if now := a.now.Load(); a.isCurrent(now) {
		return now.policy
	}
	a.refresh(ctx)
	return a.now.Load().policy
}

// isCurrent reports whether no change is known that came after s.
func (a *Authorizer) isCurrent(s *state) bool {
	return s.policy.loaded && runtime.Newest(a.changed[:]...) <= s.revision
}

// Authorize implements authz.Authorizer: it never denies, and returns no error.
func (a *Authorizer) Authorize(ctx context.Context, asked authz.Attributes) (authz.Verdict, string, error) {
	return a.policy(ctx).Authorize(ctx, asked)
}

// RulesFor implements authz.RuleResolver, as that of a Policy.
func (a *Authorizer) RulesFor(ctx context.Context, user *authn.User, namespace string) (authz.Rules, error) {
	return a.policy(ctx).RulesFor(ctx, user, namespace)
}

// Ready returns nil when requests are decided by the roles and bindings as they are, and otherwise says which kind is missing,
// or why its changes cannot be read.
func (a *Authorizer) Ready(ctx context.Context) error {
	if err := a.kindsReady(ctx); err != nil {
		return err
	}
	a.policy(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if failed := a.failed.Load(); failed != nil {
		return *failed
	}
	if !a.now.Load().policy.loaded {
		return errNotLoaded
	}
	return nil
}

func (a *Authorizer) kindsReady(ctx context.Context) error {
	var errs []error
	for i := range a.kinds {
		if err := a.kinds[i].objects.Ready(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", a.kinds[i].name, err))
		}
	}
	return errors.Join(errs...)
}

// refresh reads what has changed, unless somebody else has when its turn comes.
func (a *Authorizer) refresh(ctx context.Context) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return
	}
	now := a.now.Load()
	if a.isCurrent(now) || int64(time.Since(a.started)) < a.resume.Load() || ctx.Err() != nil {
		return
	}
	if !now.policy.loaded && (runtime.Newest(a.changed[:]...) == 0 || a.kindsReady(ctx) != nil) {
		return // a server that starts: there is no failure yet, and nothing to wait for
	}
	next, err := a.read(ctx, now)
	switch {
	case err == nil:
		a.now.Store(next)
		a.failed.Store(nil)
	case ctx.Err() == nil: // otherwise it is this request that has ended, and the next one reads
		err = fmt.Errorf("roles and bindings: %w", err)
		a.failed.Store(&err)
		a.resume.Store(int64(time.Since(a.started) + a.opts.RetryAfter))
		a.opts.Hooks.Failed(err)
	}
}

// read brings s up to date: all kinds at one revision.
func (a *Authorizer) read(ctx context.Context, s *state) (*state, error) {
	from := *s
	for range maxReadings {
		next, err := a.readAt(ctx, &from, runtime.Newest(a.changed[:]...))
		if !apierrors.IsResourceExpired(err) {
			return next, err
		}
		from = state{policy: &Policy{}} // all objects, at another revision
	}
	return nil, fmt.Errorf("they change faster than they can be read: the state at one revision was not retained %d times", maxReadings)
}

// readAt brings s to the state at a revision.
func (a *Authorizer) readAt(ctx context.Context, s *state, revision int64) (*state, error) {
	next := &state{policy: s.policy, revision: revision, since: s.since}
	var changes [4]func(*edit)
	different := !s.policy.loaded
	for i := range a.kinds {
		got, err := a.kinds[i].changes(ctx, s.since[i], runtime.Exactly(revision))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.kinds[i].name, err)
		}
		changes[i], next.since[i] = got.apply, got.revision
		different = different || got.apply != nil
	}
	if !different {
		return next, nil
	}
	e := s.policy.edit()
	for _, apply := range changes {
		if apply != nil {
			apply(e)
		}
	}
	next.policy = e.done(revision, a.opts.MaxMissing)
	return next, nil
}
