package memnet

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// Listener accepts connections in memory, and those of the listeners that are added. Make one with NewListener. Its methods may be
// called concurrently.
type Listener struct {
	addr    addr
	conns   chan net.Conn
	done    chan struct{}
	feeding sync.WaitGroup

	mu   sync.Mutex // guards the fields below; done is closed with it held
	also []net.Listener
}

// NewListener returns a listener with an address "host:port", which need not exist.
func NewListener(address string) *Listener {
	return &Listener{addr: addr(address), conns: make(chan net.Conn), done: make(chan struct{})}
}

// DialContext opens a connection, whatever the network and the address are. It waits until the connection is accepted. After Close
// the connection is refused, as by a port without a listener. Clients distinguish that from a broken connection, after which they
// would try again.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	return l.dial(ctx, nil)
}

// Dialer returns a function like DialContext whose connections have a value, which ValueOf returns for the accepted end.
func (l *Listener) Dialer(value any) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx, value) }
}

func (l *Listener) dial(ctx context.Context, value any) (net.Conn, error) {
	client, srv := newConns(l.addr, value)
	select {
	case l.conns <- srv:
		return client, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: l.addr.Network(), Addr: l.addr, Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Add also accepts connections of another listener, in a new goroutine, and closes it with this one.
func (l *Listener) Add(other net.Listener) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		_ = other.Close()
		return net.ErrClosed
	default:
	}
	l.also = append(l.also, other)
	l.feeding.Go(func() {
		for {
			c, err := other.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // for example too many open files, which may be temporary
				select {
				case <-l.done:
				case <-time.After(acceptPause):
				}
				continue
			}
			select {
			case l.conns <- c:
			case <-l.done:
				_ = c.Close()
			}
		}
	})
	return nil
}

// acceptPause is the pause after a failed Accept.
const acceptPause = 5 * time.Millisecond

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *Listener) Close() error {
	l.mu.Lock()
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	for _, other := range l.also {
		_ = other.Close()
	}
	l.also = nil
	l.mu.Unlock()
	l.feeding.Wait()
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return l.addr }

// addr is the address of an end of an in-memory connection, in the form of a network address, because others may parse it.
type addr string

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }
