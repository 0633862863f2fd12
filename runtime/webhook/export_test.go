package webhook

// MaxTransports is how many targets there are connections to at most, but for those in use.
const MaxTransports = maxTransports

// Transports is how many there are now.
func Transports(c *Caller) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
