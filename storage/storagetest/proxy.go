package storagetest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to one address, and breaks them when a test requests it. All methods may be called
// concurrently. Each takes effect at once, on open connections and on new ones. A Proxy ends with the test.
type Proxy struct {
	listener net.Listener
	target   string
	work     sync.WaitGroup // the accepting goroutine and those of the links

	mu     sync.Mutex // guards all below
	mode   proxyMode
	rate   int           // bytes per second and direction; 0: no limit
	turned chan struct{} // closed, and replaced, when mode or rate changes
	links  map[*link]struct{}
	closed bool
}

type proxyMode int

const (
	proxyPassing proxyMode = iota
	proxyRefusing
	proxyHolding
)

// NewProxy returns a proxy on a free port of 127.0.0.1 in front of target, a host and port. No process need listen there yet:
// the proxy dials target for each connection that it accepts.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, turned: make(chan struct{}), links: map[*link]struct{}{}}
	p.work.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Addr returns the host and port to connect to instead of the target.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut resets the open connections. New connections are treated as before.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

// Refuse resets the open connections, and every new one at once, until Heal.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(proxyRefusing, 0)
	p.cut()
}

// BlackHole keeps open connections and accepts new ones, but forwards nothing until Heal. As with a network that loses
// packets, bytes that were sent meanwhile arrive then, if the connection still exists.
func (p *Proxy) BlackHole() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(proxyHolding, 0)
}

// Throttle limits each direction of each connection to so many bytes per second, until Heal.
func (p *Proxy) Throttle(bytesPerSecond int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(proxyPassing, max(bytesPerSecond, 1))
}

// Heal ends the effects of the other methods: everything is forwarded again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn(proxyPassing, 0)
}

// turn changes how bytes are forwarded. The caller holds mu.
func (p *Proxy) turn(mode proxyMode, rate int) {
	p.mode, p.rate = mode, rate
	close(p.turned)
	p.turned = make(chan struct{})
}

// cut resets the links. The caller holds mu.
func (p *Proxy) cut() {
	for l := range p.links {
		l.reset()
		delete(p.links, l)
	}
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.cut()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.work.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		p.begin(c)
	}
}

// begin makes a link for a connection, or resets the connection.
func (p *Proxy) begin(c net.Conn) {
	ctx, stop := context.WithCancel(context.Background())
	l := &link{p: p, near: c, over: ctx.Done(), stop: stop}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.mode == proxyRefusing {
		l.reset()
		return
	}
	p.links[l] = struct{}{}
	p.work.Go(func() { l.run(ctx) })
}

// link is one connection through the proxy.
type link struct {
	p    *Proxy
	near net.Conn
	over <-chan struct{} // closed by stop
	stop func()

	mu   sync.Mutex // guards far and done
	far  net.Conn   // nil until it is dialled
	done bool
}

// run dials the target and forwards bytes in both directions until both sides have ended.
func (l *link) run(ctx context.Context) {
	defer l.end()
	if _, _, ok := l.pass(); !ok {
		return
	}
	far, err := new(net.Dialer).DialContext(ctx, "tcp", l.p.target)
	if err != nil || !l.join(far) {
		l.reset()
		return
	}
	var back sync.WaitGroup
	back.Go(func() { l.pipe(l.near, far) })
	l.pipe(far, l.near)
	back.Wait()
}

func (l *link) join(far net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		_ = far.Close()
		return false
	}
	l.far = far
	return true
}

// pipe forwards bytes in one direction, and then the end or the error of the connection. If the proxy holds bytes, pipe keeps
// those that it has read.
func (l *link) pipe(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		for rest := buf[:n]; len(rest) > 0; {
			size, rate, ok := l.pass()
			if !ok {
				return
			}
			size = min(size, len(rest))
			if _, err := to.Write(rest[:size]); err != nil {
				l.reset()
				return
			}
			rest = rest[size:]
			if rate > 0 && !l.rest(time.Duration(size)*time.Second/time.Duration(rate)) {
				return
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if tcp, ok := to.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			return
		case err != nil:
			l.reset()
			return
		}
	}
}

// pass waits until bytes may be forwarded, and returns how many at once and the rate, 0 when there is no limit. ok is false
// when the link has ended.
func (l *link) pass() (size, rate int, ok bool) {
	for {
		l.p.mu.Lock()
		mode, rate, turned := l.p.mode, l.p.rate, l.p.turned
		l.p.mu.Unlock()
		switch {
		case mode != proxyHolding && rate > 0:
			return max(rate/50, 1), rate, true
		case mode != proxyHolding:
			return 32 << 10, 0, true
		}
		select {
		case <-turned:
		case <-l.over:
			return 0, 0, false
		}
	}
}

// rest waits after a piece of throttled bytes.
func (l *link) rest(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.over:
		return false
	}
}

// end closes the link and removes it.
func (l *link) end() {
	l.close(false)
	l.p.mu.Lock()
	delete(l.p.links, l)
	l.p.mu.Unlock()
}

// reset resets the link, so that neither side takes it for a normal end.
func (l *link) reset() { l.close(true) }

func (l *link) close(reset bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	l.done = true
	l.stop()
	for _, c := range []net.Conn{l.near, l.far} {
		if tcp, ok := c.(*net.TCPConn); ok {
			if reset {
				_ = tcp.SetLinger(0)
			}
			_ = tcp.Close()
		}
	}
}
