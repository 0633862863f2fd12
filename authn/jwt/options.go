package jwt

import (
	"cmp"
	"context"
	"net"
	"time"

	"github.com/keelson-dev/keelson/authn/jwt/internal/provider"
)

// Options are the options of New. The zero Options is usable.
type Options struct {
	// ReservedIssuers are issuers that no entry may have: those of the service accounts of the server, whose tokens it verifies with
	// keys of its own.
	ReservedIssuers []string
	// Dial opens the connections to issuers; nil means a net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Limits bound what tokens and issuers cost.
	Limits Limits
	// Hooks tell what happens.
	Hooks Hooks
}

// Limits bound what tokens and issuers cost. Zero fields stand for the defaults in the comments.
type Limits struct {
	Token     int           // bytes of a token; 64 KiB. There is no opinion of a larger one
	Document  int64         // bytes of a discovery document, and of the keys of an issuer; 1 MiB
	Claims    int64         // bytes of an answer with distributed claims; 64 KiB
	Keys      int           // keys of an issuer; 100
	Modulus   int           // bits of an RSA key; 8192. A larger one is skipped: its verification takes time in proportion to the square of the number
	Waiting   int           // tokens of an issuer that wait for keys, or for distributed claims; 1000 each
	Sources   int           // issuers, besides that of the token, whose distributed claims an entry accepts at a time; 8
	Timeout   time.Duration // of a request to an issuer, with the answer; 30 s
	Retry     time.Duration // between two attempts to get the keys of an issuer of which none are known; 10 s
	Pause     time.Duration // between two fetches of keys because of tokens with unknown ones; 1 s
	Every     time.Duration // after which keys are fetched without cause; 1 h
	Redirects int           // in one request to an issuer; 10, less than 0 none
	Conns     int           // connections to a host of an entry at a time; 16. Further requests wait for one
}

func (l Limits) withDefaults() Limits {
	l.Claims, l.Waiting, l.Sources = cmp.Or(l.Claims, 64<<10), cmp.Or(l.Waiting, 1000), cmp.Or(l.Sources, 8)
	return l
}

func (l Limits) provider() provider.Limits {
	return provider.Limits{
		Timeout: l.Timeout, Retry: l.Retry, Pause: l.Pause, Every: l.Every, Document: l.Document, Keys: l.Keys, Modulus: l.Modulus, Waiting: l.Waiting, Redirects: l.Redirects,
		Conns: l.Conns,
	}
}

// Hooks are functions that an Authenticator calls; any of them may be nil. They must return quickly, and may be called concurrently. No
// argument has a secret.
type Hooks struct {
	// Authenticated is called for each token of an issuer with what became of it, and how long that took.
	Authenticated func(issuer string, err error, took time.Duration)
	// Fetched is called after each attempt to get the keys of an issuer, with a hash of the keys, or with the error.
	Fetched func(issuer, keys string, err error)
}

func (h Hooks) withDefaults() Hooks {
	if h.Authenticated == nil {
		h.Authenticated = func(string, error, time.Duration) {}
	}
	if h.Fetched == nil {
		h.Fetched = func(string, string, error) {}
	}
	return h
}
