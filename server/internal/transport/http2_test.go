package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// serving is a server of HTTP/1.1 and HTTP/2.
func serving(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *HTTP2) {
	t.Helper()
	ts := httptest.NewUnstartedServer(handler)
	ts.EnableHTTP2 = true
	ts.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100}
	h2 := ServeHTTP2(ts.Config, time.Minute)
	ts.StartTLS()
	t.Cleanup(func() {
		ts.Close()
		h2.End()
	})
	return ts, h2
}

// TestHTTP2Streams checks that many streams of one connection that write at the same time send all bytes, in order, in small and
// in large parts.
func TestHTTP2Streams(t *testing.T) {
	const streams, events = 60, 40
	var turn [events]chan struct{}
	for i := range turn {
		turn[i] = make(chan struct{})
	}
	ts, _ := serving(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.TLS == nil || r.TLS.NegotiatedProtocol != "h2" {
			t.Errorf("%s, %+v", r.Proto, r.TLS)
		}
		for i, next := range turn {
			select {
			case <-next:
			case <-r.Context().Done():
				return
			}
			fmt.Fprintf(w, "%s %d %s\n", r.URL.Path, i, strings.Repeat("x", []int{10, 1700, 1700, 5000, 40000}[i%5]))
			_ = http.NewResponseController(w).Flush()
		}
	})
	var all sync.WaitGroup
	client := ts.Client()
	for n := range streams {
		all.Go(func() {
			resp, err := client.Get(fmt.Sprintf("%s/%d", ts.URL, n))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			lines.Buffer(nil, 64<<10)
			i := 0
			for ; lines.Scan(); i++ {
				if want := fmt.Sprintf("/%d %d ", n, i); !strings.HasPrefix(lines.Text(), want) {
					t.Errorf("%.20q, want %q", lines.Text(), want)
				}
			}
			if i != events || lines.Err() != nil {
				t.Errorf("stream %d has %d of %d events: %v", n, i, events, lines.Err())
			}
		})
	}
	for _, next := range turn {
		close(next)
	}
	all.Wait()
}

// TestHTTP2ConnContext checks that the context of a request has the values of the server's ConnContext, which gets a connection
// that leads to the one beneath.
func TestHTTP2ConnContext(t *testing.T) {
	type key struct{}
	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(key{}).(interface{ NetConn() net.Conn })
		if !ok {
			t.Errorf("%T", r.Context().Value(key{}))
			return
		}
		if _, ok := c.NetConn().(*tls.Conn); !ok {
			t.Errorf("beneath is %T", c.NetConn())
		}
	}))
	ts.EnableHTTP2 = true
	ts.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, key{}, c) }
	h2 := ServeHTTP2(ts.Config, time.Minute)
	ts.StartTLS()
	defer func() { ts.Close(); h2.End() }()
	resp, err := ts.Client().Get(ts.URL)
	if err != nil || resp.ProtoMajor != 2 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}

// TestHTTP1BesideHTTP2 checks that a client that does not offer HTTP/2 gets HTTP/1.1.
func TestHTTP1BesideHTTP2(t *testing.T) {
	ts, _ := serving(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })
	tr := ts.Client().Transport.(*http.Transport).Clone()
	tr.ForceAttemptHTTP2, tr.TLSClientConfig.NextProtos = false, nil
	tr.Protocols = new(http.Protocols)
	tr.Protocols.SetHTTP1(true)
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get(ts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "HTTP/1.1" {
		t.Errorf("%s %v", text, err)
	}
}

// TestHTTP2IsRefused checks that a connection that is not secure enough for HTTP/2 gets a GOAWAY with that reason.
func TestHTTP2IsRefused(t *testing.T) {
	ts, _ := serving(t, func(http.ResponseWriter, *http.Request) { t.Error("a request is served") })
	config := ts.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos, config.MaxVersion = []string{"h2"}, tls.VersionTLS12
	for suite, want := range map[uint16]string{
		tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA: inadequate,
	} {
		config.CipherSuites = []uint16{suite}
		conn, err := tls.Dial("tcp", ts.Listener.Addr().String(), config)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(conn); string(got) != want {
			t.Errorf("%s: %q", tls.CipherSuiteName(suite), got)
		}
		_ = conn.Close()
	}
}

// TestHTTP2Preface checks that the connection of a client that negotiates HTTP/2 and does not use it is closed soon, however long
// headers may take.
func TestHTTP2Preface(t *testing.T) {
	ts, _ := serving(t, func(http.ResponseWriter, *http.Request) {})
	certificates := ts.TLS.Certificates
	synctest.Test(t, func(t *testing.T) {
		hs := &http.Server{ReadHeaderTimeout: time.Hour}
		h2 := ServeHTTP2(hs, time.Minute)
		defer h2.End()
		below, other := net.Pipe()
		defer other.Close()
		client := tls.Client(other, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		go func() { _, _ = io.Copy(io.Discard, client) }()
		server := tls.Server(below, &tls.Config{Certificates: certificates, NextProtos: []string{"h2"}})
		if err := server.Handshake(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		h2.take(hs, server, nil)
		if took := time.Since(start); took != prefaceTimeout {
			t.Errorf("it is left after %v", took)
		}
	})
}

// TestHTTP2Shutdown checks that clients get a GOAWAY when the server ends, that requests that have begun finish, and that
// Shutdown then returns.
func TestHTTP2Shutdown(t *testing.T) {
	begun, finish := make(chan struct{}), make(chan struct{})
	ts, h2 := serving(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		close(begun)
		<-finish
		fmt.Fprint(w, "done")
	})
	resp, err := ts.Client().Get(ts.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-begun
	over := make(chan error)
	go func() { over <- ts.Config.Shutdown(context.Background()) }()
	<-h2.gone // it accepts no more
	select {
	case err := <-over:
		t.Errorf("it ends before its request: %v", err)
	default:
	}
	close(finish)
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "done" {
		t.Errorf("%q, %v", text, err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	h2.End()
}
