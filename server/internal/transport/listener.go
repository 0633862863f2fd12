package transport

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	enough     = 96 << 10               // bytes that are sent at once: keeping more would save little and cost more copying
	record     = 16 << 10               // bytes of the largest TLS record
	gatherTime = 500 * time.Microsecond // time for which kept bytes wait for the next write
)

// Listener accepts connections that gather writes. Make one with NewListener.
type Listener struct {
	net.Listener
	limit   time.Duration
	conns   *Connections // nil: not bounded
	buffers sync.Pool    // *[]byte values
}

// NewListener returns a listener whose connections are *Conn. When a timer sends kept bytes, the client may block that for at
// most limit; all other writes have the deadlines that are set for them. conns bounds the connections; with nil they are not
// bounded.
func NewListener(ln net.Listener, limit time.Duration, conns *Connections) *Listener {
	return &Listener{Listener: ln, limit: limit, conns: conns}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		below, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &Conn{Conn: below, from: l}
		if l.conns == nil || l.conns.admit(c) {
			return c, nil
		}
		_ = below.Close() // nothing was written, so that closing cannot lose it
	}
}

type connKey struct{}

// ConnContext returns a context with the Conn below c, if there is one: c itself, or the result of its method NetConn, which a
// *tls.Conn has. It is for http.Server.ConnContext.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	if own := below(c); own != nil {
		return context.WithValue(ctx, connKey{}, own)
	}
	return ctx
}

// below returns the Conn below c, or nil.
func below(c net.Conn) *Conn {
	for {
		if own, ok := c.(*Conn); ok {
			return own
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = above.NetConn()
	}
}

// ConnOf returns the Conn of a context, or nil, whose methods for handlers do nothing.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
