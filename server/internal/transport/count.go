package transport

import "sync"

// Count counts the users of a resource that is to be closed after the last of them has left. The zero Count is open. All methods
// may be called concurrently.
type Count struct {
	mu     sync.Mutex // guards all below
	n      int
	closed bool
	empty  func() // argument of Close; called once
}

// Enter counts one user more and returns true if the Count is open. The user then calls Leave. If the Count is closed, Enter
// returns false.
func (c *Count) Enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.n++
	return true
}

// Hold counts one more. A user calls it before it leaves, for work that goes on after that. It works after Close, too.
func (c *Count) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// Leave ends the count of an Enter or a Hold.
func (c *Count) Leave() {
	c.mu.Lock()
	c.n--
	last := c.closed && c.n == 0
	c.mu.Unlock()
	if last {
		c.empty()
	}
}

// IsOpen reports whether Close has not been called.
func (c *Count) IsOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed
}

// Close closes the Count: Enter returns false from now on. empty is called when there are no users any more: by Close or by the
// last Leave. A second Close has no effect.
func (c *Count) Close(empty func()) {
	c.mu.Lock()
	last := !c.closed && c.n == 0
	if !c.closed {
		c.closed, c.empty = true, empty
	}
	c.mu.Unlock()
	if last {
		empty()
	}
}
