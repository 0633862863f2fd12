package cacher

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Hooks are told what happens in a cache, for metrics and logs. Any may be nil. They are called while locks are held:
// they must be quick and must not call the cache.
type Hooks struct {
	// Filled is called when the cache can be read, at first and after it was void.
	Filled func(Filled)
	// Void is called when all that the cache has shown is void, and why: its watches end, and it is made anew.
	Void func(why error)
	// List is called for each list, with where it is answered from.
	List func(Source)
	// Listed is called, after List, for each list that is answered from memory, with what that takes.
	Listed func(Listed)
	// Waited is called for each read that had to wait for the cache to reach a revision, with how long it waited.
	Waited func(time.Duration)
	// Consistent is called for each read of the most recent state that may be answered from memory: with whether it is,
	// and if not, with whether the storage below answers instead.
	Consistent func(success, fallback bool)
	// Received is called with how many changes the storage below has told of, when they are in the cache.
	Received func(changes int)
	// Initial is called for each watch that has been told the state that it began with, with how many events that took.
	Initial func(events int)
	// Watch is called for each watch that begins.
	Watch func(WatchBegan)
	// Expired is called for each watch that ends, or cannot begin, because what it has not seen is not retained.
	Expired func()
	// Outrun is called, after Expired, for each watch that ends because its reader was slower than the window.
	Outrun func()
	// CaughtUp is called for each watch whose initial events took longer than the window, so that the difference to a
	// later state was sent.
	CaughtUp func()
}

// Filled says what a cache was filled with.
type Filled struct {
	Records int
	Bytes   int64 // of the records
	Changes int   // that were replayed and are retained
	Took    time.Duration
}

// Listed says what a list took that was answered from memory.
type Listed struct {
	// Index is the one that was read: "f:" and a field, "l:" and a label, or "" for none.
	Index string
	// Evaluated is how many records a selector was asked about, Returned how many the page has.
	Evaluated, Returned int
}

// Source is where a list is answered from.
type Source int

// The sources of lists.
const (
	FromMemory  Source = iota + 1 // a state not older than asked for
	FromHistory                   // the state at an exact revision, from memory
	FromStorage                   // the storage below
)

func (s Source) String() string {
	switch s {
	case FromMemory:
		return "memory"
	case FromHistory:
		return "history"
	case FromStorage:
		return "storage"
	}
	return fmt.Sprintf("Source(%d)", int(s))
}

// WatchBegan says how a watch begins.
type WatchBegan struct {
	Initial bool // with the state
	Resumed bool // after a revision that its client has seen
}

func (h *Hooks) filled(f Filled) {
	if h.Filled != nil {
		h.Filled(f)
	}
}

func (h *Hooks) void(why error) {
	if h.Void != nil {
		h.Void(why)
	}
}

func (h *Hooks) list(from Source) {
	if h.List != nil {
		h.List(from)
	}
}

func (h *Hooks) listed(l Listed) {
	if h.Listed != nil {
		h.Listed(l)
	}
}

func (h *Hooks) waited(took time.Duration) {
	if h.Waited != nil {
		h.Waited(took)
	}
}

func (h *Hooks) consistent(success, fallback bool) {
	if h.Consistent != nil {
		h.Consistent(success, fallback)
	}
}

func (h *Hooks) received(changes int) {
	if h.Received != nil && changes > 0 {
		h.Received(changes)
	}
}

func (h *Hooks) initial(events int) {
	if h.Initial != nil {
		h.Initial(events)
	}
}

func (h *Hooks) watch(w WatchBegan) {
	if h.Watch != nil {
		h.Watch(w)
	}
}

func (h *Hooks) expired() {
	if h.Expired != nil {
		h.Expired()
	}
}

func (h *Hooks) outrun() {
	if h.Outrun != nil {
		h.Outrun()
	}
}

func (h *Hooks) caughtUp() {
	if h.CaughtUp != nil {
		h.CaughtUp()
	}
}

// Stats is what a cache is like at one moment.
type Stats struct {
	Filled   bool          // the cache is in use
	Records  int           // in the latest state
	Bytes    int64         // about what they take in memory
	Revision int64         // up to which the cache is complete
	Lag      int64         // revisions that the store is known to be ahead
	Window   time.Duration // between the first and the last change in the log
	Oldest   int64         // revision from which watches can resume
	Changes  int           // in the log
	LogBytes int64         // about what the log takes in memory
	Watchers int
}

// Stats returns what the cache is like now. It does not begin to fill it.
func (c *Cacher) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := Stats{Filled: c.loaded, Watchers: c.watchers}
	if !c.loaded {
		return st
	}
	first, last := c.log.span()
	st.Records, st.Bytes = c.state.records.len(), c.state.bytes
	st.Revision = c.reached.Load()
	st.Lag = max(c.known.Load()-st.Revision, 0)
	st.Window, st.Oldest = time.Duration(last-first), c.log.floor
	st.Changes, st.LogBytes = c.log.count, c.log.bytes()
	return st
}

// ErrFilling is what Ready says of a cache that is being filled, when nothing is known to be wrong.
var ErrFilling = errors.New("the cache is being filled")

// Ready returns nil when the cache is fresh, or not in use yet; otherwise why it is not. It asks nobody.
func (c *Cacher) Ready(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent := time.Since(c.answered)
	switch {
	case c.life.Err() != nil:
		return errors.New("the cache is closed")
	case c.problem != nil && !c.loaded:
		return fmt.Errorf("the cache is being filled: %w", c.problem)
	case c.problem != nil:
		return fmt.Errorf("the cache is complete up to revision %d and cannot follow the storage: %w", c.reached.Load(), c.problem)
	case c.loading != nil:
		return ErrFilling
	case c.loaded && silent > staleAfter:
		return fmt.Errorf("the cache is complete up to revision %d; the storage has told nothing for %v", c.reached.Load(), silent.Round(time.Second))
	}
	return nil
}
