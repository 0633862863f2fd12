package storagetest_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage/storagetest"
)

// echo is a server that sends back what it receives, and ends when its client has ended.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	return l.Addr().String()
}

func dial(t *testing.T, p *storagetest.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(storagetest.Timeout))
	return c
}

// say sends a text and waits for its echo.
func say(c net.Conn, s string) error {
	if _, err := io.WriteString(c, s); err != nil {
		return err
	}
	got := make([]byte, len(s))
	if _, err := io.ReadFull(c, got); err != nil {
		return err
	}
	if string(got) != s {
		return errors.New("another text came back")
	}
	return nil
}

func TestProxyPasses(t *testing.T) {
	p := storagetest.NewProxy(t, echo(t))
	for range 3 {
		c := dial(t, p)
		if err := say(c, strings.Repeat("0123456789", 10_000)); err != nil {
			t.Fatal(err)
		}
		// The end of one direction is forwarded, and nothing before it is lost.
		if _, err := io.WriteString(c, "last"); err != nil {
			t.Fatal(err)
		}
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(c); err != nil || string(got) != "last" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestProxyCut(t *testing.T) {
	p := storagetest.NewProxy(t, echo(t))
	c := dial(t, p)
	if err := say(c, "a"); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if _, err := io.ReadAll(c); err == nil {
		t.Error("the connection has ended in order, want a reset")
	}
	if err := say(dial(t, p), "b"); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

func TestProxyRefuse(t *testing.T) {
	p := storagetest.NewProxy(t, echo(t))
	c := dial(t, p)
	if err := say(c, "a"); err != nil {
		t.Fatal(err)
	}
	p.Refuse()
	if err := say(c, "b"); err == nil {
		t.Error("the connection goes on")
	}
	if fresh, err := net.Dial("tcp", p.Addr()); err == nil { // it may be broken before it is made
		defer fresh.Close()
		if err := say(fresh, "c"); err == nil {
			t.Error("a new connection is served")
		}
	}
	p.Heal()
	if err := say(dial(t, p), "d"); err != nil {
		t.Errorf("healed: %v", err)
	}
}

func TestProxyBlackHole(t *testing.T) {
	p := storagetest.NewProxy(t, echo(t))
	c := dial(t, p)
	if err := say(c, "a"); err != nil {
		t.Fatal(err)
	}
	p.BlackHole()
	fresh := dial(t, p)
	for _, c := range []net.Conn{c, fresh} {
		if _, err := io.WriteString(c, "b"); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	p.Heal()
	for _, c := range []net.Conn{c, fresh} {
		_ = c.SetDeadline(time.Now().Add(storagetest.Timeout))
		got := make([]byte, 1)
		if _, err := io.ReadFull(c, got); err != nil || got[0] != 'b' {
			t.Errorf("healed: %q, %v; want what was sent before", got, err)
		}
	}
	p.BlackHole()
	p.Cut() // ends what hangs
	if _, err := io.ReadAll(c); err == nil {
		t.Error("the connection has ended in order, want a reset")
	}
}

func TestProxyThrottle(t *testing.T) {
	p := storagetest.NewProxy(t, echo(t))
	p.Throttle(100_000)
	c, begun := dial(t, p), time.Now()
	if err := say(c, strings.Repeat("x", 20_000)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took < 100*time.Millisecond { // both directions take 200 ms, partly at the same time
		t.Errorf("20 kB at 100 kB/s took %v", took)
	}
	p.Heal()
	if err := say(c, strings.Repeat("x", 100_000)); err != nil {
		t.Fatal(err)
	}
}
