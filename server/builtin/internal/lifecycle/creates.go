package lifecycle

import (
	"context"
	"sync"
	"time"
)

const (
	// rememberDeletes is how long the cache is not believed when it says that a namespace is active which this server was
	// asked to delete. It is kube-apiserver's time.
	rememberDeletes = 30 * time.Second
	// maxDeletes is how many deletes are remembered by name.
	maxDeletes = 1024
)

// creates knows, for each namespace, the creates that were let in and have not ended. The zero creates is empty. All
// methods may be called concurrently.
type creates struct {
	mu   sync.Mutex // guards open and what is in it
	open map[string]*batches
}

// batches are the creates under way in one namespace: those before a wait began, one batch for each wait, and those since.
type batches struct {
	waited []*batch
	now    *batch // nil: none since the last wait
}

// batch is creates that are waited for together; done is closed when the last has ended.
type batch struct {
	count int
	done  chan struct{}
}

// begin counts a create in a namespace until ctx ends.
func (c *creates) begin(ctx context.Context, namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]*batches{}
	}
	all := c.open[namespace]
	if all == nil {
		all = &batches{}
		c.open[namespace] = all
	}
	if all.now == nil {
		all.now = &batch{done: make(chan struct{})}
	}
	b := all.now
	b.count++
	context.AfterFunc(ctx, func() { c.end(namespace, b) })
}

// end takes one create off its batch, and forgets what has ended.
func (c *creates) end(namespace string, b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.count--; b.count > 0 {
		return
	}
	all := c.open[namespace]
	if all.now == b {
		all.now = nil
	}
	close(b.done)
	var left []*batch
	for _, other := range all.waited {
		if other.count > 0 {
			left = append(left, other)
		}
	}
	if all.waited = left; left == nil && all.now == nil {
		delete(c.open, namespace)
	}
}

// wait returns when every create in the namespace that had begun before has ended, or the context's error. Those that
// begin later do not hold it up.
func (c *creates) wait(ctx context.Context, namespace string) error {
	c.mu.Lock()
	var waits []*batch
	if all := c.open[namespace]; all != nil {
		if all.now != nil {
			all.waited, all.now = append(all.waited, all.now), nil
		}
		waits = append(waits, all.waited...)
	}
	c.mu.Unlock()
	for _, b := range waits {
		select {
		case <-b.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// suspects are the namespaces of which a cache that calls them active may not be believed. The zero suspects has none.
// All methods may be called concurrently.
type suspects struct {
	mu      sync.Mutex // guards all below
	until   map[string]time.Time
	all     time.Time      // until when no namespace is believed: there were too many to remember
	closing map[string]int // with no end of time, until they are let go as often
}

// add suspects a namespace for some time from now on.
func (s *suspects) add(namespace string) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	if _, ok := s.until[namespace]; !ok && len(s.until) >= maxDeletes {
		for name, end := range s.until {
			if !now.Before(end) {
				delete(s.until, name)
			}
		}
		if len(s.until) >= maxDeletes {
			clear(s.until)
			s.all = now.Add(rememberDeletes)
		}
	}
	s.until[namespace] = now.Add(rememberDeletes)
}

// hold suspects a namespace until the function it returns is called, and for some time after that.
func (s *suspects) hold(namespace string) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing == nil {
		s.closing = map[string]int{}
	}
	s.closing[namespace]++
	return func() {
		s.add(namespace)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closing[namespace]--; s.closing[namespace] == 0 {
			delete(s.closing, namespace)
		}
	}
}

// has reports whether a namespace is suspected.
func (s *suspects) has(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing[namespace] > 0 {
		return true
	}
	if len(s.until) == 0 && s.all.IsZero() {
		return false
	}
	now := time.Now()
	if now.Before(s.all) {
		return true
	}
	end, ok := s.until[namespace]
	if ok && !now.Before(end) {
		delete(s.until, namespace)
		return false
	}
	return ok
}
