package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// frame is one of HTTP/2.
func frame(kind, flags byte, payload []byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	head = append(head, flags, 0, 0, 0, 1)
	return append(head, payload...)
}

// taken is a connection that records what is written to it.
type taken struct {
	net.Conn
	parts    [][]byte
	size     int // bytes written
	deadline time.Time
	bare     int   // writes without a deadline
	err      error // result of every write
}

func (c *taken) Write(p []byte) (int, error) {
	if c.deadline.IsZero() {
		c.bare++
	}
	if c.err != nil {
		return 0, c.err
	}
	c.parts = append(c.parts, bytes.Clone(p))
	c.size += len(p)
	return len(p), nil
}

func (c *taken) SetWriteDeadline(at time.Time) error {
	c.deadline = at
	return nil
}

func (c *taken) Close() error { return nil }

func (c *taken) all() []byte { return bytes.Join(c.parts, nil) }

func newFrames(c net.Conn) *frameConn {
	return &frameConn{Conn: c, pool: new(sync.Pool), limit: time.Minute, closed: make(chan struct{})}
}

// TestFramesAreSentWhole writes frames in any pieces. Everything written is sent when a frame ends with it, in order. Before that
// only bytes are sent that are too many to keep.
func TestFramesAreSentWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		var stream []byte
		ends := map[int]bool{0: true}
		for range 1 + r.IntN(20) {
			size := r.IntN(3000)
			switch r.IntN(6) {
			case 0:
				size = 0
			case 1:
				size = r.IntN(90 << 10)
			}
			stream = append(stream, frame(byte(r.IntN(10)), byte(r.IntN(2)), bytes.Repeat([]byte{byte(r.Uint32())}, size))...)
			ends[len(stream)] = true
		}
		under := &taken{}
		c := newFrames(under)
		most := []int{30, 120, 4096, 20000}[r.IntN(4)]
		for at := 0; at < len(stream); {
			next := min(len(stream), at+1+r.IntN(most))
			if n, err := c.Write(stream[at:next]); n != next-at || err != nil {
				t.Fatalf("%d of %d bytes: %v", n, next-at, err)
			}
			at = next
			sent := under.size
			switch {
			case c.at.inside() == ends[at]:
				t.Fatalf("%d is taken for a place inside a frame: %v", at, c.at.inside())
			case ends[at] && sent != at:
				t.Fatalf("%d of %d bytes are sent, which end with a frame", sent, at)
			case at-sent > mostHeld:
				t.Fatalf("%d bytes are held back", at-sent)
			case ends[at] && c.held != nil:
				t.Fatal("a connection at rest has a buffer")
			}
		}
		if !bytes.Equal(under.all(), stream) {
			t.Fatal("what is sent is not what was written")
		}
		if under.bare > 0 || !under.deadline.IsZero() {
			t.Fatalf("%d writes have no deadline, and after the last it is %v", under.bare, under.deadline)
		}
	}
}

// TestFramesAreSentInOneWrite checks that pieces that net/http writes because of its buffer of 4 KiB are one write again.
func TestFramesAreSentInOneWrite(t *testing.T) {
	var stream []byte
	for range 8 {
		stream = append(stream, frame(0, 0, make([]byte, 1700))...)
	}
	under := &taken{}
	c := newFrames(under)
	for rest := stream; len(rest) > 0; {
		n := min(4096, len(rest))
		if _, err := c.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if len(under.parts) != 1 || !bytes.Equal(under.all(), stream) {
		t.Errorf("%d writes", len(under.parts))
	}
}

func TestOpenData(t *testing.T) {
	for _, tt := range []struct {
		kind, flags byte
		want        bool
	}{{0, 0, true}, {0, 1, false}, {0, 8, true}, {1, 4, false}, {1, 5, false}, {3, 0, false}} {
		var at framePosition
		at.pass(frame(tt.kind, tt.flags, []byte("x")))
		if at.openData() != tt.want || at.inside() {
			t.Errorf("type %d, flags %d: %v", tt.kind, tt.flags, at.openData())
		}
	}
}

// TestFramesFail checks that Write returns the error of sending, and that nothing is kept after it.
func TestFramesFail(t *testing.T) {
	whole := frame(0, 0, make([]byte, 5000))
	under := &taken{err: errors.New("broken")}
	c := newFrames(under)
	if n, err := c.Write(whole[:4096]); n != 4096 || err != nil {
		t.Errorf("what is held back: %d, %v", n, err)
	}
	if n, err := c.Write(whole[4096:]); n != 0 || !errors.Is(err, under.err) || c.held != nil {
		t.Errorf("the rest: %d, %v", n, err)
	}
	if _, err := c.Write(whole); !errors.Is(err, under.err) {
		t.Errorf("a whole frame: %v", err)
	}
}

// TestFramesGiveUp checks that a client that does not read blocks a write only for the limit.
func TestFramesGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, client := net.Pipe()
		defer client.Close()
		c := newFrames(under)
		start := time.Now()
		if _, err := c.Write(frame(0, 1, make([]byte, 40<<10))); err == nil || time.Since(start) != c.limit {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		<-c.closed
	})
}

