package transport

import "sync"

// Count counts those who are inside something that is to end: what it needs is closed after the last has left. The zero Count is
// open. All methods may be called concurrently.
type Count struct {
	mu     sync.Mutex // guards all below
	n      int
	closed bool
	empty  func() // of Close; called once
}

// Enter reports whether the Count is open, and counts one more then, who calls Leave.
func (c *Count) Enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.n++
	return true
}

// Hold counts one more on behalf of who is inside and leaves before; it is open to them after Close, too.
func (c *Count) Hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// Leave takes back an Enter or a Hold.
func (c *Count) Leave() {
	c.mu.Lock()
	c.n--
	last := c.closed && c.n == 0
	c.mu.Unlock()
	if last {
		c.empty()
	}
}

// IsOpen reports whether Enter would count.
func (c *Count) IsOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed
}

// Close lets nobody in any more, and has empty called when nobody is inside: now, or by the last one. Calling it again has no
// effect.
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
