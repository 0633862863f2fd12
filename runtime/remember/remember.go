// Package remember asks a question once for all who ask it at the same time, and remembers the answer for a while, within bounds. It is
// the cache of the answers of webhooks and of expensive checks.
//
//	users := remember.New(remember.Options[*User]{Entries: 1000, Bytes: 1 << 20, Keep: keep, Size: size, Late: errLate})
//	user, err := users.Get(ctx, sha256.Sum256(token), func(ctx context.Context) (*User, error) { ... })
package remember

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Key stands for a question, such as a hash of it.
type Key [sha256.Size]byte

// Options are the options of New. All are required.
type Options[V any] struct {
	// Entries is the maximum number of answers, and Bytes that of the sum of their sizes. If there are more, those that were not used for
	// the longest time are dropped. An answer that is larger than a quarter of Bytes is not remembered.
	Entries, Bytes int
	// Size returns the estimated size of an answer in bytes.
	Size func(V) int
	// Keep returns how long an answer is remembered; 0 or less is not at all. Errors are not remembered.
	Keep func(V) time.Duration
	// Time is the maximum time of a call. Late is the error of one that takes longer, and is wrapped by that of a caller who ends while it
	// waits for another.
	Time time.Duration
	Late error
}

// Cache remembers answers. Make one with New. All methods may be called concurrently.
type Cache[V any] struct {
	o Options[V]

	mu      sync.Mutex // guards the fields below
	entries *simplelru.LRU[Key, entry[V]]
	bytes   int // sum of the sizes of entries
	calls   map[Key]*call[V]
}

// entry is a remembered answer.
type entry[V any] struct {
	answer V
	until  time.Time
	size   int
}

// call is a call that is going on. Its fields are read after done is closed.
type call[V any] struct {
	done       chan struct{}
	answer     V
	err        error
	askerEnded bool // before the answer, so that err says nothing about it
}

// New returns an empty cache.
func New[V any](o Options[V]) *Cache[V] {
	c := &Cache[V]{o: o, calls: map[Key]*call[V]{}}
	c.entries, _ = simplelru.NewLRU(max(o.Entries, 1), func(_ Key, dropped entry[V]) { c.bytes -= dropped.size }) // fails for a size below 1
	return c
}

// Get returns the remembered answer of a key, or else that of ask. Callers with a key whose question is being asked wait for that answer,
// together. One caller calls ask. If the context of that caller ends, or if ask panics, one of the others calls ask again. The context that
// ask gets has the values of the caller's context, ends with it, and has a deadline.
func (c *Cache[V]) Get(ctx context.Context, key Key, ask func(ctx context.Context) (V, error)) (V, error) {
	for {
		known, ok, other := c.find(key)
		switch {
		case ok:
			return known, nil
		case other == nil:
			return c.ask(ctx, key, ask)
		}
		select {
		case <-other.done:
			if !other.askerEnded {
				return other.answer, other.err
			}
		case <-ctx.Done():
			var none V
			return none, fmt.Errorf("%w: %w", c.o.Late, context.Cause(ctx))
		}
	}
}

// Known returns the remembered answer of a key.
func (c *Cache[V]) Known(key Key) (answer V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries.Get(key)
	return e.answer, ok && time.Now().Before(e.until)
}

// find returns the remembered answer of a key, with ok, or the call for it that is going on. If there is neither, the caller has to ask.
func (c *Cache[V]) find(key Key) (known V, ok bool, other *call[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries.Get(key); ok {
		if time.Now().Before(e.until) {
			return e.answer, true, nil
		}
		c.entries.Remove(key)
	}
	if other := c.calls[key]; other != nil {
		return known, false, other
	}
	c.calls[key] = &call[V]{done: make(chan struct{}), askerEnded: true}
	return known, false, nil
}

// ask asks, and remembers the answer.
func (c *Cache[V]) ask(ctx context.Context, key Key, ask func(ctx context.Context) (V, error)) (V, error) {
	defer c.finish(key)
	bounded, cancel := context.WithTimeoutCause(ctx, c.o.Time, c.o.Late)
	defer cancel()
	answer, err := ask(bounded)
	c.result(key, answer, err, err != nil && ctx.Err() != nil)
	return answer, err
}

// result keeps the answer of a call for those who wait for it.
func (c *Cache[V]) result(key Key, answer V, err error, askerEnded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.calls[key]
	at.answer, at.err, at.askerEnded = answer, err, askerEnded
	if err != nil {
		return
	}
	if keep := c.o.Keep(answer); keep > 0 {
		c.add(key, entry[V]{answer, time.Now().Add(keep), c.o.Size(answer)})
	}
}

// add adds an entry, within the bounds.
func (c *Cache[V]) add(key Key, e entry[V]) {
	if e.size > c.o.Bytes/4 {
		return
	}
	c.entries.Remove(key) // Add would not tell of an entry that it replaces
	c.entries.Add(key, e)
	for c.bytes += e.size; c.bytes > c.o.Bytes; {
		c.entries.RemoveOldest()
	}
}

// finish ends the call for a key.
func (c *Cache[V]) finish(key Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.calls[key].done)
	delete(c.calls, key)
}
