package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/keelson-dev/keelson/authn"
	corev1 "k8s.io/api/core/v1"
)

// Keys of the extra of a user, and of the annotation about a token that should have been replaced.
const (
	PodNameKey  = "authentication.kubernetes.io/pod-name"
	PodUIDKey   = "authentication.kubernetes.io/pod-uid"
	NodeNameKey = "authentication.kubernetes.io/node-name"
	NodeUIDKey  = "authentication.kubernetes.io/node-uid"

	StaleTokenKey = "authentication.k8s.io/stale-token"
)

// leeway is how much the clocks of two servers may differ.
const leeway = time.Minute

var (
	errExpired    = errors.New("service account token has expired")
	errNotYet     = errors.New("service account token is not valid yet")
	errFuture     = errors.New("service account token is issued in the future")
	errUnbound    = errors.New("the token has no claim kubernetes.io")
	errForWebhook = errors.New("tokens that are bound to webhook configurations are not supported")
)

// checkTimes returns an error if a token has ended or not begun.
func (c *claims) checkTimes(now time.Time) error {
	switch {
	case c.NotBefore != nil && now.Add(leeway).Before(c.NotBefore.Time()):
		return errNotYet
	case c.Expires != nil && now.Add(-leeway).After(c.Expires.Time()):
		return errExpired
	case c.Issued != nil && now.Add(leeway).Before(c.Issued.Time()):
		return errFuture
	}
	return nil
}

// bound verifies a bound token, whose signature is right.
func (a *Authenticator) bound(ctx context.Context, c claims) (*authn.Response, error) {
	now := a.o.Now()
	if err := c.checkTimes(now); err != nil {
		return nil, err
	}
	b := c.Kubernetes
	switch {
	case b == nil:
		return nil, errUnbound
	case b.MutatingWebhook != nil || b.ValidatingWebhook != nil:
		return nil, errForWebhook
	}
	if _, err := a.account(ctx, b.Namespace, b.Account, now); err != nil {
		return nil, err
	}
	if err := a.checkBound(ctx, b, now); err != nil {
		return nil, err
	}
	resp := responseOf(b.Namespace, b.Account)
	resp.User.Extra = extraOf(c.ID, b)
	if b.WarnAfter != nil {
		a.staleness(resp, b.WarnAfter, now)
	}
	return resp, nil
}

// checkBound returns an error if the object that a token is bound to is gone. The Node of a token with a Pod is no condition.
func (a *Authenticator) checkBound(ctx context.Context, b *bound, now time.Time) error {
	if b.Secret != nil {
		if err := check[*corev1.Secret](ctx, a.objects, "secret", b.Namespace, *b.Secret, now); err != nil {
			return err
		}
	}
	switch {
	case b.Pod != nil:
		return check[*corev1.Pod](ctx, a.objects, "pod", b.Namespace, *b.Pod, now)
	case b.Node != nil:
		return check[*corev1.Node](ctx, a.objects, "node", "", *b.Node, now)
	}
	return nil
}

// extraOf returns the extra of the user of a token, or nil.
func extraOf(id string, b *bound) map[string][]string {
	extra := map[string][]string{}
	set := func(key, value string) {
		if value != "" {
			extra[key] = []string{value}
		}
	}
	if id != "" {
		set(authn.CredentialIDKey, CredentialID(id))
	}
	if b.Pod != nil {
		set(PodNameKey, b.Pod.Name)
		set(PodUIDKey, string(b.Pod.UID))
	}
	if b.Node != nil {
		set(NodeNameKey, b.Node.Name)
		set(NodeUIDKey, string(b.Node.UID))
	}
	if len(extra) == 0 {
		return nil
	}
	return extra
}

// CredentialID returns the id of a token with the claim jti, as it is in the extra of a user and in audit events.
func CredentialID(id string) string { return "JTI=" + id }

// staleness annotates the response of a token that should have been replaced, if it should.
func (a *Authenticator) staleness(resp *authn.Response, warnAfter *jwt.NumericDate, now time.Time) {
	late := now.Sub(warnAfter.Time())
	if late <= 0 {
		a.o.Hooks.Verified(Fresh)
		return
	}
	a.o.Hooks.Verified(Stale)
	resp.AuditAnnotations = map[string]string{StaleTokenKey: fmt.Sprintf("subject: %s, seconds after warning threshold: %.0f", resp.User.Name, late.Truncate(time.Second).Seconds())}
}
