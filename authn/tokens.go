package authn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
)

// RefusalError is an error of a token authenticator that knows something about a token. If another one of [UnionTokens] accepts the token, the
// audit event of the request has AuditAnnotations too.
type RefusalError struct {
	Err              error
	AuditAnnotations map[string]string // is not changed any more
}

// Error implements error.
func (r *RefusalError) Error() string { return r.Err.Error() }

// Unwrap returns the error of the token.
func (r *RefusalError) Unwrap() error { return r.Err }

// noted returns a response with the annotations of refusals that came before. The first value of a key stays, as in kube-apiserver.
func noted(resp *Response, before []error) *Response {
	all := map[string]string{}
	add := func(more map[string]string) {
		for key, value := range more {
			if _, has := all[key]; !has {
				all[key] = value
			}
		}
	}
	for _, err := range before {
		if refusal := (*RefusalError)(nil); errors.As(err, &refusal) {
			add(refusal.AuditAnnotations)
		}
	}
	if len(all) == 0 {
		return resp
	}
	add(resp.AuditAnnotations)
	out := *resp
	out.AuditAnnotations = all
	return &out
}

// UnionTokens calls token authenticators in order and returns the first user that one of them finds. If none finds a user and some
// fail, it returns the errors of all. An empty union has no opinion.
func UnionTokens(members ...TokenAuthenticator) TokenAuthenticator {
	return tokenUnion(slices.Clone(members))
}

type tokenUnion []TokenAuthenticator

// AuthenticateToken implements TokenAuthenticator.
func (u tokenUnion) AuthenticateToken(ctx context.Context, token string) (*Response, error) {
	var errs []error
	for _, m := range u {
		resp, err := m.AuthenticateToken(ctx, token)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if resp != nil {
			return noted(resp, errs), nil
		}
	}
	return nil, errors.Join(errs...)
}

// Ready calls the methods Ready of the members that have one.
func (u tokenUnion) Ready(ctx context.Context) error {
	var errs []error
	for _, m := range u {
		errs = append(errs, ready(ctx, m))
	}
	return errors.Join(errs...)
}

// ForAudiences returns an authenticator for tokens that are not issued for particular audiences, and that a server accepts for its
// own audiences, which are of. If the request wants audiences ([AudiencesFrom]), the response has those of them that are in of, and
// tokens is not called if there are none: the token is then not valid for any of the audiences. A response of tokens must not have
// audiences itself.
func ForAudiences(tokens TokenAuthenticator, of ...string) TokenAuthenticator {
	return audienceTokens{tokens, slices.Clone(of)}
}

type audienceTokens struct {
	tokens TokenAuthenticator
	of     []string
}

var errAudiences = errors.New("a token that is for no particular audience was accepted for some")

// AuthenticateToken implements TokenAuthenticator.
func (a audienceTokens) AuthenticateToken(ctx context.Context, token string) (*Response, error) {
	wanted := AudiencesFrom(ctx)
	if wanted == nil {
		return a.tokens.AuthenticateToken(ctx, token)
	}
	var common []string
	for _, w := range wanted {
		if slices.Contains(a.of, w) {
			common = append(common, w)
		}
	}
	if common == nil {
		return nil, nil
	}
	resp, err := a.tokens.AuthenticateToken(ctx, token)
	if resp == nil || err != nil {
		return nil, err
	}
	if len(resp.Audiences) > 0 {
		return nil, errAudiences
	}
	out := *resp
	out.Audiences = common
	return &out, nil
}

// Ready calls the method Ready of the authenticator, if it has one.
func (a audienceTokens) Ready(ctx context.Context) error { return ready(ctx, a.tokens) }

// StaticTokens returns an authenticator for a fixed set of bearer tokens and their users. It may be used concurrently. Tokens are
// stored and compared as keyed hashes, so that neither the memory nor the time of a response reveals a token. An empty token has
// no user. The users are copied.
func StaticTokens(users map[string]User) TokenAuthenticator {
	s := &staticTokens{users: make(map[[sha256.Size]byte]User, len(users))}
	_, _ = rand.Read(s.key[:]) // never fails
	for token, user := range users {
		s.users[s.hash(token)] = *user.Clone()
	}
	return s
}

type staticTokens struct {
	key   [32]byte
	users map[[sha256.Size]byte]User
}

func (s *staticTokens) hash(token string) [sha256.Size]byte {
	var room [256]byte // most tokens fit, so they need no heap allocation
	return sha256.Sum256(append(append(room[:0], s.key[:]...), token...))
}

// AuthenticateToken implements TokenAuthenticator.
func (s *staticTokens) AuthenticateToken(_ context.Context, token string) (*Response, error) {
	user, ok := s.users[s.hash(token)]
	if !ok {
		return nil, nil
	}
	return &Response{User: user}, nil
}
