package authn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"slices"
)

// StaticTokens knows a fixed set of bearer tokens and whose they are; it is made once and may be used concurrently.
// Tokens are kept, and looked for, as keyed hashes, so that neither memory nor the time of an answer tells one.
// An empty token is nobody's.
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
	var room [256]byte // most tokens have place in it, and it need not be on the heap
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
