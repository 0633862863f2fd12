package transport

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	enough     = 96 << 10               // bytes: what more would save is little beside the copying
	record     = 16 << 10               // bytes: the most that TLS makes one of
	gatherTime = 500 * time.Microsecond // how long what is kept may wait for the next write
)

// Listener accepts connections that gather. Make one with NewListener.
type Listener struct {
	net.Listener
	limit   time.Duration
	conns   *Connections // nil: not bounded
	buffers sync.Pool    // of *[]byte
}

// NewListener returns a listener whose connections are *Conn. A client may block what a timer sends for as long as limit;
// all other writes have the deadlines that are set for them. conns bounds the connections; nil does not.
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
		_ = below.Close() // nothing was written that could fail
	}
}

type connKey struct{}

// ConnContext returns a context that carries the Conn below c, if there is one: c itself, or what its method NetConn returns,
// as that of a *tls.Conn does. It is for http.Server.ConnContext.
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

// ConnOf returns the Conn of a context, or nil, which is as good: it holds nothing.
func ConnOf(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
