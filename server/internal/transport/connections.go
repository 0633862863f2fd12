package transport

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/flowcontrol"
)

// Connections bounds the connections that a [Listener] accepts. A connection above the bounds replaces an idle connection, so
// that connections without requests do not keep others out. If no connection is idle, the new one is closed at once. All methods
// may be called concurrently.
//
// A connection is idle while no request is in flight on it. So it is also idle before the first request: in a handshake, and
// while the header of a request comes. A connection is unauthenticated until a request on it was authenticated. The connection to
// close is chosen in these steps:
//
//   - If the bound of an address is reached, it is one of that address, and otherwise one of any address.
//   - If more than a quarter of these connections are unauthenticated, it is one of those. It is an idle one or, if none is idle,
//     one whose requests are not authenticated yet. So unauthenticated clients cannot keep out authenticated ones.
//   - It is one of the address that has the most of these connections, and of its connections the one that was used least
//     recently. Each connection of a proxy counts as one of a separate address.
//
// Several connections are closed at once, since choosing one means looking at all.
//
// Bytes that were read from connections and cannot be handled yet are bounded in total, because crypto/tls and net/http use
// several times as much memory for them. Above the bound, the connections from which most bytes were read are closed. The bytes
// that count are those read from an idle connection and, over HTTP/2, those of an incomplete header, even while requests are in
// flight.
type Connections struct {
	budget  *flowcontrol.Budget
	o       ConnectionsOptions
	excess  atomic.Int64 // sum over all open connections; see Conn.Read
	closed  atomic.Int64 // number of connections that were closed to make room
	mu      sync.Mutex   // guards all below; Conn.Close takes it
	open    map[*Conn]struct{}
	crowded bool // a goroutine is closing connections because of excess
}

// ConnectionsOptions are options of NewConnections. The zero ConnectionsOptions is usable.
type ConnectionsOptions struct {
	// Proxies are the addresses whose connections are not bounded by address.
	Proxies []netip.Prefix
	// UnhandledBytes bounds the bytes that were read of all connections and cannot be handled yet, without the first 4 KiB of
	// each connection; 0 is no bound.
	UnhandledBytes int64
	// RestTime bounds the time that a client may take for receiving the rest of an answer, from the end of its handler; 0 is no
	// bound.
	RestTime time.Duration
}

// NewConnections returns a Connections that counts in budget, which may be nil.
func NewConnections(budget *flowcontrol.Budget, o ConnectionsOptions) *Connections {
	return &Connections{budget: budget, o: o, open: map[*Conn]struct{}{}}
}

// Displaced returns the number of connections that were closed to make room for others.
func (cs *Connections) Displaced() int64 { return cs.closed.Load() }

// freeBytes is the number of bytes of a connection that do not count: about as many as a handshake and the header of a request
// take.
const freeBytes = 4 << 10

// use has the state of a Conn for its Connections.
type use struct {
	in       *Connections // nil: not bounded
	share    flowcontrol.Share
	holder   flowcontrol.Holder // zero for a proxy
	leave    sync.Once
	requests atomic.Int64 // number of requests in flight; negative: the connection is closing, and no request may begin
	last     atomic.Int64 // time at which it was accepted or the last request ended, in Unix nanoseconds
	known    atomic.Bool  // a request on it was authenticated
	read     atomic.Int64 // bytes that cannot be handled yet
	framed   atomic.Bool  // a frameConn sets read to the bytes of an incomplete header; else read counts all bytes while idle
	gone     atomic.Bool  // the connection is closed
	limited  bool         // a deadline was set for the last answer of HTTP/1.1; used only by the goroutine of requests
}

const closing = -1 << 40

// admit counts c, and reports whether it may stay open.
func (cs *Connections) admit(c *Conn) bool {
	c.in = cs
	c.holder = flowcontrol.Holder{Address: cs.addressOf(c.RemoteAddr())}
	c.last.Store(time.Now().UnixNano())
	var full *flowcontrol.RejectedError
	for err := cs.budget.Room(c.holder, 1); errors.As(err, &full); err = cs.budget.Room(c.holder, 1) {
		if !cs.makeRoom(c.holder, full.Bound) {
			break
		}
	}
	share, err := cs.budget.Take(c.holder, 1)
	if err != nil {
		return false
	}
	c.share = share
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.open[c] = struct{}{}
	return true
}

// addressOf returns the address that connections from a count for. It is the zero Addr for proxies, and if a has no IP address.
func (cs *Connections) addressOf(a net.Addr) netip.Addr {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if slices.ContainsFunc(cs.o.Proxies, func(p netip.Prefix) bool { return p.Contains(addr.WithZone("")) }) {
		return netip.Addr{}
	}
	return addr
}

// left is called once, when c is closed.
func (cs *Connections) left(c *Conn) {
	c.gone.Store(true)
	c.forget()
	cs.mu.Lock()
	delete(cs.open, c)
	share := c.share
	c.share = flowcontrol.Share{}
	cs.mu.Unlock()
	share.Release()
}

