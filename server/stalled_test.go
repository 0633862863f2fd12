package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"golang.org/x/net/http2"
)

// stallingConn is a client's connection that can stop reading forever.
type stallingConn struct {
	net.Conn
	stalled atomic.Bool
	closed  chan struct{}
}

func (c *stallingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.stalled.Load() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

// A client that stops reading a watch loses its connection, with every protocol, and resources that a blocked write holds are
// released.
func TestAStalledWatcherLosesItsConnection(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		for _, c := range []struct {
			limit, after time.Duration
			gone         bool
		}{{0, 5 * time.Minute, true}, {2 * time.Second, 10 * time.Second, true}, {time.Hour, 5 * time.Minute, false}} {
			t.Run(fmt.Sprint(name, "/", c.limit), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { stall(t, http2, c.limit, c.after, c.gone) })
			})
		}
	}
}

func stall(t *testing.T, http2 bool, limit, after time.Duration, gone bool) {
	srv := servertest.Start(t, server.Options{Limits: server.Limits{WriteTimeout: limit, MinWatchTimeout: 10 * time.Hour}}, widgets())
	defer func() { _ = srv.Close() }()
	var conn *stallingConn
	tr := srv.Transport()
	tr.ForceAttemptHTTP2 = http2
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		raw, err := srv.DialContext(ctx, network, addr)
		conn = &stallingConn{Conn: raw, closed: make(chan struct{})}
		return conn, err
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL+widgetsPath+"?watch=1", http.NoBody)
	req.Header.Set("Authorization", "Bearer "+srv.Token)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	if got := resp.ProtoMajor == 2; got != http2 {
		t.Fatalf("the watch is served over %s", resp.Proto)
	}
	defer tr.CloseIdleConnections()
	defer func() { _ = conn.Close(); close(conn.closed); _ = resp.Body.Close() }()

	conn.stalled.Store(true)
	admin := srv.Client()
	defer admin.CloseIdleConnections()
	much := strings.Repeat("x", 200<<10) // more than the buffers of a connection hold
	for _, name := range []string{"a", "b"} {
		code, text := call(t, admin, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"`+name+`","annotations":{"much":"`+much+`"}}}`)
		wantCode(t, 201, code, text)
		synctest.Wait()
	}

	time.Sleep(after)
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	rest, err := io.ReadAll(conn.Conn)
	if held := errors.Is(err, context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), "timeout"); held == gone {
		t.Errorf("after %v the server holds on to the connection of a client that does not read: %t; %d bytes, %v", after, held, len(rest), err)
	}
}

// A small answer that an authenticated client does not read is ended, too, over HTTP/2 with windows that are never opened. net/http
// writes it after its handler has ended.
func TestSmallAnswersThatAreNotRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := servertest.New(t, widgets())
		defer func() { _ = srv.Close() }()
		const streams = 50
		conn, framer := unopened(t, srv, "/nonexistent", streams, 0, 0)
		defer func() { _ = conn.Close() }()
		began := time.Now()
		for answered, reset := 0, 0; reset < streams; {
			f, err := framer.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch f.(type) {
			case *http2.HeadersFrame:
				answered++
			case *http2.RSTStreamFrame:
				if reset++; reset == 1 && answered != streams {
					t.Errorf("%d streams were answered", answered)
				}
			}
		}
		if took := time.Since(began); took < 30*time.Second || took > 31*time.Second {
			t.Errorf("the streams ended after %s", took)
		}
	})
}
