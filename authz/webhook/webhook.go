package webhook

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/client"
	"github.com/keelson-dev/keelson/runtime/remember"
	"github.com/keelson-dev/keelson/runtime/review"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Authorizer authorizes requests by a webhook. Make one with New, and Close it. All methods may be called concurrently.
type Authorizer struct {
	o       Options
	hook    *review.Webhook
	answers *remember.Cache[answer]
}

var (
	_ authz.Authorizer   = (*Authorizer)(nil)
	_ authz.RuleResolver = (*Authorizer)(nil)
)

// New returns an authorizer for the webhook of cfg. The error names the wrong field of cfg or of the options. New connects to nothing.
func New(cfg client.Config, o Options) (*Authorizer, error) {
	o = o.withDefaults()
	switch {
	case o.Version != V1 && o.Version != V1beta1:
		return nil, fmt.Errorf("authorization webhook: Options.Version is %q: want %s or %s", o.Version, V1, V1beta1)
	case o.Entries < 0 || o.Bytes < 0 || o.Time < 0:
		return nil, errors.New("authorization webhook: Options.Entries, Bytes and Time must not be negative")
	}
	hook, err := review.New(cfg, review.Options{
		Name: "authorization webhook", Kind: reviewKind, APIVersion: reviewGroup + o.Version, Path: o.Path,
		Attempts: o.Attempts, Backoff: o.Backoff, Timeout: o.Timeout, Client: o.Client,
		Attempted: func(err error, took time.Duration) { o.Hooks.Attempted(o.Name, resultOf(err), took) },
	})
	if err != nil {
		return nil, err
	}
	return &Authorizer{o: o, hook: hook, answers: remember.New(remember.Options[answer]{
		Entries: o.Entries, Bytes: o.Bytes, Size: answer.size, Time: o.Time, Late: errLate,
		Keep: func(a answer) time.Duration {
			if a.allowed && !a.denied {
				return o.Authorized
			}
			return o.Unauthorized
		},
	})}, nil
}

// Close ends the calls in progress, and closes the connections. From then on Ready fails, and every request is denied with an error, whatever
// Options.Deny says: nobody knows what the webhook would have denied. A second call has no effect.
func (w *Authorizer) Close() { w.hook.Close() }

// Ready fails after Close. Until then it returns nil: it does not ask the webhook, whose failure would make the server fail, too.
func (w *Authorizer) Ready(ctx context.Context) error { return w.hook.Ready(ctx) }

var (
	errLate  = errors.New("the authorization webhook has not answered in time")
	errBoth  = errors.New("webhook subject access review returned both allow and deny response")
	errUsers = errors.New("webhook authorizer does not support user rule resolution")
	// errNoAnswer is the error that users see. It names no address, and has no text that the server at the address of the webhook sent.
	errNoAnswer = errors.New("the authorization webhook has given no usable answer; the log of the server says why")
)

// RulesFor implements authz.RuleResolver: a webhook cannot list what a user may do.
func (w *Authorizer) RulesFor(context.Context, *authn.User, string) (authz.Rules, error) {
	return authz.Rules{Incomplete: true}, errUsers
}

// Authorize implements authz.Authorizer.
func (w *Authorizer) Authorize(ctx context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	if err := w.hook.Ready(ctx); err != nil {
		return w.failed(err)
	}
	spec := specOf(a)
	if asked, err := w.matches(ctx, spec); err != nil {
		w.o.Hooks.Failed(w.o.Name, err)
		return w.failure(), "", err
	} else if !asked {
		return authz.NoOpinion, "", nil
	}
	got, err := w.answer(ctx, &a, spec)
	if err != nil {
		return w.failed(err)
	}
	switch {
	case got.allowed && got.denied:
		return authz.Deny, got.reason, errBoth
	case got.allowed:
		return authz.Allow, got.reason, nil
	case got.denied:
		return authz.Deny, got.reason, nil
	}
	return authz.NoOpinion, got.reason, nil
}

// failed is the result of a call that failed.
func (w *Authorizer) failed(err error) (authz.Verdict, string, error) {
	w.o.Hooks.Failed(w.o.Name, err)
	verdict := w.failure()
	if verdict != authz.Deny {
		w.o.Hooks.FailedOpen(w.o.Name, resultOf(err))
	}
	return verdict, "", errNoAnswer
}

// failure is the verdict of a failure. That of a call that Close has ended is a denial.
func (w *Authorizer) failure() authz.Verdict {
	if w.o.Deny || w.hook.Ready(context.Background()) != nil {
		return authz.Deny
	}
	return authz.NoOpinion
}

// matches reports whether the webhook is asked.
func (w *Authorizer) matches(ctx context.Context, s *Spec) (bool, error) {
	if w.o.Match == nil {
		return true, nil
	}
	begun := time.Now()
	asked, err := w.o.Match(ctx, s)
	w.o.Hooks.Matched(w.o.Name, asked, err, time.Since(begun))
	return asked, err
}

// answer returns the webhook's answer, which may be remembered.
func (w *Authorizer) answer(ctx context.Context, a *authz.Attributes, s *Spec) (answer, error) {
	key, err := encode(s, w.o.Version)
	if err != nil {
		return answer{}, fmt.Errorf("authorization webhook: %w", err)
	}
	ask := func(ctx context.Context) (answer, error) { return w.ask(ctx, key) }
	if size(a) >= MaxRemembered {
		ctx, cancel := context.WithTimeoutCause(ctx, w.o.Time, errLate)
		defer cancel()
		return ask(ctx)
	}
	return w.answers.Get(ctx, sha256.Sum256(key), ask)
}

// ask sends a review with a spec, which is JSON, to the webhook.
func (w *Authorizer) ask(ctx context.Context, spec []byte) (answer, error) {
	text, err := reviewOf(spec, w.o.Version)
	if err != nil {
		return answer{}, fmt.Errorf("authorization webhook: %w", err)
	}
	var r struct {
		Status status `json:"status"`
	}
	if err := w.hook.Ask(ctx, text, &r); err != nil {
		return answer{}, err
	}
	return answer{r.Status.Allowed, r.Status.Denied, authz.Shorten(r.Status.Reason)}, nil
}

// answer is what counts of an answer.
type answer struct {
	allowed, denied bool
	reason          string
}

// size estimates the memory that a remembered answer takes.
func (a answer) size() int { return 256 + len(a.reason) }

// size returns the size of the attributes of a request that decides whether the answer is remembered.
func size(a *authz.Attributes) int {
	return len(a.Verb) + len(a.APIGroup) + len(a.APIVersion) + len(a.Resource) + len(a.Subresource) + len(a.Namespace) + len(a.Name) + len(a.Path)
}

// resultOf returns the result of an attempt or a call.
func resultOf(err error) string {
	switch {
	case err == nil:
		return Success
	case apierrors.IsTimeout(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errLate):
		return Timeout
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Error
}
