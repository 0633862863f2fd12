package serviceaccount

import corev1 "k8s.io/api/core/v1"

// Hooks are functions that an Authenticator calls; any of them may be nil. They must not block, and may be called concurrently. They are
// not called for a token that package authn remembers.
type Hooks struct {
	// Verified is called with each thing that a token whose signature is right was found to be.
	Verified func(Use)
	// Used is called with the Secret of a legacy token when a request is authenticated by it, also if the token has been invalidated.
	// It must not change the Secret.
	Used func(secret *corev1.Secret)
}

func (h Hooks) withDefaults() Hooks {
	if h.Verified == nil {
		h.Verified = func(Use) {}
	}
	if h.Used == nil {
		h.Used = func(*corev1.Secret) {}
	}
	return h
}

// Use is what a token was found to be. The zero Use is none.
type Use int

// The uses of tokens. A legacy token is Legacy before anything but its signature is verified, and then one of the next three if it is
// looked up and is that of its Secret and account.
const (
	Legacy            Use = iota + 1
	LegacyManual          // somebody made the Secret
	LegacyGenerated       // the account lists the Secret, as if Kubernetes had made it
	LegacyInvalidated     // the Secret has the label InvalidSinceLabel; the token is refused

	// Of a bound token that is valid for longer than it was requested: whether its client should have read another one.
	Fresh
	Stale
)
