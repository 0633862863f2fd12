package filters

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// defaultBodyGrace is the time that a client has for sending the rest of a body that the handler did not read.
const defaultBodyGrace = time.Second

// UnreadBody prevents a client from holding a connection of HTTP/1.1 by announcing a body and not sending it. net/http reads the
// part of a body that the handler has not read, before and after it writes the answer, and waits for it without a bound. With the
// filter the client has the time grace to send the rest of the body when the answer begins, and again when the answer ends; a
// grace of 0 is 1 s. After that the server does not wait any longer: the client has its answer, and the connection is closed. The
// body of a GET or HEAD has no meaning (https://www.rfc-editor.org/rfc/rfc9110#section-9.3.1), and the answer does not wait for
// it at all.
//
// The filter does not bound how long the handler may read. Other filters do, such as [Timeout], whose answer ends a read. HTTP/2
// does not need the filter, since a stream can end before its body does. The filter belongs around all filters that may answer a
// request without reading its body. The http.ResponseWriter needs the method SetReadDeadline, which those of net/http have.
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

// unreadBody is the body of a request that records whether it has been read to its end. The goroutine that reads it need not be
// that of the answer: see [Timeout].
type unreadBody struct {
	io.ReadCloser
	w      http.ResponseWriter
	grace  time.Duration
	idle   bool        // the body has no meaning
	duplex atomic.Bool // the handler reads after the answer has begun
	read   atomic.Bool // the body has been read to its end

	reading sync.WaitGroup // waits for discard

	mu   sync.Mutex // held by Read; guards all below
	left bool       // the body must not be read any more
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

// discard reads the rest of the body, in a goroutine that ends with the request. net/http notices that a client has gone by a
// read of the connection, and makes such a read only after the body has been read. Without discard a watch would not end.
func (b *unreadBody) discard() {
	const most = 256 << 10
	b.reading.Go(func() { _, _ = io.CopyN(io.Discard, b, most) }) // an error is one of the connection, or the end of the request
}

// begins is called when the answer is about to begin.
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

// over is called when the handlers have ended. returned is false if they panicked.
func (b *unreadBody) over(returned bool) {
	if b.read.Load() {
		b.reading.Wait()
		return
	}
	if !b.mu.TryLock() {
		// A handler that has outlived its request is reading, or discard is. net/http would end that read, too, but would then
		// remove the deadline.
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

// wait sets a deadline for reads from now on. net/http removes it when it waits for the next request. The error is that of a
// connection that is closed or hijacked, or of a ResponseWriter that has no deadlines.
func (b *unreadBody) wait(grace time.Duration) error {
	return http.NewResponseController(b.w).SetReadDeadline(time.Now().Add(grace))
}
