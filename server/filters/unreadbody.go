package filters

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// defaultBodyGrace is how long a client has for the rest of a body that nobody reads.
const defaultBodyGrace = time.Second

// UnreadBody keeps clients from holding a connection of HTTP/1.1 by a body that they announce and do not send. net/http reads what
// a handler leaves of a body, before it writes the answer and after it, and waits for that without end. With the filter
// the client has grace for that from when the answer begins, and again from its end; 0 is 1 s. What has not come then is
// not waited for: the client has its answer, and the connection is closed. Before the answer to a GET or HEAD, whose body has
// no meaning (https://www.rfc-editor.org/rfc/rfc9110#section-9.3.1), nothing is waited for at all.
//
// How long the handler may read is for others to bound, such as [Timeout], which ends a read by its answer. HTTP/2 needs none
// of this: a stream ends without its body. The filter stands before those that may answer a request without reading it. The
// http.ResponseWriter it is given needs SetReadDeadline, as those of net/http have it.
func UnreadBody(grace time.Duration) Filter {
	if grace <= 0 {
		grace = defaultBodyGrace
	}
	return steps(func(p *passage, next http.Handler) bool {
		if p.r.ProtoMajor != 1 || p.r.Body == nil || p.r.Body == http.NoBody {
			return true
		}
		w := p.watch()
		b := &unreadBody{ReadCloser: p.r.Body, w: w, grace: grace, idle: p.r.Method == http.MethodGet || p.r.Method == http.MethodHead}
		p.r.Body, w.seen().body = b, b
		returned := false
		defer func() {
			w.seen().body = nil
			b.over(returned)
		}()
		p.to(next)
		returned = true
		return false
	})
}

// unreadBody is a request's body that knows whether it has been read to its end. Another goroutine than that of the answer may be
// reading it: see [Timeout].
type unreadBody struct {
	io.ReadCloser
	w      http.ResponseWriter
	grace  time.Duration
	idle   bool        // the body has no meaning
	duplex atomic.Bool // the handler reads on when the answer has begun
	read   atomic.Bool // to its end

	reading sync.WaitGroup // of discard

	mu   sync.Mutex // held by Read, and guards all below
	left bool       // it may be read no more
}

// Read implements io.Reader.
func (b *unreadBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.read.Store(true)
	}
	return n, err
}

// discard reads what the handler has left, in a goroutine that ends with the request: net/http notices that a client is gone by what it
// reads of it, and it reads nothing by itself before the body is read. A watch would not end.
func (b *unreadBody) discard() {
	const most = 256 << 10
	b.reading.Go(func() { _, _ = io.CopyN(io.Discard, b, most) }) // an error is that of the connection, or of over
}

// begins is told that the answer is about to begin.
func (b *unreadBody) begins() {
	switch {
	case b.read.Load(), b.duplex.Load():
	case b.idle:
		b.w.Header().Set("Connection", "close") // net/http then answers at once
		b.discard()
	default:
		_ = b.wait(b.grace)
	}
}

// over is told that the handlers are done, and whether they have returned.
func (b *unreadBody) over(returned bool) {
	if b.read.Load() {
		b.reading.Wait()
		return
	}
	if !b.mu.TryLock() {
		// A handler that has outlived its request reads, or discard. net/http would end that too, but take back the bound afterwards.
		if b.wait(0) != nil {
			return
		}
		b.mu.Lock()
	}
	b.left = true
	b.mu.Unlock()
	b.reading.Wait()
	grace := b.grace
	if !returned { // the connection is aborted
		grace = 0
	}
	_ = b.wait(grace)
}

// wait bounds what is read from now on; net/http takes the bound back when it waits for the next request. The error is that of a
// connection that is closed, or taken over, or of a ResponseWriter that has no deadlines.
func (b *unreadBody) wait(grace time.Duration) error {
	return http.NewResponseController(b.w).SetReadDeadline(time.Now().Add(grace))
}
