package transport_test

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"golang.org/x/net/http2"
)

// bounded is a server whose connections are bounded. Its handler authenticates requests for /known, and does not answer requests
// for /wait until the test lets it.
type bounded struct {
	*httptest.Server
	t       *testing.T
	budget  *flowcontrol.Budget
	conns   *transport.Connections
	entered chan struct{} // receives a value for each request for /wait
	leave   chan struct{} // closed to let the handler answer
}

func newBounded(t *testing.T, bounds flowcontrol.Bounds, o transport.ConnectionsOptions, headers ...time.Duration) *bounded {
	t.Helper()
	s := &bounded{t: t, budget: flowcontrol.NewBudget("connections", bounds), entered: make(chan struct{}), leave: make(chan struct{})}
	s.conns = transport.NewConnections(s.budget, o)
	s.Server = httptest.NewUnstartedServer(transport.Requests(http.HandlerFunc(s.handle)))
	s.Config.ConnContext = transport.ConnContext
	s.Config.ReadHeaderTimeout = cmp.Or(append(headers, time.Hour)...)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Listener = transport.NewListener(s.Listener, time.Minute, s.conns)
	s.EnableHTTP2 = true
	h2 := transport.ServeHTTP2(s.Config, time.Minute)
	s.StartTLS()
	t.Cleanup(func() {
		select {
		case <-s.leave:
		default:
			close(s.leave)
		}
		s.CloseClientConnections()
		s.Close()
		h2.End()
	})
	return s
}

func (s *bounded) handle(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.URL.Path, "known") {
		transport.ConnOf(r.Context()).Know()
	}
	if strings.Contains(r.URL.Path, "wait") {
		s.entered <- struct{}{}
		<-s.leave
	}
	fmt.Fprint(w, "done")
}

// client is a connection of HTTP/1.1 over TLS.
type client struct {
	net.Conn // the TCP connection
	tls      *tls.Conn
	in       *bufio.Reader
}

// dial connects from 127.0.0.from without a handshake. It returns when the server has accepted the connection, or has closed it.
func (s *bounded) dial(from byte) *client {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}}
	c, err := d.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	own := tls.Client(c, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	return &client{c, own, bufio.NewReader(own)}
}