// makeRoom closes connections to make room for a connection of h, which bound does not allow. It reports whether there is room
// now.
func (cs *Connections) makeRoom(h flowcontrol.Holder, bound flowcontrol.Bound) bool {
	for _, c := range cs.victims(h, bound) {
		// A request that begins at the same time finds that the connection is closing, and is not served.
		if c.requests.CompareAndSwap(0, closing) || !c.known.Load() {
			_ = c.Close()
			cs.closed.Add(1)
		}
	}
	return cs.budget.Room(h, 1) == nil
}

// victims returns the connections to close, in order.
func (cs *Connections) victims(h flowcontrol.Holder, bound flowcontrol.Bound) []*Conn {
	cs.mu.Lock()
	all := make([]*Conn, 0, len(cs.open))
	for c := range cs.open {
		if bound != flowcontrol.BoundAddress || c.holder.Network() == h.Network() {
			all = append(all, c)
		}
	}
	cs.mu.Unlock()
	unauthenticated := slices.DeleteFunc(slices.Clone(all), func(c *Conn) bool { return c.known.Load() })
	from := all
	if len(unauthenticated) > len(all)/4 {
		from = unauthenticated
	}
	found := slices.DeleteFunc(fair(from), func(c *Conn) bool { return c.requests.Load() != 0 })
	if len(found) == 0 && len(unauthenticated) > len(all)/4 {
		found = fair(unauthenticated)
	}
	return found[:min(len(found), max(1, len(all)/64))]
}

// fair orders connections for closing: each is one of the address that has the most connections left at that point, and the least
// recently used one of that address.
func fair(list []*Conn) []*Conn {
	type placed struct {
		*Conn
		last  int64
		level int // the number of connections of its address that are left at its place
	}
	sorted := make([]placed, 0, len(list))
	count := map[netip.Addr]int{}
	for _, c := range list {
		sorted = append(sorted, placed{Conn: c, last: c.last.Load()})
		count[c.holder.Network()]++
	}
	slices.SortFunc(sorted, func(a, b placed) int { return cmp.Compare(a.last, b.last) })
	for i := range sorted {
		if a := sorted[i].holder.Network(); a.IsValid() {
			sorted[i].level = count[a]
			count[a]--
		}
	}
	slices.SortStableFunc(sorted, func(a, b placed) int { return cmp.Compare(b.level, a.level) })
	out := make([]*Conn, len(sorted))
	for i, p := range sorted {
		out[i] = p.Conn
	}
	return out
}

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.in != nil && n > 0 && !c.framed.Load() && c.requests.Load() == 0 {
		c.changed(c.read.Add(int64(n))-int64(n), int64(n))
	}
	return n, err
}

// holdsHeader is called when a frameConn above has read n bytes of a header that is incomplete. It is called by one goroutine at
// a time. A nil Conn counts nothing.
func (c *Conn) holdsHeader(n int) {
	if c == nil || c.in == nil {
		return
	}
	c.framed.Store(true)
	had := c.read.Swap(int64(n))
	c.changed(had, int64(n)-had)
}

// changed is called when read was had, and has grown by n.
func (c *Conn) changed(had, n int64) {
	cs := c.in
	more := max(0, had+n-freeBytes) - max(0, had-freeBytes)
	if more == 0 {
		return
	}
	if all := cs.excess.Add(more); more > 0 && cs.o.UnhandledBytes > 0 && all > cs.o.UnhandledBytes {
		cs.relieve()
	}
	if c.gone.Load() {
		c.forget()
	}
}

// forget sets read to 0 and corrects the sum.
func (c *Conn) forget() {
	if read := c.read.Swap(0); read > freeBytes {
		c.in.excess.Add(freeBytes - read)
	}
}

// relieve closes the connections of which most was read, until the sum over the others is at most half of the bound.
func (cs *Connections) relieve() {
	cs.mu.Lock()
	if cs.crowded {
		cs.mu.Unlock()
		return
	}
	cs.crowded = true
	all := make([]*Conn, 0, len(cs.open))
	for c := range cs.open {
		all = append(all, c)
	}
	cs.mu.Unlock()
	slices.SortFunc(all, func(a, b *Conn) int { return cmp.Compare(b.read.Load(), a.read.Load()) })
	for _, c := range all {
		if cs.excess.Load() <= cs.o.UnhandledBytes/2 || c.read.Load() <= freeBytes {
			break
		}
		if c.requests.CompareAndSwap(0, closing) || c.framed.Load() {
			_ = c.Close()
			cs.closed.Add(1)
		}
	}
	cs.mu.Lock()
	cs.crowded = false
	cs.mu.Unlock()
}

// Close implements net.Conn.
func (c *Conn) Close() error {
	err := c.Conn.Close()
	if c.in != nil {
		c.leave.Do(func() { c.in.left(c) })
	}
	return err
}

// begin counts a request, and reports whether it may begin.
func (c *Conn) begin() bool {
	if c.requests.Add(1) <= 0 {
		return false
	}
	if !c.framed.Load() {
		c.forget()
	}
	return true
}

// end ends the count of begin.
func (c *Conn) end() {
	c.last.Store(time.Now().UnixNano())
	c.requests.Add(-1)
}

// Know is called when a request in flight on the connection was authenticated. For a nil Conn it does nothing.
func (c *Conn) Know() {
	if c != nil && !c.known.Load() {
		c.known.Store(true)
	}
}
