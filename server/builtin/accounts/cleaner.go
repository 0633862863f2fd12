package accounts

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authn/serviceaccount"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/internal/background"
	"github.com/keelson-dev/keelson/server/registry"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	defaultUnused = 365 * 24 * time.Hour // of Options.UnusedTokens
	cleanAfter    = 10 * time.Minute     // until the first pass of a cleaner: extensions that are installed later may serve pods
	cleanEvery    = 24 * time.Hour       // between two passes
)

// cleaner is the controller that marks unused legacy tokens invalid, and later deletes their Secrets. A pass reads from memory, and
// writes one Secret after another. If it cannot read, it begins again.
type cleaner struct {
	secrets *registry.Typed[*corev1.Secret]
	readers runtime.Readers
	unused  time.Duration
	after   time.Duration
	log     *zap.Logger
}

func newCleaner(h *server.Host, unused time.Duration, log *zap.Logger) (*cleaner, error) {
	secrets, err := typed[*corev1.Secret](h, "secrets", controllerUser("legacy-service-account-token-cleaner"))
	return &cleaner{secrets, h.Readers(), unused, cleanAfter, log}, err
}

// first implements controller. Secrets are cleaned in the background.
func (*cleaner) first(context.Context) error { return nil }

// run implements controller.
func (c *cleaner) run(ctx context.Context) {
	pauses := background.Doubling(retryLeast, retryMost)
	panics := background.NewPanics(c.log, "the work on unused tokens of service accounts panicked")
	for background.Pause(ctx, c.after); ctx.Err() == nil; {
		pause := cleanEvery
		if err := c.guarded(ctx, panics); err != nil {
			c.log.Debug("unused tokens of service accounts are looked for again", zap.Error(err))
			pause = pauses.Step()
		} else {
			pauses = background.Doubling(retryLeast, retryMost)
		}
		background.Pause(ctx, pause)
	}
}

func (c *cleaner) guarded(ctx context.Context, panics *background.Panics) (err error) {
	defer panics.Caught(&err)
	return c.pass(ctx, time.Now())
}

// pass looks at all Secrets once. A Secret that cannot be written does not keep the pass from the next one.
func (c *cleaner) pass(ctx context.Context, now time.Time) error {
	before := cutoff{now.Add(-c.unused)}
	tracked, err := runtime.Read[*corev1.ConfigMap](c.readers).Get(ctx, metav1.NamespaceSystem, trackingName, runtime.Freshness{})
	if err != nil {
		return err
	}
	if since, err := dateIn(tracked); err != nil || !before.isAfter(since) {
		return err // uses have not been noted for long enough
	}
	all, err := runtime.Read[*corev1.Secret](c.readers).List(ctx, runtime.Query{Fields: ofTokens()})
	if err != nil {
		return err
	}
	in := podSecrets{readers: c.readers, of: map[string]map[string]bool{}}
	for _, s := range all.Items {
		to, err := c.decide(ctx, s, in, before)
		if err != nil {
			return err
		}
		if err := c.do(ctx, s, to, before); err != nil && ctx.Err() == nil {
			c.log.Warn("the Secret of an unused token could not be cleaned up", zap.Stringer("secret", keyOf(s)), zap.Error(err))
		}
	}
	return nil
}

// decide returns what becomes of a Secret. Secrets that somebody made, or that a pod uses, are kept.
func (c *cleaner) decide(ctx context.Context, s *corev1.Secret, in podSecrets, before cutoff) (verdict, error) {
	to := judge(s, before)
	if to == keep {
		return keep, nil
	}
	account, err := runtime.Read[*corev1.ServiceAccount](c.readers).Get(ctx, s.Namespace, s.Annotations[corev1.ServiceAccountNameKey], runtime.Freshness{})
	if err != nil || !isOf(s, account) {
		return keep, gone(err)
	}
	if has, err := in.has(ctx, s); err != nil || has {
		return keep, err
	}
	return to, nil
}

// do marks a Secret invalid or deletes it, unless it has changed meanwhile.
func (c *cleaner) do(ctx context.Context, s *corev1.Secret, to verdict, before cutoff) (err error) {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	switch to {
	case remove:
		_, _, err = c.secrets.Delete(ctx, s.Namespace, s.Name, &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}})
	case invalidate:
		_, err = c.secrets.Change(ctx, s.Namespace, s.Name, func(now *corev1.Secret) error {
			if now.UID == s.UID && judge(now, before) == invalidate { // it may have been used
				if now.Labels == nil {
					now.Labels = map[string]string{}
				}
				now.Labels[serviceaccount.InvalidSinceLabel] = today()
			}
			return nil
		})
	}
	return gone(err)
}

// gone returns nil for the error of an object that does not exist.
func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isOf reports whether a Secret and an account name each other.
func isOf(s *corev1.Secret, account *corev1.ServiceAccount) bool {
	uid := s.Annotations[corev1.ServiceAccountUIDKey]
	return (uid == "" || uid == string(account.UID)) && serviceaccount.Generated(account, s.Name)
}

// cutoff is the time before which a token was used last that is unused.
type cutoff struct{ time.Time }

// isAfter reports whether a whole date was before the cutoff.
func (c cutoff) isAfter(date time.Time) bool { return date.Before(c.UTC().Truncate(24 * time.Hour)) }

// verdict is what becomes of a Secret. The zero verdict is keep.
type verdict int

const (
	keep verdict = iota
	invalidate
	remove
)

// judge judges the Secret of a token by its dates. The token is unused if the Secret was made and the token was used last before
// the cutoff. A date that cannot be read is no use of the token, but may be one: such a Secret is kept.
func judge(s *corev1.Secret, before cutoff) verdict {
	if s.DeletionTimestamp != nil || !s.CreationTimestamp.Time.Before(before.Time) {
		return keep
	}
	if used, has := s.Labels[serviceaccount.LastUsedLabel]; has {
		if at, err := time.Parse(time.DateOnly, used); err != nil || !before.isAfter(at) {
			return keep
		}
	}
	switch since, err := time.Parse(time.DateOnly, s.Labels[serviceaccount.InvalidSinceLabel]); {
	case err != nil:
		return invalidate
	case before.isAfter(since):
		return remove
	}
	return keep
}
