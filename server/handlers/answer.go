package handlers

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/keelson-dev/keelson/server/internal/gzipparts"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/klauspost/compress/gzip"
)

// gzipThreshold is the size above which a body is worth compressing.
const gzipThreshold = 128 << 10

// body writes the body of an answer. It compresses a large body if the client accepts gzip. If a write fails, the connection is
// aborted, so that the client does not take a part of the answer for the whole.
type body struct {
	c        *call
	zip      bool
	head     bool              // the request is HEAD: no body is written
	gz       *gzipparts.Writer // when zip
	held     *transport.Conn   // the connection of a long body; may be nil
	deadline bool
	header   [2]string // the values of the Content-Type and Content-Length headers
}

// longBody is the size, in bytes, above which the many writes of a body are gathered by the connection.
const longBody = 24 << 10

// buffered is the size, in bytes, up to which net/http keeps a body in memory until the handler has returned.
const buffered = 2 << 10

// endsWrites is implemented by a ResponseWriter that ends a blocked write by itself when the context of the request ends.
type endsWrites interface{ EndsWrites() }

// beginBody makes b the body of an answer, and writes the header. length is the number of bytes before compression. A negative
// length means that the body is large, and its length is not known.
func (c *call) beginBody(b *body, code int, mediaType string, length int64) {
	*b = body{c: c, head: c.r.Method == http.MethodHead}
	b.zip = (length < 0 || length > gzipThreshold) && request.AcceptsGzip(c.r)
	h := c.w.Header()
	b.header[0] = mediaType
	h["Content-Type"] = b.header[0:1:1]
	switch {
	case b.zip:
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		if !b.head {
			b.gz = c.joiner(c.w)
		}
	case length >= 0:
		b.header[1] = strconv.FormatInt(length, 10)
		h["Content-Length"] = b.header[1:2:2]
	}
	// A client that does not read must not make the server hold the content of the answer beyond the deadline of the request.
	if _, ends := c.w.(endsWrites); !ends && (length < 0 || length > buffered) {
		if at, ok := c.ctx.Deadline(); ok && http.NewResponseController(c.w).SetWriteDeadline(at) == nil {
			b.deadline = true
		}
	}
	// Only for HTTP/2: over HTTP/1.1 the end of an answer need not be a write of its own, and then gathered writes would not be
	// sent.
	if (length < 0 || length > longBody) && !b.head && c.r.ProtoMajor == 2 {
		b.held = transport.ConnOf(c.ctx)
		b.held.Hold()
	}
	c.w.WriteHeader(code)
}

// write writes a part of the body.
func (b *body) write(text []byte) {
	switch {
	case b.head || len(text) == 0:
	case b.zip:
		if _, err := b.gz.Write(text); err != nil {
			b.abort()
		}
	default:
		b.send(text)
	}
}

// writePart writes a part of the body that is compressed already.
func (b *body) writePart(p gzipparts.Part) {
	if b.head {
		return
	}
	if err := b.gz.WritePart(p); err != nil {
		b.abort()
	}
}

func (b *body) send(text []byte) {
	if _, err := b.c.w.Write(text); err != nil {
		b.abort()
	}
}

// end ends the body.
func (b *body) end() {
	if b.head || !b.zip {
		return
	}
	if err := b.gz.Close(); err != nil {
		b.abort()
	}
}

func (b *body) abort() {
	b.gz = nil // a write of HTTP/2 that has failed may be reading its buffers still
	panic(http.ErrAbortHandler)
}

// close releases what the body holds. It must always be called. net/http keeps the values of the header, and with them the body, until
// the client has received the answer. So the body must not keep the call.
func (b *body) close() {
	b.held.Release()
	if b.gz != nil {
		b.gz.Reset(io.Discard) // so that the pool does not hold the connection
		b.c.joiners.Put(b.gz)
		b.gz = nil
	}
	if b.deadline {
		_ = http.NewResponseController(b.c.w).SetWriteDeadline(time.Time{})
	}
	b.c = nil
}

// joiner returns a compressor for bodies that writes to w.
func (r *Resource) joiner(w io.Writer) *gzipparts.Writer {
	if z, ok := r.joiners.Get().(*gzipparts.Writer); ok {
		z.Reset(w)
		return z
	}
	return gzipparts.NewWriter(w)
}

// zipper returns a compressor for watches that writes to w. putZipper takes it back.
func (r *Resource) zipper(w http.ResponseWriter) *gzip.Writer {
	if z, ok := r.zippers.Get().(*gzip.Writer); ok {
		z.Reset(w)
		return z
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	return z
}

func (r *Resource) putZipper(z *gzip.Writer) {
	z.Reset(io.Discard) // so that the pool does not hold the connection
	r.zippers.Put(z)
}
