package jwt

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authn/internal/jose"
	"github.com/keelson-dev/keelson/authn/jwt/internal/provider"
)

// sources gets a claim from where a token says that it is.
type sources struct {
	claim  string
	issuer string // of the tokens
	*verifier
	slots chan struct{} // has an element for each request that is going on

	mu      sync.Mutex // guards the fields below
	known   map[string]*known
	closed  bool
	closing sync.WaitGroup // of the providers that were dropped
}

// known is the provider of an issuer of distributed claims.
type known struct {
	*provider.Provider
	used time.Time // the last time
}

// unused is the time after which the place of a provider that was not used is given to another issuer.
const unused = time.Hour

func newSources(claim, issuer string, v *verifier) *sources {
	return &sources{claim: claim, issuer: issuer, verifier: v, slots: make(chan struct{}, v.o.Limits.Waiting), known: map[string]*known{}}
}

func (s *sources) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock() // no provider is added anymore
	for _, k := range s.known {
		k.Close()
	}
	s.closing.Wait()
}

// add adds the claim if the token does not have it and says where it is.
func (s *sources) add(ctx context.Context, c *claims) error {
	if _, has := c.all[s.claim]; has {
		return nil
	}
	name, ok := c.Names[s.claim]
	if !ok {
		return nil
	}
	source := c.Sources[name]
	if source.Endpoint == "" {
		return nil // an aggregated claim, which is not used
	}
	value, err := s.get(ctx, source)
	if err != nil {
		return err
	}
	c.all[s.claim] = value
	return nil
}

var errSources = errors.New("too many distributed claims are fetched")

// get returns the claim of the token that is at a source.
func (s *sources) get(ctx context.Context, from source) (any, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		return nil, errSources
	}
	text, err := provider.Get(ctx, s.client, from.Endpoint, from.AccessToken, s.o.Limits.Claims)
	if err != nil {
		return nil, err
	}
	token, ok := jose.Read(string(text), s.o.Limits.Token)
	if !ok {
		return nil, fmt.Errorf("the answer of %.200q is no signed token", from.Endpoint)
	}
	by, err := s.providerOf(ctx, token.Issuer())
	if err != nil {
		return nil, err
	}
	claims, err := s.verify(ctx, token, by)
	if err != nil {
		return nil, fmt.Errorf("verify distributed claim token: %w", err)
	}
	value, has := claims.all[s.claim]
	if !has {
		return nil, fmt.Errorf("the token of %.200q has no claim %s", from.Endpoint, s.claim)
	}
	return value, nil
}

// providerOf returns the provider of the issuer of distributed claims. The first claims of an issuer wait for its keys.
func (s *sources) providerOf(ctx context.Context, url string) (*provider.Provider, error) {
	if url == s.issuer {
		return s.provider, nil
	}
	p, err := s.place(url)
	if err != nil {
		return nil, err
	}
	return p, p.Try(ctx)
}

// place returns the provider of an issuer. If the issuer has none, it gets a place, perhaps that of another one.
func (s *sources) place(url string) (*provider.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.known[url]
	switch {
	case s.closed && k == nil:
		return nil, provider.ErrClosed
	case k == nil && !s.room():
		return nil, fmt.Errorf("distributed claims of more than %d issuers", s.o.Limits.Sources)
	case k == nil:
		k = &known{Provider: s.newProvider(url, "")}
		s.known[url] = k
	}
	k.used = s.now()
	return k.Provider, nil
}

// room reports whether there is a place for another provider. If all are taken, the one that was unused longest is dropped, of those
// whose first attempt to get keys has failed, and of those that were not used for an hour.
func (s *sources) room() bool {
	if len(s.known) < s.o.Limits.Sources {
		return true
	}
	oldest := ""
	for url, k := range s.known {
		if (k.Failed() || s.now().Sub(k.used) > unused) && (oldest == "" || k.used.Before(s.known[oldest].used)) {
			oldest = url
		}
	}
	if oldest == "" {
		return false
	}
	dropped := s.known[oldest]
	delete(s.known, oldest)
	s.closing.Go(dropped.Close)
	return true
}
