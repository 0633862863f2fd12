package webhook

// MaxTransports is the largest number of unused targets whose connections are kept.
const MaxTransports = maxTransports

// Transports returns the number of targets that have connections.
func Transports(c *Caller) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
