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

// Authorizer decides by the stored roles and bindings. Each request is decided by their state at the time of the request, which
// includes all changes that were acknowledged before. While the objects cannot be read, the Authorizer has no opinion. Use New to
// make one. All methods may be called concurrently.
type Authorizer struct {
	opts  Options
	kinds [4]kind

	now    atomic.Pointer[state]   // result of the last successful reading; never nil
	failed atomic.Pointer[failure] // of the last reading; nil if it did not fail
	turn   chan struct{}           // has an element while a reading runs: guards writes of now and failed

	mu   sync.Mutex // guards the field below, and the fields of readings that name it
	next *reading   // the reading that new requests join; nil if no request waits for one
}

// state is the result of a reading.
type state struct {
	policy  *Policy
	changed [4]runtime.LastChange // Changed of each kind before the reading: the state is current while they are the same
	since   [4]int64              // revision after which the next reading of each kind begins
}

// failure is a failed reading.
type failure struct {
	at     time.Time
	err    error
	policy *Policy // has no opinion
}

// reading is shared by all requests that joined it before it began: one of them reads, and the others wait.
type reading struct {
	done    chan struct{} // closed after policy is set
	policy  *Policy
	waiting int                // number of requests that wait for it; guarded by Authorizer.mu
	cancel  context.CancelFunc // nil until the reading begins; guarded by Authorizer.mu
}

// Options are the options of New. The zero Options has the defaults.
type Options struct {
	// RetryAfter is the time after a failed reading during which no request reads again; 0 means one second. It bounds how many
	// requests wait for a storage that does not respond.
	RetryAfter time.Duration
	// MaxMissing is the maximum number of missing roles that the reason of one decision names; 0 means 100.
	MaxMissing int
	// Hooks are called when something fails.
	Hooks Hooks
}

// Hooks are functions that are called when a reading fails or is incomplete. Nil functions are not called. The functions must
// return soon.
type Hooks struct {
	// Failed is called when the objects have changed and cannot be read, or cannot all be read at one revision. The Authorizer
	// has no opinion until the next successful reading.
	Failed func(err error)
	// Unreadable is called when a reading has left out objects whose stored bytes cannot be decoded. Such objects grant nothing
	// until they are repaired. The error names at most ten of them for each kind. An object is reported when it becomes
	// unreadable, and when all objects are read again.
	Unreadable func(err error)
}

const (
	defaultRetryAfter = time.Second
	defaultMaxMissing = 100
	// maxReadings is the maximum number of attempts of one reading. An attempt fails if the storage no longer retains the
	// requested state, or if the store was reset to an older state.
	maxReadings = 4
)

// New returns an authorizer that follows the roles and bindings of from, in rbac.authorization.k8s.io/v1. The kinds may be served
// later: the authorizer has no opinion until all four kinds are served and loaded.
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

// Pin implements authz.Pinner. It returns the current *Policy. If something has changed, one of the requests that need the change
// reads it, and the others wait, each until its ctx ends. The request that reads continues while another request waits, even if
// its own ctx has ended. If ctx ends first, or if the changes cannot be read, the Policy has no opinion. Without a change Pin
// allocates nothing.
func (a *Authorizer) Pin(ctx context.Context) authz.Authorizer { return a.policy(ctx) }

// Policy returns the current policy. It waits for changes like Pin.
func (a *Authorizer) Policy(ctx context.Context) *Policy { return a.policy(ctx) }

func (a *Authorizer) policy(ctx context.Context) *Policy {
	if now := a.now.Load(); a.isCurrent(now) {
		return now.policy
	}
	return a.refresh(ctx)
}

// isCurrent reports whether nothing has changed since s was read. A kind that is not loaded may have changed.
func (a *Authorizer) isCurrent(s *state) bool {
	for i := range a.kinds {
		if changed := a.kinds[i].objects.Changed(); changed.Revision == 0 || changed != s.changed[i] {
			return false
		}
	}
	return true
}

// Authorize implements authz.Authorizer. It never denies, and returns no error.
func (a *Authorizer) Authorize(ctx context.Context, asked authz.Attributes) (authz.Verdict, string, error) {
	return a.policy(ctx).Authorize(ctx, asked)
}

// RulesFor implements authz.RuleResolver like Policy.RulesFor.
func (a *Authorizer) RulesFor(ctx context.Context, user *authn.User, namespace string) (authz.Rules, error) {
	return a.policy(ctx).RulesFor(ctx, user, namespace)
}

// Ready returns nil if requests are decided by the current roles and bindings. Otherwise the error says which kind is missing, or
// why the changes cannot be read.
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

// refresh returns the Policy of a reading that begins after the call. If no other request performs the reading first, this
// request does.
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
	case <-r.done: // by the request that had the turn before
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

// join adds the caller to the reading that begins next.
func (a *Authorizer) join() *reading {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.next == nil {
		a.next = &reading{done: make(chan struct{})}
	}
	a.next.waiting++
	return a.next
}

// begin begins a reading. Requests that come later join the next one. The caller has the turn.
func (a *Authorizer) begin(r *reading, cancel context.CancelFunc) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next, r.cancel = nil, cancel
}

// leave removes a request that has ended from a reading. The last one cancels the reading.
func (a *Authorizer) leave(r *reading) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.waiting--; r.waiting == 0 && r.cancel != nil {
		r.cancel()
	}
}

// ended returns the Policy of a request whose ctx has ended.
func ended(ctx context.Context) *Policy {
	return &Policy{problem: fmt.Errorf("RBAC: the request ended before roles and bindings were read: %w", context.Cause(ctx))}
}

// errUnread is the reason that users see when a reading has failed.
var errUnread = errors.New("RBAC: roles and bindings cannot be read")

// update reads the changes, and returns the current Policy. The caller has the turn.
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
	case ctx.Err() != nil: // no request waits any more, and the next request reads
		return ended(ctx)
	case !now.policy.loaded && errors.Is(err, runtime.ErrNotReady):
		return now.policy // a starting server is not a failure
	}
	failed := &failure{time.Now(), fmt.Errorf("roles and bindings: %w", err), &Policy{problem: errUnread}}
	a.failed.Store(failed)
	a.opts.Hooks.Failed(failed.err)
	return failed.policy
}

// read returns a state with all kinds at one revision, by adding the changes to s. unreadable names the objects that are left
// out.
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
			from = state{policy: &Policy{}} // read all objects, at another revision
		case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
			revision = a.stored // a kind has a revision from before the store was reset
		default:
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("the state at one revision could not be read %d times, the last time because of: %w", maxReadings, err)
}

// newest returns a revision that is not older than any known change. It calls the reader of a kind that is not loaded.
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

// stored returns the revision of the store. It makes every kind find out whether the store was reset.
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

// readAt returns s with the changes up to a revision.
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
