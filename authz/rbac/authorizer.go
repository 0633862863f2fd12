package rbac

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Authorizer decides by the stored roles and bindings as they are at each request: what was acknowledged before the request
// counts. While they cannot be read it has no opinion. Make one with New. All methods may be called concurrently.
type Authorizer struct {
	opts  Options
	kinds [4]kind

	now    atomic.Pointer[state]   // what was read last; never nil
	failed atomic.Pointer[failure] // of the last reading; nil: it did not fail
	turn   chan struct{}           // has an element while somebody reads: guards writes of now and failed

	mu   sync.Mutex // guards all below, and what readings say it does
	next *reading   // the one that requests join; nil: nobody waits for one
}

// state is what a reading brought.
type state struct {
	policy  *Policy
	changed [4]runtime.LastChange // Changed of each kind before the reading: the state is current as long as they are that
	since   [4]int64              // where the next reading of each kind begins
}

// failure is a reading that failed.
type failure struct {
	at     time.Time
	err    error
	policy *Policy // has no opinion
}

// reading is shared by the requests that came before it began: one of them reads, and the others wait.
type reading struct {
	done    chan struct{} // closed when policy is set
	policy  *Policy
	waiting int                // how many requests it is for; guarded by Authorizer.mu
	cancel  context.CancelFunc // nil: it has not begun; guarded by Authorizer.mu
}

// Options refines New. The zero Options is fine.
type Options struct {
	// RetryAfter is how long after a failed reading of the objects nobody reads again; 0 is a second. It bounds how many
	// requests wait for a storage that does not answer.
	RetryAfter time.Duration
	// MaxMissing bounds how many roles that do not exist the reason of one decision names; 0 is 100.
	MaxMissing int
	Hooks      Hooks
}

// Hooks are called when something happens; nil functions are not called. They must return soon.
type Hooks struct {
	// Failed is called when the objects have changed and cannot be read, or not all at one revision: until the next reading
	// the Authorizer has no opinion.
	Failed func(err error)
	// Unreadable is called when a reading has left out objects whose stored bytes cannot be decoded: they grant nothing
	// until they are repaired. The error names some of them, of each kind at most ten. An object is reported when it
	// becomes unreadable, and when all objects are read anew.
	Unreadable func(err error)
}

const (
	defaultRetryAfter = time.Second
	defaultMaxMissing = 100
	// maxReadings is how often one reading begins anew because the state that it asked for is not retained any more, or
	// because the store was set back to an older state.
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
	if o.Hooks.Unreadable == nil {
		o.Hooks.Unreadable = func(error) {}
	}
	a := &Authorizer{opts: o, kinds: kindsOf(from), turn: make(chan struct{}, 1)}
	a.now.Store(&state{policy: &Policy{}})
	return a, nil
}

// Pin implements authz.Pinner: it returns the *Policy of now. When something has changed, one of the requests that find it so
// reads the changes, and the others wait for it, each no longer than its ctx. The request that reads goes on as long as
// another one waits. When ctx ends before, or the changes cannot be read, the Policy has no opinion. Without a change Pin
// allocates nothing.
func (a *Authorizer) Pin(ctx context.Context) authz.Authorizer { return a.policy(ctx) }

func (a *Authorizer) policy(ctx context.Context) *Policy {
	if now := a.now.Load(); a.isCurrent(now) {
		return now.policy
	}
	return a.refresh(ctx)
}

// isCurrent reports whether nothing has changed since s was read. What is not loaded may have changed.
func (a *Authorizer) isCurrent(s *state) bool {
	for i := range a.kinds {
		if changed := a.kinds[i].objects.Changed(); changed.Revision == 0 || changed != s.changed[i] {
			return false
		}
	}
	return true
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
	policy := a.policy(ctx)
	if failed := a.failed.Load(); failed != nil && failed.policy == policy {
		return failed.err
	}
	return policy.unknown()
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

// refresh returns the Policy of a reading that begins after the call, which it does itself when its turn comes first.
func (a *Authorizer) refresh(ctx context.Context) *Policy {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	r := a.join()
	select {
	case <-r.done:
		return r.policy
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		a.leave(r)
		return ended(ctx)
	}
	select {
	case <-r.done: // by the one whose turn it was before
		return r.policy
	default:
	}
	shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	a.begin(r, cancel)
	stop := context.AfterFunc(ctx, func() { a.leave(r) })
	defer stop()
	r.policy = a.update(shared)
	close(r.done)
	return r.policy
}

// join returns the reading that begins next.
func (a *Authorizer) join() *reading {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = &reading{done: make(chan struct{})}
	}
	a.next.waiting++
	return a.next
}

