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

// Connections bounds the connections that a [Listener] accepts. One beyond the bounds takes the place of another that is idle,
// so that connections which do nothing keep nobody out; where there is none, it is closed at once. All methods may be called
// concurrently.
//
// A connection is idle while no request is in flight on it, which is so before the first request too: in a handshake, and while
// the header of a request comes. Connections on which no request was authenticated are strangers'. Which place is taken:
//
//   - When the bound of an address is reached, one of that address; else one of any.
//   - When strangers have more than a quarter of those, one of theirs: one that is idle or, where none is, one whose requests are
//     not authenticated yet. So those who are nobody keep nobody out who is known.
//   - One of the address that has most of those connections, and of its connections the one that was used the longest ago. Those
//     of proxies count as of an address each.
//
// A few are closed at once, since to find them takes a look at all.
//
// What is read of connections and cannot be handled yet is bounded in all, too, as it becomes several times as much memory in the
// hands of crypto/tls and net/http: when it is too much, the connection that most was read of is closed. It is what is read of an
// idle connection and, over HTTP/2, the header that has not ended, whether requests are in flight or not.
type Connections struct {
	budget  *flowcontrol.Budget
	o       ConnectionsOptions
	excess  atomic.Int64 // of all open; see Conn.Read
	closed  atomic.Int64 // to make room
	mu      sync.Mutex   // guards all below; Conn.Close takes it
	open    map[*Conn]struct{}
	crowded bool // somebody is closing connections because of excess
}

// ConnectionsOptions refine Connections. The zero ConnectionsOptions is usable.
type ConnectionsOptions struct {
	// Proxies are addresses whose connections are not bounded by address.
	Proxies []netip.Prefix
	// UnhandledBytes bounds what is read of all connections and cannot be handled yet, without the first 4 KiB of each; 0 is no
	// bound.
	UnhandledBytes int64
	// StrangerTime is how long a connection on which nobody was authenticated may take for an answer, from the end of its handler;
	// 0 is no bound.
	StrangerTime time.Duration
}

// NewConnections returns a bound that counts in budget, which may be nil.
func NewConnections(budget *flowcontrol.Budget, o ConnectionsOptions) *Connections {
	return &Connections{budget: budget, o: o, open: map[*Conn]struct{}{}}
}

// Displaced returns how many connections were closed to make room for others.
func (cs *Connections) Displaced() int64 { return cs.closed.Load() }

// freeBytes are those of a connection that do not count: as many as a handshake and the header of a request mostly take.
const freeBytes = 4 << 10

// use is what a Conn does, for the Connections that it is one of.
type use struct {
	in       *Connections // nil: it is in none
	share    flowcontrol.Share
	holder   flowcontrol.Holder // zero for a proxy
	leave    sync.Once
	requests atomic.Int64 // in flight; closing: there will be none
	last     atomic.Int64 // when it was accepted, or the last request ended, in nanoseconds of Unix
	known    atomic.Bool  // a request was authenticated
	read     atomic.Int64 // bytes that cannot be handled yet
	framed   atomic.Bool  // read is of the header that has not ended, and set by a frameConn; else of all while it is idle
	gone     atomic.Bool  // it is closed
	limited  bool         // a deadline was set for the last answer of HTTP/1.1; of the goroutine of requests
}

const closing = -1 << 40

// admit counts c, and reports whether it may stay.
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

// addressOf returns the address that connections from a count for; the zero Addr for proxies, and what is not of IP.
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

// left is called once when c is closed.
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

// makeRoom closes connections in favor of one of a holder that a bound keeps out, and reports whether there was one to close.
func (cs *Connections) makeRoom(h flowcontrol.Holder, bound flowcontrol.Bound) bool {
	for _, c := range cs.victims(h, bound) {
		// A request that begins meanwhile finds that the connection is closing, and is not begun.
		if c.requests.CompareAndSwap(0, closing) || !c.known.Load() {
			_ = c.Close()
			cs.closed.Add(1)
		}
	}
	return cs.budget.Room(h, 1) == nil
}

// victims returns the connections whose places are taken, the first first.
func (cs *Connections) victims(h flowcontrol.Holder, bound flowcontrol.Bound) []*Conn {
	cs.mu.Lock()
	all := make([]*Conn, 0, len(cs.open))
	for c := range cs.open {
		if bound != flowcontrol.BoundAddress || c.holder.Network() == h.Network() {
			all = append(all, c)
		}
	}
	cs.mu.Unlock()
	strangers := slices.DeleteFunc(slices.Clone(all), func(c *Conn) bool { return c.known.Load() })
	from := all
	if len(strangers) > len(all)/4 {
		from = strangers
	}
	found := slices.DeleteFunc(fair(from), func(c *Conn) bool { return c.requests.Load() != 0 })
	if len(found) == 0 && len(strangers) > len(all)/4 {
		found = fair(strangers)
	}
	return found[:min(len(found), max(1, len(all)/64))]
}

// fair orders connections such that, if they are closed in this order, each is of the address that has the most left then, and the
// one of its that was used the longest ago.
func fair(list []*Conn) []*Conn {
	type placed struct {
		*Conn
		last  int64
		level int // as many as its address has left when its turn has come
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

// holdsHeader tells that a frameConn above has read n bytes of a header that has not ended. It is called by one goroutine at a
// time. A nil Conn counts nothing.
func (c *Conn) holdsHeader(n int) {
	if c == nil || c.in == nil {
		return
	}
	c.framed.Store(true)
	had := c.read.Swap(int64(n))
	c.changed(had, int64(n)-had)
}

// changed counts that read, which was had, is n more.
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

// forget counts no more what was read.
func (c *Conn) forget() {
	if read := c.read.Swap(0); read > freeBytes {
		c.in.excess.Add(freeBytes - read)
	}
}

// relieve closes the connections that most was read of, until what is read of the others is less than half of what it may be.
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

// end takes back begin.
func (c *Conn) end() {
	c.last.Store(time.Now().UnixNano())
	c.requests.Add(-1)
}

// Know tells that a request in flight on the connection was authenticated. A nil Conn need not know.
func (c *Conn) Know() {
	if c != nil && !c.known.Load() {
		c.known.Store(true)
	}
}
