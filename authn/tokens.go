package authn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"slices"
)

// StaticTokens returns an authenticator for a fixed set of bearer tokens and their users. It may be used concurrently. Tokens are
// stored and compared as keyed hashes, so that neither the memory nor the time of a response reveals a token. An empty token has
// no user.
func StaticTokens(users map[string]User) TokenAuthenticator {
	s := &staticTokens{users: make(map[[sha256.Size]byte]User, len(users))}
	_, _ = rand.Read(s.key[:]) // never fails
	for token, user := range users {
		user.Groups = slices.Clone(user.Groups)
		s.users[s.hash(token)] = user
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
