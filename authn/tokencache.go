package authn

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
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
	c := &tokenCache{tokens: tokens, opts: o.completed(), lookups: map[tokenKey]*lookup{}}
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	c.hashers.New = func() any { return &hasher{mac: hmac.New(sha256.New, secret)} }
	c.entries, _ = simplelru.NewLRU(c.opts.Entries, func(_ tokenKey, dropped cached) { c.bytes -= dropped.size }) // fails for a size below 1
	return c
}

// tokenKey stands for a token and the audiences of a request.
type tokenKey [sha256.Size]byte

// cached is a remembered result. response is nil for a token without a user.
type cached struct {
	response *Response
	until    time.Time
	size     int
}

// lookup is a call that is going on. Its fields are read after done is closed.
type lookup struct {
	done     chan struct{}
	response *Response
	err      error
	left     bool // the request that made the call ended first, so that err says nothing about the token
}

type tokenCache struct {
	tokens TokenAuthenticator
	opts   CacheOptions

	hashers sync.Pool // of *hasher

	mu      sync.Mutex // guards the fields below
	entries *simplelru.LRU[tokenKey, cached]
	bytes   int // sum of the sizes of entries
	lookups map[tokenKey]*lookup
}

// AuthenticateToken implements TokenAuthenticator.
func (c *tokenCache) AuthenticateToken(ctx context.Context, token string) (*Response, error) {
	key := c.key(token, AudiencesFrom(ctx))
	for {
		known, ok, other := c.find(key)
		switch {
		case ok:
			return known, nil
		case other == nil:
			return c.look(ctx, key, token)
		}
		select {
		case <-other.done:
			if !other.left {
				return other.response, other.err
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errLookup, context.Cause(ctx))
		}
	}
}

// Ready calls the method Ready of the authenticator, if it has one.
func (c *tokenCache) Ready(ctx context.Context) error { return ready(ctx, c.tokens) }

// hasher makes keys. It is used by one goroutine at a time.
type hasher struct {
	mac  hash.Hash
	text []byte
	key  []byte
}

// key returns the key of a token.
func (c *tokenCache) key(token string, audiences []string) tokenKey {
	h, _ := c.hashers.Get().(*hasher)
	defer c.hashers.Put(h)
	h.mac.Reset()
	h.add(token)
	for _, a := range audiences {
		h.add(a)
	}
	h.key = h.mac.Sum(h.key[:0])
	return tokenKey(h.key)
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

// find returns the remembered response of a key, with ok, or the call for it that is going on. If there is neither, the caller has
// to look.
func (c *tokenCache) find(key tokenKey) (known *Response, ok bool, other *lookup) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry, ok := c.entries.Get(key); ok {
		if time.Now().Before(entry.until) {
			return entry.response, true, nil
		}
		c.entries.Remove(key)
	}
	if other := c.lookups[key]; other != nil {
		return nil, false, other
	}
	c.lookups[key] = &lookup{done: make(chan struct{}), left: true}
	return nil, false, nil
}

// look calls the authenticator, and remembers the result. If the authenticator panics, the requests that wait call it again.
func (c *tokenCache) look(ctx context.Context, key tokenKey, token string) (*Response, error) {
	defer c.finish(key)
	bounded, cancel := context.WithTimeoutCause(ctx, c.opts.Lookup, errLookup)
	defer cancel()
	response, err := c.tokens.AuthenticateToken(bounded, token)
	c.result(key, response, err, err != nil && ctx.Err() != nil)
	return response, err
}

// result keeps the result of a call for the requests that wait for it.
func (c *tokenCache) result(key tokenKey, response *Response, err error, left bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.lookups[key]
	l.response, l.err, l.left = response, err, left
	keep := c.opts.Success
	if response == nil {
		keep = c.opts.Failure
	}
	if err == nil && keep > 0 {
		c.remember(key, cached{response, time.Now().Add(keep), response.size()})
	}
}

// remember adds an entry, within the bounds.
func (c *tokenCache) remember(key tokenKey, entry cached) {
	if entry.size > c.opts.Bytes/4 {
		return
	}
	c.entries.Remove(key) // Add would not tell of an entry that it replaces
	c.entries.Add(key, entry)
	for c.bytes += entry.size; c.bytes > c.opts.Bytes; {
		c.entries.RemoveOldest()
	}
}

// finish ends the call for a key.
func (c *tokenCache) finish(key tokenKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.lookups[key].done)
	delete(c.lookups, key)
}

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
