package jwt

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/keelson-dev/keelson/authn/internal/jose"
	"github.com/keelson-dev/keelson/authn/jwt/internal/provider"
)

// sources gets a claim from where a token says that it is.
type sources struct {
	claim  string
	issuer string // of the tokens
	*verifier
	slots chan struct{} // has an element for each request that is going on

	mu        sync.Mutex // guards the fields below
	providers map[string]*provider.Provider
	closed    bool
}

func newSources(claim, issuer string, v *verifier) *sources {
	return &sources{claim: claim, issuer: issuer, verifier: v, slots: make(chan struct{}, v.o.Limits.Waiting), providers: map[string]*provider.Provider{}}
}

func (s *sources) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock() // no provider is added anymore
	for _, p := range s.providers {
		p.Close()
	}
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
	p, err := s.known(url)
	if err != nil {
		return nil, err
	}
	return p, p.Try(ctx)
}

func (s *sources) known(url string) (*provider.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.providers[url]
	switch {
	case p != nil:
	case s.closed:
		return nil, provider.ErrClosed
	case len(s.providers) >= s.o.Limits.Sources:
		return nil, fmt.Errorf("distributed claims of more than %d issuers", s.o.Limits.Sources)
	default:
		p = s.newProvider(url, "")
		s.providers[url] = p
	}
	return p, nil
}
