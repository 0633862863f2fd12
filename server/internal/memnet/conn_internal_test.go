package memnet

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/nettest"
)

func TestConnIsAConnection(t *testing.T) {
	t.Parallel()
	nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
		a, b := newConns(addr("localhost:443"), nil)
		return a, b, func() { _, _ = a.Close(), b.Close() }, nil
	})
}

// Bytes written before Close can be read after it, and a write needs no concurrent read.
func TestWhatWasWrittenOutlivesClose(t *testing.T) {
	t.Parallel()
	client, server := newConns(addr("localhost:443"), nil)
	want := bytes.Repeat([]byte("x"), connBuffer)
	if n, err := server.Write(want); n != len(want) || err != nil {
		t.Fatalf("wrote %d bytes: %v", n, err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(client); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes of %d: %v", len(got), len(want), err)
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a write to an end that has gone: %v, want EPIPE", err)
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a read after Close: %v, want net.ErrClosed", err)
	}
}

// The buffer of a connection is bounded. A blocked writer does not keep a bubble from being idle, and time passes in the bubble.
func TestAWriterWaitsForRoom(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		meanwhile func(client, server net.Conn)
		want      error
		after     time.Duration
		wrote     int
	}{
		"the reader reads": {func(client, _ net.Conn) { _, _ = io.ReadFull(client, make([]byte, 1000)) }, nil, time.Hour, connBuffer + 1000},
		"its deadline":     {func(_, server net.Conn) { _ = server.SetWriteDeadline(time.Now().Add(time.Minute)) }, os.ErrDeadlineExceeded, time.Hour + time.Minute, connBuffer},
		"the reader goes":  {func(client, _ net.Conn) { _ = client.Close() }, syscall.EPIPE, time.Hour, connBuffer},
		"it goes itself":   {func(_, server net.Conn) { _ = server.Close() }, net.ErrClosed, time.Hour, connBuffer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, server := newConns(addr("localhost:443"), nil)
				began, wrote, got, ended := time.Now(), 0, error(nil), false
				var all sync.WaitGroup
				all.Go(func() {
					wrote, got = server.Write(make([]byte, connBuffer+1000))
					ended = true
				})
				time.Sleep(time.Hour)
				synctest.Wait()
				if ended {
					t.Fatalf("wrote %d bytes that nobody read: %v", wrote, got)
				}
				test.meanwhile(client, server)
				all.Wait()
				if took := time.Since(began); wrote != test.wrote || !errors.Is(got, test.want) || took != test.after {
					t.Errorf("wrote %d bytes in %v: %v; want %d, %v, %v", wrote, took, got, test.wrote, test.after, test.want)
				}
			})
		})
	}
}

// Concurrent writes are not mixed.
func TestWritesStayWhole(t *testing.T) {
	t.Parallel()
	client, server := newConns(addr("localhost:443"), nil)
	var all sync.WaitGroup
	const size = 3 * connBuffer
	for _, letter := range []string{"a", "b"} {
		all.Go(func() {
			if _, err := server.Write(bytes.Repeat([]byte(letter), size)); err != nil {
				t.Error(err)
			}
		})
	}
	got := make([]byte, 2*size)
	if _, err := io.ReadFull(client, got); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if first := bytes.Count(got[:size], got[:1]); first != size {
		t.Errorf("the first write was interrupted: %d bytes of %d are its own", first, size)
	}
}
