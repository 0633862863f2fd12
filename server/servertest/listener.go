package servertest

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// listener accepts in-memory connections, and connections of the listeners that are added.
type listener struct {
	conns   chan net.Conn
	done    chan struct{}
	feeding sync.WaitGroup

	mu   sync.Mutex // guards the fields below; done is closed with it held
	also []net.Listener
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// DialContext opens a connection to any address. After Close the connection is refused, as by a port without a listener. Clients
// distinguish that from a broken connection, after which they would try again.
func (l *listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, srv := newConns(l.Addr())
	select {
	case l.conns <- srv:
		return client, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: l.Addr().Network(), Addr: l.Addr(), Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// add also accepts connections of another listener, in a new goroutine, and closes it with this one.
func (l *listener) add(other net.Listener) error {
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
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
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
func (l *listener) Addr() net.Addr { return addr(servedAddr) }

// addr is the address of an end of an in-memory connection, in the form of a network address, because others may parse it.
type addr string

// servedAddr is in the certificate; clientAddr is the address of all clients.
const servedAddr, clientAddr = host + ":443", "127.0.0.1:0"

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }
