package server_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/servertest"
)

// stallingConn is a client's connection that can stop reading for good.
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

// A watcher that no longer reads costs the server its connection, whatever the protocol, and not for ever what a
// blocked write holds.
func TestAStalledWatcherLosesItsConnection(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { stall(t, http2) }) })
	}
}

func stall(t *testing.T, http2 bool) {
	srv := servertest.New(t, widgets())
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
	much := strings.Repeat("x", 200<<10) // more than a connection holds for a reader
	for _, name := range []string{"a", "b"} {
		code, text := call(t, admin, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"`+name+`","annotations":{"much":"`+much+`"}}}`)
		wantCode(t, 201, code, text)
		synctest.Wait()
	}

	time.Sleep(5 * time.Minute)
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	rest, err := io.ReadAll(conn.Conn)
	if errors.Is(err, context.DeadlineExceeded) || err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("the server holds on to the connection of a client that does not read: %d bytes, %v", len(rest), err)
	}
}