// begin begins a reading: who comes from now on joins another one. The caller has the turn.
func (a *Authorizer) begin(r *reading, cancel context.CancelFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next, r.cancel = nil, cancel
}

// leave says that a request has ended for which a reading is. The last one breaks it off.
func (a *Authorizer) leave(r *reading) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.waiting--; r.waiting == 0 && r.cancel != nil {
		r.cancel()
	}
}

// ended is the Policy of a request whose ctx has ended.
func ended(ctx context.Context) *Policy {
	return &Policy{problem: fmt.Errorf("RBAC: the request ended before roles and bindings were read: %w", context.Cause(ctx))}
}

// errUnread is what those may know whose requests are not decided because a reading has failed.
var errUnread = errors.New("RBAC: roles and bindings cannot be read")

// update reads what has changed, and returns the Policy of now. The caller has the turn.
func (a *Authorizer) update(ctx context.Context) *Policy {
	now := a.now.Load()
	if a.isCurrent(now) {
		return now.policy
	}
	if failed := a.failed.Load(); failed != nil && time.Since(failed.at) < a.opts.RetryAfter {
		return failed.policy
	}
	next, unreadable, err := a.read(ctx, now)
	switch {
	case err == nil:
		a.now.Store(next)
		a.failed.Store(nil)
		if unreadable != nil {
			a.opts.Hooks.Unreadable(unreadable)
		}
		return next.policy
	case ctx.Err() != nil: // nobody waits any more, and the next request reads
		return ended(ctx)
	case !now.policy.loaded && errors.Is(err, runtime.ErrNotReady):
		return now.policy // a server that starts has not failed
	}
	failed := &failure{time.Now(), fmt.Errorf("roles and bindings: %w", err), &Policy{problem: errUnread}}
	a.failed.Store(failed)
	a.opts.Hooks.Failed(failed.err)
	return failed.policy
}

// read brings s up to date: all kinds at one revision. unreadable names what is left out.
func (a *Authorizer) read(ctx context.Context, s *state) (next *state, unreadable, err error) {
	from, revision := *s, a.newest
	for range maxReadings {
		var changed [4]runtime.LastChange
		for i := range a.kinds {
			changed[i] = a.kinds[i].objects.Changed()
		}
		var at int64
		if at, err = revision(ctx, changed); err == nil {
			next, unreadable, err = a.readAt(ctx, &from, at)
		}
		switch {
		case err == nil:
			next.changed = changed
			return next, unreadable, nil
		case apierrors.IsResourceExpired(err):
			from = state{policy: &Policy{}} // all objects, at another revision
		case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
			revision = a.stored // what is known of a kind is from before the store was set back
		default:
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("the state at one revision could not be read %d times, the last time because of: %w", maxReadings, err)
}

// newest returns a revision that is no older than any change that is known. A kind that is not loaded is asked.
func (a *Authorizer) newest(ctx context.Context, changed [4]runtime.LastChange) (revision int64, err error) {
	for i := range a.kinds {
		if changed[i].Revision > 0 {
			revision = max(revision, changed[i].Revision)
			continue
		}
		got, err := a.kinds[i].revision(ctx, runtime.Freshness{})
		if err != nil {
			return 0, err
		}
		revision = max(revision, got)
	}
	return revision, nil
}

// stored returns the revision of the store, and has every kind find out whether the store was set back.
func (a *Authorizer) stored(ctx context.Context, _ [4]runtime.LastChange) (revision int64, err error) {
	for i := range a.kinds {
		got, err := a.kinds[i].revision(ctx, runtime.Live())
		if err != nil {
			return 0, err
		}
		revision = max(revision, got)
	}
	return revision, nil
}

// readAt brings s to the state at a revision.
func (a *Authorizer) readAt(ctx context.Context, s *state, revision int64) (next *state, unreadable, err error) {
	next = &state{policy: s.policy, since: s.since}
	var changes [4]func(*edit)
	var left []error
	different := !s.policy.loaded
	for i := range a.kinds {
		got, err := a.kinds[i].changes(ctx, s.since[i], runtime.Exactly(revision))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", a.kinds[i].name, err)
		}
		if got.unreadable != nil {
			left = append(left, fmt.Errorf("%s: %w", a.kinds[i].name, got.unreadable))
		}
		changes[i], next.since[i] = got.apply, got.revision
		different = different || got.apply != nil
	}
	unreadable = errors.Join(left...)
	if !different {
		return next, unreadable, nil
	}
	e := s.policy.edit()
	for _, apply := range changes {
		if apply != nil {
			apply(e)
		}
	}
	next.policy = e.done(revision, a.opts.MaxMissing)
	return next, unreadable, nil
}
