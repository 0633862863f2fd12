// Package outbound has the common parts of the HTTP clients in packages runtime/client and runtime/webhook: connections that are
// closed with their owner, and errors made from error answers of Kubernetes API servers.
package outbound

import (
	"context"
	"net"
	"sync"
)

// Dial opens a connection, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Connections are all open connections of one owner. An http.Transport may go on dialing after the request that needed the
// connection has ended, and closes only connections that it knows to be idle. Close therefore closes all of them. The methods may
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

// NewConnections returns the connections of an owner whose lifetime is the context life. To end, the owner cancels life with a
// cause, which is the error of later dials, and then calls Close.
func NewConnections(life context.Context, open Dial) *Connections {
	return &Connections{life: life, open: open, all: map[*connection]struct{}{}}
}

// Dial opens a connection, which Close closes. After life has ended, it returns the cause.
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

// Close closes all connections and waits for dials in progress, which fail. The owner must have cancelled life before.
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
