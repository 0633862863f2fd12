package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/servertest"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	idleWatches = 5000
	idleBatch   = 500 // watches opened between two garbage collections
	perConn     = 100 // watches on one connection of HTTP/2: the most that the server accepts
	// idleQuery is that of a client-go reflector.
	idleQuery = "?allowWatchBookmarks=true&resourceVersion=1&timeoutSeconds=3600&watch=true"
	idleAgent = "controller/v0.0.0 (linux/amd64) kubernetes/$Format"
)

// BenchmarkIdleWatch measures the memory of a watch without events. B/watch is HeapInuse and StackInuse of the process after
// garbage collection with 5,000 watches, less the value without watches, divided by 5,000; heap-B/watch and stack-B/watch are its
// parts. Each watch has been sent an event before, and is sent another one afterwards. The watches are opened 500 at a time with
// a collection between, as watches come to a server over time. Otherwise the garbage of 5,000 requests at once would leave holes
// in the heap, 1 to 2 KB a watch, which later requests can use, and which are no cost of a watch.
//
// The clients of the first three keep next to nothing, so that the result is that of the server: 100 watches share a connection
// of HTTP/2, like those of a real client, and one goroutine that reads it. The pipes count.
//
//	memory        HTTP/2 without TLS on pipes in memory
//	memory-http1  HTTP/1.1 without TLS on pipes in memory: a connection, with two goroutines and buffers, a watch
//	tls           HTTP/2 with TLS on pipes in memory: what Serve serves
//	tls-client    the same with the client of net/http in the same process, which is counted too: two goroutines a watch
//
// It measures once, whatever b.N is.
func BenchmarkIdleWatch(b *testing.B) {
	for _, way := range []struct {
		name  string
		watch func(s *idle, n int)
	}{
		{"memory", func(s *idle, n int) { s.watchHTTP2(n, s.plain) }},
		{"memory-http1", func(s *idle, n int) { s.watchHTTP1(n, s.plain) }},
		{"tls", func(s *idle, n int) { s.watchHTTP2(n, s.secure) }},
		{"tls-client", (*idle).watchClient},
	} {
		b.Run(way.name, func(b *testing.B) {
			s := &idle{b: b, srv: servertest.New(b, widgets()), pipes: make(pipes)}
			s.servePlain()
			s.create("first")
			heap, stack := inUse()
			for n := 0; n < idleWatches; n += idleBatch {
				way.watch(s, idleBatch)
				s.await(1, n+idleBatch)
				runtime.GC()
			}
			heapWith, stackWith := inUse()
			s.create("second")
			s.await(2, idleWatches)
			heapCost, stackCost := (heapWith-heap)/idleWatches, (stackWith-stack)/idleWatches
			b.ReportMetric(heapCost+stackCost, "B/watch")
			b.ReportMetric(heapCost, "heap-B/watch")
			b.ReportMetric(stackCost, "stack-B/watch")
			b.ReportMetric(0, "ns/op") // has no meaning here
		})
	}
}

// inUse returns HeapInuse and StackInuse after several collections: one collection halves a stack at most, and pools survive one.
func inUse() (heap, stack float64) {
	var m runtime.MemStats
	for last, rounds := uint64(0), 0; rounds < 3 || rounds < 10 && m.HeapInuse+m.StackInuse < last; rounds++ {
		last = m.HeapInuse + m.StackInuse
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // for goroutines that the collection has made runnable, such as finalizers
		runtime.ReadMemStats(&m)
	}
	return float64(m.HeapInuse), float64(m.StackInuse)
}

// idle is a server and its watches. Events are counted when they arrive.
type idle struct {
	b     *testing.B
	srv   *servertest.Server
	pipes pipes           // to the handler without TLS
	had   [3]atomic.Int64 // number of watches that have had one event, two
}

// tally counts the events of one watch.
type tally uint8

// add counts the events whose ends are in part. An event is a line, which is written whole.
func (s *idle) add(t *tally, part []byte) {
	for range bytes.Count(part, []byte("}\n")) {
		if *t++; int(*t) < len(s.had) {
			s.had[*t].Add(1)
		}
	}
}

