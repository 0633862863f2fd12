package admission

import (
	"sync"
	"sync/atomic"
)

// Live is a Source whose chain may be added to while requests pass it: a request that has begun to be judged may be
// judged by the chain of before. The zero Live accepts everything. All methods may be called concurrently; a Live must
// not be copied.
type Live struct {
	mu      sync.Mutex // held by writers, who replace current
	current atomic.Pointer[Chain]
}

// Current implements Source. The chain's slices are shared and must not be changed.
func (l *Live) Current() Chain {
	if c := l.current.Load(); c != nil {
		return *c
	}
	return Chain{}
}

// Add puts the members of c behind those there are.
func (l *Live) Add(c Chain) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.Current().Then(c)
	l.current.Store(&next)
}

// AddFirst puts the members of c before those there are.
func (l *Live) AddFirst(c Chain) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := c.Then(l.Current())
	l.current.Store(&next)
}

// CurrentOf returns the chain of s, which may be nil: then it accepts everything.
func CurrentOf(s Source) Chain {
	if s == nil {
		return Chain{}
	}
	return s.Current()
}