// begin sends a request.
func (c *client) begin(path string) error {
	_, err := fmt.Fprintf(c.tls, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	return err
}

// end reads its answer.
func (c *client) end() error {
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

func (c *client) ask(path string) error {
	if err := c.begin(path); err != nil {
		return err
	}
	return c.end()
}

// connect dials, and sends a request that is answered.
func (s *bounded) connect(from byte, path string) *client {
	s.t.Helper()
	c := s.dial(from)
	if err := c.ask(path); err != nil {
		s.t.Fatalf("%s from %d: %v", path, from, err)
	}
	return c
}

// gone waits until the server has closed c.
func (s *bounded) gone(name string, c *client) {
	s.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, c.Conn); isTimeout(err) {
		s.t.Errorf("%s is open", name)
	}
}

// stays reports whether c is served.
func (s *bounded) stays(name string, c *client, path string) {
	s.t.Helper()
	if err := c.ask(path); err != nil {
		s.t.Errorf("%s: %v", name, err)
	}
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

func inAll(n int64) flowcontrol.Bounds { return flowcontrol.Bounds{All: n, User: -1, Address: -1} }

// A client may open any number of connections without a request, before and after a handshake, in a header and after an answer.
// There are never more than the bound, and authenticated clients are served.
func TestIdleConnectionsKeepNobodyOut(t *testing.T) {
	const most = 8
	s := newBounded(t, inAll(most), transport.ConnectionsOptions{})
	friend := s.connect(2, "/known")
	s.budget.Peak()
	for i := range 5 * most {
		c := s.dial(byte(10 + i%3))
		switch i % 4 {
		case 1:
			if err := c.tls.Handshake(); err != nil {
				t.Fatal(err)
			}
		case 2:
			if _, err := fmt.Fprint(c.tls, "GET / HTTP/1.1\r\nHost: x\r\n"); err != nil {
				t.Fatal(err)
			}
		case 3:
			if err := c.ask("/"); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.stays("who is known", friend, "/known")
	s.connect(2, "/known")
	if peak := s.budget.Peak(); peak > most {
		t.Errorf("%d connections, want at most %d", peak, most)
	}
	if n := s.conns.Displaced(); n < 3*most || s.budget.Rejected() != 0 {
		t.Errorf("%d are displaced and %d rejected", n, s.budget.Rejected())
	}
}

// A connection with an authenticated request in flight is not closed; the new connection is refused.
func TestConnectionsInUseStay(t *testing.T) {
	s := newBounded(t, inAll(2), transport.ConnectionsOptions{})
	a, b := s.dial(2), s.dial(3)
	for _, c := range []*client{a, b} {
		if err := c.begin("/known/wait"); err != nil {
			t.Fatal(err)
		}
		<-s.entered
	}
	s.gone("one too many", s.dial(4))
	if s.budget.Rejected() != 1 || s.conns.Displaced() != 0 {
		t.Errorf("%d are rejected and %d displaced", s.budget.Rejected(), s.conns.Displaced())
	}
	close(s.leave)
	for _, c := range []*client{a, b} {
		if err := c.end(); err != nil {
			t.Error(err)
		}
	}
	s.stays("the first", a, "/")
	s.stays("the second", b, "/") // now used most recently
	s.connect(4, "/")             // takes the place of a
	s.gone("the one idle for longer", a)
	s.stays("the other", b, "/")
}

// An unauthenticated connection is closed even with a request in flight, if no unauthenticated connection is idle.
func TestUnauthenticatedInUseGiveWay(t *testing.T) {
	s := newBounded(t, inAll(2), transport.ConnectionsOptions{})
	anonymous, known := s.dial(2), s.dial(3)
	for path, c := range map[string]*client{"/wait": anonymous, "/known/wait": known} {
		if err := c.begin(path); err != nil {
			t.Fatal(err)
		}
		<-s.entered
	}
	third := s.dial(4)
	s.gone("the stranger", anonymous)
	close(s.leave)
	if err := known.end(); err != nil {
		t.Error(err)
	}
	s.stays("the third", third, "/known")
}

// The connection that is closed is one of the address with the most connections, and of these the one that was idle for the
// longest time.
func TestThePlaceTakenIsOfTheAddressWithTheMost(t *testing.T) {
	s := newBounded(t, inAll(6), transport.ConnectionsOptions{})
	few := s.connect(2, "/")
	first, second := s.connect(3, "/"), s.connect(3, "/")
	third := s.connect(3, "/")
	s.stays("the first", first, "/") // now used most recently
	other, last := s.connect(2, "/"), s.connect(4, "/")
	s.connect(5, "/")
	s.gone("the second of the many", second)
	for name, c := range map[string]*client{"few": few, "first": first, "third": third, "other": other, "last": last} {
		s.stays(name, c, "/")
	}
}

// A bound by address counts only connections of that address, and does not apply to proxies.
func TestConnectionsOfAnAddress(t *testing.T) {
	s := newBounded(t, flowcontrol.Bounds{All: -1, User: -1, Address: 2}, transport.ConnectionsOptions{
		Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.9/32")},
	})
	other := s.connect(2, "/")
	a, b := s.connect(3, "/known"), s.connect(3, "/known")
	c := s.connect(3, "/known")
	s.gone("the oldest", a)
	var behind []*client
	for range 5 {
		behind = append(behind, s.connect(9, "/"))
	}
	for i, c := range append(behind, other, b, c) {
		s.stays(fmt.Sprint(i), c, "/")
	}
}

// Unauthenticated connections are closed first as long as they are more than a quarter, however few each address has. Below that
// the address with the most connections loses one.
func TestUnauthenticatedGiveWay(t *testing.T) {
	s := newBounded(t, inAll(8), transport.ConnectionsOptions{})
	var known []*client
	for range 5 {
		known = append(known, s.connect(2, "/known"))
	}
	unauthenticated := []*client{s.connect(3, "/"), s.connect(4, "/"), s.connect(5, "/")}
	s.connect(6, "/")
	s.gone("the oldest stranger", unauthenticated[0])
	for _, c := range append(known, unauthenticated[1:]...) {
		s.stays("another", c, "/")
	}

	s = newBounded(t, inAll(8), transport.ConnectionsOptions{})
	known = nil
	for range 7 {
		known = append(known, s.connect(2, "/known"))
	}
	anonymous := s.connect(3, "/")
	s.connect(4, "/")
	s.gone("the oldest of the many", known[0])
	s.stays("the stranger", anonymous, "/")
}

// The bytes of incomplete headers are bounded for all connections together, and the connections with the most are closed first.
func TestHeadersThatDoNotEnd(t *testing.T) {
	const most = 64 << 10
	s := newBounded(t, inAll(-1), transport.ConnectionsOptions{UnhandledBytes: most})
	modest := s.connect(2, "/")
	if _, err := fmt.Fprint(modest.tls, "GET / HTTP/1.1\r\nHost: x\r\n"); err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("a", 2000)
	for range 8 {
		c := s.dial(3)
		if _, err := fmt.Fprint(c.tls, "GET / HTTP/1.1\r\nHost: x\r\n"); err != nil {
			t.Fatal(err)
		}
		for j := range 14 { // 28 kB, or until the connection is closed
			if _, err := fmt.Fprintf(c.tls, "X%d: %s\r\n", j, line); err != nil {
				break
			}
		}
	}
	for s.conns.Displaced() < 4 { // 8 connections of 24 KB each; at most 64 KB may stay
		time.Sleep(time.Millisecond)
	}
	if _, err := fmt.Fprint(modest.tls, "\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := modest.end(); err != nil {
		t.Error(err)
	}
	for range 20 { // a header that is complete does not count any more
		if _, err := fmt.Fprintf(modest.tls, "GET / HTTP/1.1\r\nHost: x\r\nX: %s%[1]s%[1]s%[1]s\r\n\r\n", line); err != nil {
			t.Fatal(err)
		}
		if err := modest.end(); err != nil {
			t.Fatal(err)
		}
	}
}

// Over HTTP/2 incomplete headers are bounded on connections with a request in flight, too.
func TestHeadersThatDoNotEndBesideRequests(t *testing.T) {
	s := newBounded(t, inAll(-1), transport.ConnectionsOptions{UnhandledBytes: 64 << 10})
	const head = "\x82\x87\x41\x01x\x04\x0b/known/wait" // GET https://x/known/wait
	open := func() (*tls.Conn, *http2.Framer) {
		c, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
			t.Fatal(err)
		}
		framer := http2.NewFramer(c, c)
		if err := framer.WriteSettings(); err != nil {
			t.Fatal(err)
		}
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(head), EndHeaders: true, EndStream: true}); err != nil {
			t.Fatal(err)
		}
		<-s.entered
		return c, framer
	}
	modest, framer := open()
	// A field that is not indexed, with the name x and an incomplete value.
	value := append([]byte("\x00\x01x\x7f\x81\x9f\x06"), bytes.Repeat([]byte("a"), 900)...)
	if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: append([]byte(head), value...)}); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		_, framer := open()
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: append([]byte(head), value...)}); err != nil {
			t.Fatal(err)
		}
		for range 6 { // 24 kB, or until the connection is closed
			if err := framer.WriteContinuation(3, false, bytes.Repeat([]byte("a"), 4<<10)); err != nil {
				break
			}
		}
	}
	for s.conns.Displaced() < 4 {
		time.Sleep(time.Millisecond)
	}
	close(s.leave)
	for {
		f, err := http2.NewFramer(modest, modest).ReadFrame()
		if err != nil {
			t.Fatal("the connection with the smallest header: ", err)
		}
		if f.Header().Type == http2.FrameData && f.Header().StreamID == 1 {
			break
		}
	}
}

