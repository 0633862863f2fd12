package authn

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/remember"
)

// Default values of CacheOptions. The times are those of kube-apiserver.
const (
	DefaultCacheTime    = 10 * time.Second
	DefaultCacheEntries = 32768
	DefaultCacheBytes   = 32 << 20
	DefaultLookupTime   = 30 * time.Second
)

// CacheOptions are the options of CacheTokens. The zero value is that of the cache in front of all token authenticators of
// kube-apiserver.
type CacheOptions struct {
	// Success is how long the user of a token is remembered; 0 means DefaultCacheTime, less than 0 not at all.
	Success time.Duration
	// Failure is how long it is remembered that a token has no user; 0 means not at all. Errors are never remembered.
	Failure time.Duration
	// Entries is the maximum number of tokens that are remembered; 0 means DefaultCacheEntries.
	Entries int
	// Bytes is the maximum size of the remembered users in bytes, estimated; 0 means DefaultCacheBytes. A user that is larger than
	// a quarter of it is not remembered. If there are more entries or bytes, those that were not used for the longest time are
	// dropped.
	Bytes int
	// Lookup is the maximum time of a call to the authenticator, in which other requests with the same token wait for its result;
	// 0 means DefaultLookupTime.
	Lookup time.Duration
}

func (o CacheOptions) completed() CacheOptions {
	set := func(at *time.Duration, value time.Duration) {
		if *at == 0 {
			*at = value
		}
	}
	set(&o.Success, DefaultCacheTime)
	set(&o.Lookup, DefaultLookupTime)
	if o.Entries <= 0 {
		o.Entries = DefaultCacheEntries
	}
	if o.Bytes <= 0 {
		o.Bytes = DefaultCacheBytes
	}
	return o
}

// errLookup is returned for a token whose check takes longer than the request has time, or longer than CacheOptions.Lookup.
var errLookup = errors.New("the token was not checked in time")

// CacheTokens returns an authenticator that remembers the results of tokens. Requests that come with a token while tokens is called
// for it wait for the result of that call, together: tokens is called once at a time for each token and list of audiences
// ([AudiencesFrom]). If the request that called tokens ends, one of the waiting requests calls it again. The context of a call has
// the values and the end of the request that made it, and a deadline.
//
// The cache keeps no token: its keys are HMACs with a random key.
func CacheTokens(tokens TokenAuthenticator, o CacheOptions) TokenAuthenticator {
	o = o.completed()
	c := &tokenCache{tokens: tokens, answers: remember.New(remember.Options[*Response]{
		Entries: o.Entries, Bytes: o.Bytes, Time: o.Lookup, Late: errLookup, Size: (*Response).size,
		Keep: func(response *Response) time.Duration {
			if response == nil {
				return o.Failure
			}
			return o.Success
		},
	})}
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	c.hashers.New = func() any { return &hasher{mac: hmac.New(sha256.New, secret)} }
	return c
}

type tokenCache struct {
	tokens  TokenAuthenticator
	answers *remember.Cache[*Response] // nil for a token without a user
	hashers sync.Pool                  // of *hasher
}

// AuthenticateToken implements TokenAuthenticator.
func (c *tokenCache) AuthenticateToken(ctx context.Context, token string) (*Response, error) {
	key := c.key(token, AudiencesFrom(ctx))
	if known, ok := c.answers.Known(key); ok {
		return known, nil
	}
	return c.answers.Get(ctx, key, func(ctx context.Context) (*Response, error) {
		return c.tokens.AuthenticateToken(ctx, token)
	})
}

// Ready calls the method Ready of the authenticator, if it has one.
func (c *tokenCache) Ready(ctx context.Context) error { return ready(ctx, c.tokens) }

// hasher makes keys. It is used by one goroutine at a time.
type hasher struct {
	mac  hash.Hash
	text []byte
	key  []byte
}

// key returns the key of a token and the audiences of a request.
func (c *tokenCache) key(token string, audiences []string) remember.Key {
	h, _ := c.hashers.Get().(*hasher)
	defer c.hashers.Put(h)
	h.mac.Reset()
	h.add(token)
	for _, a := range audiences {
		h.add(a)
	}
	h.key = h.mac.Sum(h.key[:0])
	return remember.Key(h.key)
}

// add writes a text and its length to the hash, and leaves nothing of it in h.
func (h *hasher) add(text string) {
	h.text = append(binary.AppendUvarint(h.text[:0], uint64(len(text))), text...)
	_, _ = h.mac.Write(h.text) // never fails
	clear(h.text)
	if cap(h.text) > maxHashed {
		h.text = nil
	}
}

// maxHashed is the largest buffer that a hasher keeps.
const maxHashed = 16 << 10

// entrySize is the size of an entry without the texts of its response.
const entrySize = 512

// size estimates the memory that a response takes.
func (r *Response) size() int {
	size := entrySize
	if r == nil {
		return size
	}
	texts := func(list ...string) {
		for _, s := range list {
			size += len(s) + 16
		}
	}
	texts(r.User.Name, r.User.UID)
	texts(r.User.Groups...)
	for key, values := range r.User.Extra {
		texts(key)
		texts(values...)
	}
	texts(r.Audiences...)
	texts(r.Warnings...)
	for key, value := range r.AuditAnnotations {
		texts(key, value)
	}
	return size
}
