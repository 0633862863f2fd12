package lifecycle

import (
	"context"
	"sync"
	"time"
)

const (
	// rememberDeletes is how long the cache is not trusted for a namespace after this server received a DELETE for it.
	// kube-apiserver has the same time.
	rememberDeletes = 30 * time.Second
	// maxDeletes is the maximum number of names for which deletes are remembered.
	maxDeletes = 1024
)

// creates has, for each namespace, the admitted creates that have not ended. The zero creates is empty. All methods may be called
// concurrently.
type creates struct {
	mu   sync.Mutex // guards open and its values
	open map[string]*batches
}

// batches are the creates in flight in one namespace. Each wait closes the current batch, and later creates go into a new one.
type batches struct {
	waited []*batch
	now    *batch // nil if there was no create since the last wait
}

// batch is a set of creates. done is closed when the last of them has ended.
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

// end removes a create from its batch, and deletes batches that have ended.
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

// wait returns nil when every create in the namespace that began before this call has ended, or the error of ctx. It does not
// wait for later creates.
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

// suspects are the namespaces for which a cache that says "active" is not trusted. The zero suspects is empty. All methods may be
// called concurrently.
type suspects struct {
	mu      sync.Mutex // guards all fields below
	until   map[string]time.Time
	all     time.Time      // until when no namespace is trusted, because there were too many deletes
	closing map[string]int // counts the calls of hold without release
}

// add makes a namespace suspect for rememberDeletes.
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

// hold makes a namespace suspect until the returned function is called, and for rememberDeletes after that.
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

// has reports whether a namespace is suspect.
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