// A connection whose client does not read the rest of an answer is closed.
func TestAnswersThatAreNotRead(t *testing.T) {
	for _, path := range []string{"/", "/known"} {
		s := newBounded(t, inAll(-1), transport.ConnectionsOptions{RestTime: 50 * time.Millisecond})
		c := s.dial(2)
		if err := c.tls.Handshake(); err != nil {
			t.Fatal(err)
		}
		requests := []byte(strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n", 1000))
		var err error
		for err == nil { // until the answers fill all buffers
			_, err = c.tls.Write(requests)
		}
		for s.budget.Held() > 0 {
			time.Sleep(time.Millisecond)
		}
		// Answers that the client reads in time leave no deadline for later ones.
		c = s.connect(2, path)
		time.Sleep(100 * time.Millisecond)
		s.stays("a client that reads", c, path)
	}
}

// A handshake that does not end is ended by the server, and so is a connection without a request after the handshake.
func TestHandshakesThatDoNotEnd(t *testing.T) {
	s := newBounded(t, inAll(-1), transport.ConnectionsOptions{}, 50*time.Millisecond)
	s.gone("without a handshake", s.dial(2))
	c := s.dial(2)
	if _, err := c.Write([]byte{22, 3, 1, 2, 0, 1}); err != nil { // half of a record
		t.Fatal(err)
	}
	s.gone("in a handshake", c)
	for s.budget.Held() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// Over HTTP/2 the streams of a client that never opens its windows are ended.
func TestWindowsThatAreNeverOpened(t *testing.T) {
	for _, path := range []string{"/", "/known"} {
		for _, window := range []uint32{0, 3} {
			neverOpened(t, path, window)
		}
	}
}

func neverOpened(t *testing.T, path string, window uint32) {
	s := newBounded(t, inAll(-1), transport.ConnectionsOptions{RestTime: 50 * time.Millisecond})
	c, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	framer := http2.NewFramer(c, c)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window}); err != nil {
		t.Fatal(err)
	}
	head := "\x82\x87\x04" + string(rune(len(path))) + path + "\x41\x01x" // GET https://x + path
	for i := range uint32(3) {
		if err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: []byte(head), EndHeaders: true, EndStream: true}); err != nil {
			t.Fatal(err)
		}
	}
	for reset := 0; reset < 3; {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := frame.(*http2.RSTStreamFrame); ok {
			reset++
		}
	}
}
