// Package gather makes few large writes of the many that a long answer makes on a connection.
//
// net/http writes an answer over HTTP/2 in frames of 16 KiB, and crypto/tls writes every record of at most 16 KiB by
// itself. For the kernel, and for the client that it wakes, several of them at once cost little more than one. Below TLS
// nobody can tell whether more is to come, so whoever makes the answer says so:
//
//	ln := gather.NewListener(tcp, 30*time.Second)
//	hs := &http.Server{ConnContext: gather.Context, ...}
//	go hs.ServeTLS(ln, "", "")
//
//	held := gather.From(r.Context()) // in a handler
//	held.Hold()
//	defer held.Release()
//	w.Write(much)
//
// While somebody holds a [Conn] it keeps what is written until there is enough of it. After the last has released it the
// next write, such as that of the frame that ends the answer, sends all. When there is none, or the client first has to
// read what is kept before it allows more, a timer sends it.
package gather

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	enough   = 96 << 10               // bytes: what more would save is little beside the copying
	record   = 16 << 10               // bytes: the most that TLS makes one of
	patience = 500 * time.Microsecond // how long what is kept may wait for the next write
)

// Listener accepts connections that gather. Make one with NewListener.
type Listener struct {
	net.Listener
	limit   time.Duration
	buffers sync.Pool // of *[]byte
}

// NewListener returns a listener whose connections are *Conn. A client may block what a timer sends for as long as limit;
// all other writes have the deadlines that are set for them.
func NewListener(ln net.Listener, limit time.Duration) *Listener {
	return &Listener{Listener: ln, limit: limit}
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c, from: l}, nil
}

type connKey struct{}

// Context returns a context that carries the Conn below c, if there is one: c itself, or what its method NetConn returns,
// as that of a *tls.Conn does. It is for http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	for {
		if own, ok := c.(*Conn); ok {
			return context.WithValue(ctx, connKey{}, own)
		}
		above, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return ctx
		}
		c = above.NetConn()
	}
}

// From returns the Conn of a context, or nil, which is as good: it holds nothing.
func From(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}