// TestFramesOfASlowReader checks that a client that reads one record in the time of a write keeps its connection.
func TestFramesOfASlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, client := net.Pipe()
		c := newFrames(under)
		done := make(chan int)
		go func() {
			defer close(done)
			n, buf := 0, make([]byte, fewBytes)
			for {
				time.Sleep(c.limit - time.Second)
				some, err := client.Read(buf)
				if n += some; err != nil {
					done <- n
					return
				}
			}
		}()
		whole := frame(0, 0, make([]byte, 60<<10))
		if n, err := c.Write(whole); n != len(whole) || err != nil {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
		_ = c.Close()
		if n := <-done; n != len(whole) {
			t.Errorf("the client has %d of %d bytes", n, len(whole))
		}
	})
}

// A buffer that has grown for a large frame is not kept for later frames.
func TestFramesKeepNoLargeBuffer(t *testing.T) {
	c := newFrames(&taken{})
	whole := frame(0, 0, make([]byte, 1<<20))
	for _, part := range [][]byte{whole[:9], whole[9:]} {
		if _, err := c.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if b, ok := c.pool.Get().(*[]byte); ok && cap(*b) > 2*mostHeld {
		t.Errorf("a buffer of %d bytes is kept", cap(*b))
	}
}

// TestUnfinishedHeaders checks that a header counts from its first frame to its last, however the bytes of the client are cut.
func TestUnfinishedHeaders(t *testing.T) {
	const data, headers, settings, continuation, endHeaders = 0, 1, 4, 9, 4
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		stream := []byte(http2Preface)
		var want []int // after each byte
		grow := func(f []byte, size func(at int) int) {
			for i := range f {
				want = append(want, size(i))
			}
			stream = append(stream, f...)
		}
		want = make([]int, len(stream))
		for range 1 + r.IntN(5) {
			held := 0
			for _, other := range []byte{settings, data, settings}[:r.IntN(4)] {
				grow(frame(other, endHeaders, make([]byte, r.IntN(30))), func(int) int { return 0 })
			}
			parts := 1 + r.IntN(4)
			for part := range parts {
				kind, flags := byte(headers), byte(1)
				if part > 0 {
					kind = continuation
				}
				if part == parts-1 {
					flags |= endHeaders
				}
				f := frame(kind, flags, make([]byte, r.IntN(40)))
				grow(f, func(at int) int {
					switch {
					case at < 8: // the head is incomplete
						return held
					case at == len(f)-1 && flags&endHeaders != 0:
						return 0
					}
					return held + at + 1
				})
				held += len(f)
			}
		}
		var h headerPosition
		// The first bytes of the head of a frame count with the rest of it.
		for at := 0; at < len(stream); {
			n := min(1+r.IntN(20), len(stream)-at)
			h.pass(stream[at:at+n], new(windows))
			at += n
			if got := h.size; got > want[at-1] || got < want[at-1]-8*8 {
				t.Fatalf("after %d bytes: %d, want %d", at, got, want[at-1])
			}
			if (h.size == 0) != (want[at-1] == 0) {
				t.Fatalf("after %d bytes: %d, want %d", at, h.size, want[at-1])
			}
		}
	}
}

// The windows of a client are those that its frames and the frames to it leave, however the frames are divided into reads and writes.
func TestWindowsOfAClient(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		stream, initial, conn := []byte(http2Preface), int64(defaultWindow), int64(defaultWindow)
		var sent []byte
		for range r.IntN(20) {
			switch r.IntN(4) {
			case 0:
				var settings []byte
				for range r.IntN(4) {
					id, value := uint16(1+r.IntN(6)), r.Uint32()>>1
					if settings = binary.BigEndian.AppendUint16(settings, id); id == 4 {
						initial = int64(value)
					}
					settings = binary.BigEndian.AppendUint32(settings, value)
				}
				stream = append(stream, frame(frameSettings, 0, settings)...)
			case 1:
				of, by := byte(r.IntN(2)), r.Uint32()>>8
				update := frame(frameWindowUpdate, 0, binary.BigEndian.AppendUint32(nil, by))
				if update[8] = of; of == 0 {
					conn += int64(by)
				}
				stream = append(stream, update...)
			case 2:
				stream = append(stream, frame(frameData, 0, make([]byte, r.IntN(30)))...) // of a body
			case 3:
				data := make([]byte, r.IntN(30))
				conn -= int64(len(data))
				sent = append(sent, frame(frameData, 0, data)...)
				sent = append(sent, frame(1, 4, make([]byte, r.IntN(5)))...)
			}
		}
		var w windows
		var h headerPosition
		for at := 0; at < len(stream); {
			n := min(1+r.IntN(12), len(stream)-at)
			h.pass(stream[at:at+n], &w)
			at += n
		}
		var f framePosition
		for at := 0; at < len(sent); {
			n := min(1+r.IntN(12), len(sent)-at)
			w.sent(f.pass(sent[at : at+n]))
			at += n
		}
		if gotInitial, gotConn := w.stream.Load()+defaultWindow, w.conn.Load()+defaultWindow; gotInitial != initial || gotConn != conn {
			t.Fatalf("windows of %d and %d bytes, want %d and %d", gotInitial, gotConn, initial, conn)
		}
	}
}
