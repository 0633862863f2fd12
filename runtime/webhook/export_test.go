package webhook

// MaxTransports is the number of targets whose connections are kept, unless more are in use.
const MaxTransports = maxTransports

// Transports returns the number of targets that have connections.
func Transports(c *Caller) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
