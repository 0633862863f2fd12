package cacher

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Hooks are called about events in a cache, for metrics and logs. Any of them may be nil. They are called while locks are
// held: they must return quickly and must not call the cache.
type Hooks struct {
	// Filled is called each time the cache has been filled and can be read: for the first time, and again after Void was
	// called.
	Filled func(Filled)
	// Void is called, with the reason, when the states that the cache has shown are no longer valid, for example because the
	// store was set back to an older state. Its watches end, and it is filled anew.
	Void func(why error)
	// List is called for each list, with the source that serves it.
	List func(Source)
	// Listed is called, after List, for each list that is served from memory, with its costs.
	Listed func(Listed)
	// Waited is called with the waiting time for each read that had to wait for the cache to reach a revision.
	Waited func(time.Duration)
	// Consistent is called for each read of the most recent state that may be served from memory. success reports whether it
	// is served from memory. If not, fallback reports whether the storage below serves it.
	Consistent func(success, fallback bool)
	// Received is called with the number of changes that the storage below has delivered, when they are in the cache.
	Received func(changes int)
	// Initial is called with the number of events for each watch that has received the state with which it began.
	Initial func(events int)
	// Watch is called for each watch that begins.
	Watch func(WatchBegan)
	// Expired is called for each watch that ends, or cannot begin, because changes that it has not seen are no longer
	// retained.
	Expired func()
	// Outrun is called, after Expired, for each watch that ends because its reader was slower than the window.
	Outrun func()
	// CaughtUp is called for each watch whose initial events took longer than the window, so that the difference to a later
	// state was sent.
	CaughtUp func()
}

// Filled describes what a cache was filled with.
type Filled struct {
	Records int           // in the latest state
	Bytes   int64         // bytes of the records
	Changes int           // number of changes that were replayed and are retained
	Took    time.Duration // how long it took
}

// Listed describes the costs of a list that was served from memory.
type Listed struct {
	// Index is the index that was read: "f:" and a field, "l:" and a label, or "" for none.
	Index string
	// Evaluated is the number of records to which a selector was applied, Returned the number of records of the page.
	Evaluated, Returned int
}

// Source is what served a list.
type Source int

// The sources of lists.
const (
	FromMemory  Source = iota + 1 // a state that is not older than requested
	FromHistory                   // the state at an exact revision, from memory
	FromStorage                   // the storage below
)

// String returns the name of the source.
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

// WatchBegan describes how a watch begins.
type WatchBegan struct {
	Initial bool // it begins with the state
	Resumed bool // it begins after a revision that its client has seen
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

// Stats describes a cache at one moment.
type Stats struct {
	Filled   bool          // the cache can be read; if not, all other numbers but Watchers are 0
	Records  int           // number of records in the latest state
	Bytes    int64         // about the memory that the records take
	Revision int64         // the revision up to which the cache is complete
	Lag      int64         // number of revisions by which the store is known to be ahead
	Window   time.Duration // time between the first and the last change in the log
	Oldest   int64         // the revision from which watches can resume
	Changes  int           // number of changes in the log
	LogBytes int64         // about the memory that the log takes
	Watchers int           // number of open watches
}

// Stats returns the present numbers of the cache. It does not begin to fill the cache.
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

// ErrFilling is returned by Ready while the cache is being filled and no error is known.
var ErrFilling = errors.New("the cache is being filled")

// Ready returns nil when the cache is fresh, or not in use yet, and otherwise the reason. It sends no request.
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
