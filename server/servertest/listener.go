package servertest

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// listener hands out both ends of in-memory connections, and what comes in at the addresses it is given besides.
type listener struct {
	conns   chan net.Conn
	done    chan struct{}
	feeding sync.WaitGroup

	mu   sync.Mutex // guards below; done is closed with it held
	also []net.Listener
}

func newListener() *listener {
	return &listener{conns: make(chan net.Conn), done: make(chan struct{})}
}

// DialContext opens a connection, whatever address is asked for. Once the listener is closed connections are refused, as
// those to a port where nobody listens: clients tell that from a connection that broke, after which they would try again.
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

// add accepts connections of another listener too, and closes it with this one. It takes a goroutine.
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
			case err != nil: // such as too many open files, which may be fewer in a moment
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

// acceptPause is how long nothing is accepted after that has failed.
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

// addr is where an end of a connection in memory is, in the form of an address of a network: others may parse it.
type addr string

// servedAddr is in the certificate; clients are all the same.
const servedAddr, clientAddr = host + ":443", "127.0.0.1:0"

func (addr) Network() string  { return "memory" }
func (a addr) String() string { return string(a) }
