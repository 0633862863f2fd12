// Package outbound is what the HTTP clients of package runtime/client and of package runtime/webhook have in common: connections
// that end with their owner, and the errors that refusals of a server of the Kubernetes API become.
package outbound

import (
	"context"
	"net"
	"sync"
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Connections are all connections that one owner has open. An http.Transport may go on connecting after the request that needed
// the connection is gone, and closes only connections that it knows to be idle; so all of them are closed here. The methods may
// be called concurrently.
type Connections struct {
	life context.Context
	open Dial

	mu     sync.Mutex // guards closed and all
	closed bool
	all    map[*connection]struct{}
	dials  sync.WaitGroup // Add under mu, while not closed
}

type connection struct {
	net.Conn
	of *Connections
}

// NewConnections returns the connections of an owner who lives as long as life. The owner cancels life, with the error that
// dials are to fail with as its cause, and calls Close then.
func NewConnections(life context.Context, open Dial) *Connections {
	return &Connections{life: life, open: open, all: map[*connection]struct{}{}}
}

// Dial opens a connection that Close closes. It fails with the cause of life's end after that.
func (c *Connections) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, context.Cause(c.life)
	}
	c.dials.Add(1)
	c.mu.Unlock()
	defer c.dials.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	raw, err := c.open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := &connection{Conn: raw, of: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = raw.Close()
		return nil, context.Cause(c.life)
	}
	c.all[conn] = struct{}{}
	return conn, nil
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.all, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// Close closes all connections and waits for those that are being opened, which fail. life is over when it is called.
func (c *Connections) Close() {
	c.mu.Lock()
	c.closed = true
	for conn := range c.all {
		_ = conn.Conn.Close()
	}
	clear(c.all)
	c.mu.Unlock()
	c.dials.Wait()
}
