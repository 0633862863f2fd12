package transport_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/server/internal/transport"
)

// sent is a connection that records the bytes that it should send.
type sent struct {
	net.Conn // nil
	mu       sync.Mutex
	writes   []string
	deadline time.Time
	fails    error
	block    chan struct{} // a write waits until block is closed; nil: no write waits
}

func (s *sent) Write(p []byte) (int, error) {
	if s.block != nil {
		<-s.block
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		return 0, s.fails
	}
	s.writes = append(s.writes, string(p))
	return len(p), nil
}

func (s *sent) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = at
	return nil
}

func (s *sent) until() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deadline
}

func (s *sent) want(t *testing.T, want ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.writes, want) {
		t.Errorf("sent %q, want %q", s.writes, want)
	}
}

type one struct {
	net.Listener // nil
	conn         net.Conn
}

func (o one) Accept() (net.Conn, error) { return o.conn, nil }

func gathered(t *testing.T, below net.Conn) *transport.Conn {
	t.Helper()
	c, err := transport.NewListener(one{conn: below}, time.Second, nil).Accept()
	if err != nil {
		t.Fatal(err)
	}
	return transport.ConnOf(transport.ConnContext(t.Context(), c))
}

func write(t *testing.T, c net.Conn, p string) {
	t.Helper()
	if n, err := c.Write([]byte(p)); n != len(p) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &sent{}
		c := gathered(t, below)
		write(t, c, "a")
		below.want(t, "a")
		c.Hold()
		c.Hold()
		write(t, c, "b")
		write(t, c, "c")
		c.Release()
		write(t, c, "d") // another hold is active
		below.want(t, "a")
		c.Release()
		below.want(t, "a")
		write(t, c, "e")
		below.want(t, "a", "bcde")
		write(t, c, "f")
		time.Sleep(time.Minute)
		below.want(t, "a", "bcde", "f")
	})
}

// Kept bytes that no write sends are sent by a timer. Its deadline leaves other deadlines as they are.
func TestNobodySends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &sent{}
		c := gathered(t, below)
		c.Hold()
		for range 3 {
			write(t, c, "a")
			write(t, c, "b")
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		below.want(t, "ab", "ab", "ab")
		if !below.until().IsZero() {
			t.Errorf("the deadline is left at %v", below.until())
		}
		synctest.Wait()
		below.block = make(chan struct{})
		write(t, c, "c")
		time.Sleep(time.Millisecond) // the timer is blocked in its write
		first := below.until()
		if wait := time.Until(first); wait <= 0 || wait > time.Second {
			t.Errorf("the timer has %v", wait)
		}
		if err := c.SetWriteDeadline(time.Time{}); err != nil || !below.until().Equal(first) {
			t.Errorf("the end of another deadline ended that of the timer: %v, %v", below.until(), err)
		}
		later := time.Now().Add(time.Hour)
		if err := c.SetWriteDeadline(later); err != nil || !below.until().Equal(later) {
			t.Errorf("a deadline is not set while the timer sends: %v, %v", below.until(), err)
		}
		close(below.block)
		synctest.Wait()
		below.want(t, "ab", "ab", "ab", "c")
		if !below.until().Equal(later) {
			t.Errorf("the timer left the deadline at %v, want %v", below.until(), later)
		}
	})
}