// await waits until so many watches have had n events.
func (s *idle) await(n, watches int) {
	s.b.Helper()
	for range 6000 {
		if s.had[n].Load() == int64(watches) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.b.Fatalf("%d of %d watches have had %d events", s.had[n].Load(), watches, n)
}

func (s *idle) check(err error) {
	s.b.Helper()
	if err != nil {
		s.b.Fatal(err)
	}
}

func (s *idle) create(name string) {
	s.b.Helper()
	admin := s.srv.Client()
	defer admin.CloseIdleConnections()
	resp, err := admin.Post(s.srv.URL+widgetsPath, "application/json", strings.NewReader(`{"metadata":{"name":"`+name+`"}}`))
	s.check(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		s.b.Fatalf("POST: %s", resp.Status)
	}
}

// secure dials the server with TLS.
func (s *idle) secure() net.Conn {
	conn, err := s.srv.DialContext(s.b.Context(), "", "")
	s.check(err)
	config := s.srv.Transport().TLSClientConfig
	config.NextProtos = []string{"h2"}
	return tls.Client(conn, config)
}

// plain dials the server without TLS.
func (s *idle) plain() net.Conn {
	client, server := net.Pipe()
	s.pipes <- server
	return client
}

// servePlain serves the handler without TLS, otherwise as the server does.
func (s *idle) servePlain() {
	hs := &http.Server{Handler: s.srv.Handler(), HTTP2: &http.HTTP2Config{MaxConcurrentStreams: perConn}, Protocols: &http.Protocols{}}
	hs.Protocols.SetHTTP1(true)
	hs.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan error, 1)
	go func() { served <- hs.Serve(s.pipes) }()
	s.b.Cleanup(func() {
		_ = hs.Close() // closes its connections; the listener has no error
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			s.b.Error(err)
		}
	})
}

// pipes is a listener that accepts the connections that are sent on it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "memory"} }

// watchHTTP1 opens n watches with HTTP/1.1.
func (s *idle) watchHTTP1(n int, dial func() net.Conn) {
	var clients sync.WaitGroup
	s.b.Cleanup(clients.Wait)
	for range n {
		conn := dial()
		s.b.Cleanup(func() { _ = conn.Close() })
		_, err := fmt.Fprintf(conn, "GET %s%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nUser-Agent: %s\r\nAccept: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
			widgetsPath, idleQuery, s.srv.Token, idleAgent)
		s.check(err)
		clients.Go(func() { s.read(conn, 256) })
	}
}

// read counts the events of one watch until it ends.
func (s *idle) read(from io.Reader, size int) {
	var had tally
	buf := make([]byte, size)
	for {
		n, err := from.Read(buf)
		s.add(&had, buf[:n])
		if err != nil {
			return
		}
	}
}

// watchClient opens n watches with the client of net/http.
func (s *idle) watchClient(n int) {
	var readers sync.WaitGroup
	client := s.srv.Client()
	ctx, cancel := context.WithCancel(context.Background())
	s.b.Cleanup(func() {
		cancel()
		readers.Wait()
		client.CloseIdleConnections()
	})
	for range n {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.srv.URL+widgetsPath+idleQuery, http.NoBody)
		s.check(err)
		req.Header.Set("User-Agent", idleAgent)
		req.Header.Set("Accept", "application/json")
		resp, err := client.Do(req)
		s.check(err)
		if resp.StatusCode != http.StatusOK || resp.ProtoMajor != 2 {
			s.b.Fatalf("watch: %s %s", resp.Proto, resp.Status)
		}
		readers.Go(func() {
			defer resp.Body.Close()
			s.read(resp.Body, 1024)
		})
	}
}

// watchHTTP2 opens n watches with HTTP/2.
func (s *idle) watchHTTP2(n int, dial func() net.Conn) {
	clients := &sync.WaitGroup{}
	s.b.Cleanup(clients.Wait)
	for n > 0 {
		on := min(n, perConn)
		n -= on
		conn := dial()
		s.b.Cleanup(func() { _ = conn.Close() })
		c := &h2client{idle: s, Framer: http2.NewFramer(conn, conn), had: make([]tally, on), running: clients}
		_, err := io.WriteString(conn, http2.ClientPreface)
		s.check(err)
		clients.Go(c.read) // first, since a pipe has no buffer
		s.check(c.do(func() error { return c.WriteSettings() }))
		for i := range on {
			s.check(c.do(func() error { return c.request(uint32(2*i + 1)) }))
		}
	}
}

// h2client is one connection of HTTP/2 with watches.
type h2client struct {
	*idle
	*http2.Framer
	had     []tally
	running *sync.WaitGroup // the goroutines that read and answer, since a pipe has no buffer

	mu sync.Mutex // held while the Framer writes
}

func (c *h2client) do(write func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return write()
}

// request requests a watch.
func (c *h2client) request(stream uint32) error {
	var block bytes.Buffer
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "GET"},
		{":scheme", "https"},
		{":authority", "localhost"},
		{":path", widgetsPath + idleQuery},
		{"authorization", "Bearer " + c.srv.Token},
		{"user-agent", idleAgent},
		{"accept", "application/json"},
		{"accept-encoding", "gzip"},
	} {
		_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // written to a buffer; without the dynamic table, which has state
	}
	return c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
}

// read counts events until the connection ends. Two events fit in the first windows.
func (c *h2client) read() {
	for {
		f, err := c.ReadFrame()
		if err != nil {
			return
		}
		switch f := f.(type) {
		case *http2.DataFrame:
			c.add(&c.had[f.StreamID/2], f.Data())
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.running.Go(func() { _ = c.do(c.WriteSettingsAck) }) // the connection may be closed
			}
		case *http2.PingFrame:
			if !f.IsAck() {
				data := f.Data
				c.running.Go(func() { _ = c.do(func() error { return c.WritePing(true, data) }) })
			}
		}
	}
}