// A client that takes a TLS record in the time of a write keeps its connection, however many bytes are kept. A client that takes
// less does not.
func TestASlowReader(t *testing.T) {
	const record, limit = 16 << 10, time.Second
	for _, timer := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			below, client := net.Pipe()
			c := gathered(t, below)
			got := make(chan int, 1)
			go func() {
				n, buf := 0, make([]byte, record)
				for {
					time.Sleep(limit - 50*time.Millisecond)
					some, err := client.Read(buf)
					if n += some; err != nil {
						got <- n
						return
					}
				}
			}()
			c.Hold()
			const all = 5*record + 100 // less than is sent at once
			for n := 0; n < all; n += record {
				_ = c.SetWriteDeadline(time.Now().Add(limit))
				write(t, c, string(make([]byte, min(record, all-n))))
			}
			if timer {
				_ = c.SetWriteDeadline(time.Time{})
				time.Sleep(time.Minute)
			}
			c.Release()
			_ = c.SetWriteDeadline(time.Now().Add(limit))
			write(t, c, "end")
			_ = c.Close()
			if n := <-got; n != all+len("end") {
				t.Errorf("the client has %d bytes of %d", n, all+len("end"))
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		below, client := net.Pipe()
		defer client.Close()
		c := gathered(t, below)
		defer c.Close()
		c.Hold()
		write(t, c, string(make([]byte, 5*record)))
		c.Release()
		for _, most := range []time.Duration{limit, 0} { // what the reader takes first is less than a record
			go func() { _, _ = client.Read(make([]byte, record-1)) }()
			start := time.Now()
			_ = c.SetWriteDeadline(start.Add(limit))
			if _, err := c.Write([]byte("end")); err == nil || time.Since(start) != most {
				t.Errorf("%v after %v, want %v", err, time.Since(start), most)
			}
		}
	})
}

func TestAFailureIsReportedToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		below := &sent{fails: broken}
		c := gathered(t, below)
		c.Hold()
		write(t, c, "a")
		time.Sleep(time.Millisecond)
		synctest.Wait()
		below.fails = nil
		for range 2 {
			if n, err := c.Write([]byte("b")); n != 0 || !errors.Is(err, broken) {
				t.Errorf("%d, %v", n, err)
			}
		}
		below.want(t)
	})
}

// With holds at any time, the bytes are those that were written, and there are fewer writes.
func TestTheBytesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := &sent{}
		c := gathered(t, below)
		var want bytes.Buffer
		writes, holds := 0, 0
		for range 600 {
			switch n := rand.IntN(20); {
			case n == 0 && holds < 3:
				c.Hold()
				holds++
			case n == 1 && holds > 0:
				c.Release()
				holds--
			case n == 2:
				time.Sleep(300 * time.Microsecond)
			default:
				p := make([]byte, rand.IntN(16407))
				for i := range p {
					p[i] = byte(want.Len() + i)
				}
				want.Write(p)
				writes++
				write(t, c, string(p))
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		var got bytes.Buffer
		for _, w := range below.writes {
			got.WriteString(w)
			if len(w) > 128<<10 {
				t.Errorf("%d bytes in a write", len(w))
			}
		}
		if got.String() != want.String() || len(below.writes) >= writes*3/4 {
			t.Errorf("%d bytes in %d writes, want %d of %d", got.Len(), len(below.writes), want.Len(), writes)
		}
	})
}

func TestNoConn(t *testing.T) {
	ctx := transport.ConnContext(t.Context(), &sent{})
	c := transport.ConnOf(ctx)
	c.Hold() // must not panic
	c.Release()
	if c != nil || transport.ConnOf(context.Background()) != nil {
		t.Error("there is one")
	}
}

// Over HTTP/2 a client gets the whole answer of a held connection, also if it has to read the kept bytes before it allows more.
func TestHTTP2(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := transport.ConnOf(r.Context())
		if c == nil || r.ProtoMajor != 2 {
			t.Errorf("%s, %v", r.Proto, c)
		}
		c.Hold()
		defer c.Release()
		_, _ = w.Write(body)
	}))
	s.EnableHTTP2 = true
	s.Listener = transport.NewListener(s.Listener, time.Second, nil)
	s.Config.ConnContext = transport.ConnContext
	s.StartTLS()
	defer s.Close()
	for _, window := range []int{1 << 16, 4 << 20} {
		tr := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs},
			HTTP2:           &http.HTTP2Config{MaxReceiveBufferPerStream: window, MaxReceiveBufferPerConnection: window}, ForceAttemptHTTP2: true,
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				resp, err := (&http.Client{Transport: tr}).Get(s.URL)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) {
					t.Errorf("%d bytes, %v", len(got), err)
				}
			})
		}
		wg.Wait()
		tr.CloseIdleConnections()
	}
}
