package handlers

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/keelson-dev/keelson/server/gzipparts"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/klauspost/compress/gzip"
)

// gzipThreshold is the size above which a body is worth compressing.
const gzipThreshold = 128 << 10

// body writes the answer's body, compressed when the client takes gzip and it is large. Once a write has failed
// the connection is aborted: what the client has is not the whole answer.
type body struct {
	c        *call
	zip      bool
	head     bool              // of the body nothing is written
	gz       *gzipparts.Writer // when zip
	deadline bool
}

// newBody begins an answer, of length bytes before they are compressed; a negative one is large and not known.
func (c *call) newBody(code int, mediaType string, length int64) *body {
	b := &body{c: c, head: c.r.Method == http.MethodHead}
	b.zip = (length < 0 || length > gzipThreshold) && request.AcceptsGzip(c.r)
	h := c.w.Header()
	h.Set("Content-Type", mediaType)
	switch {
	case b.zip:
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		if !b.head {
			b.gz = c.joiner(c.w)
		}
	case length >= 0:
		h.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	// A client that does not read must not hold what the answer is made from beyond the request's own time.
	if at, ok := c.ctx.Deadline(); ok && http.NewResponseController(c.w).SetWriteDeadline(at) == nil {
		b.deadline = true
	}
	c.w.WriteHeader(code)
	return b
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

// writePart writes a part that is compressed.
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

// close releases what the body holds; it is called in any case.
func (b *body) close() {
	if b.gz != nil {
		b.gz.Reset(io.Discard) // so that it does not hold the connection
		b.c.joiners.Put(b.gz)
		b.gz = nil
	}
	if b.deadline {
		_ = http.NewResponseController(b.c.w).SetWriteDeadline(time.Time{})
	}
}

// joiner returns a compressor that writes to w.
func (r *Resource) joiner(w io.Writer) *gzipparts.Writer {
	if z, ok := r.joiners.Get().(*gzipparts.Writer); ok {
		z.Reset(w)
		return z
	}
	return gzipparts.NewWriter(w)
}

// zipper returns a compressor that writes to w; putZipper takes it back.
func (r *Resource) zipper(w http.ResponseWriter) *gzip.Writer {
	if z, ok := r.zippers.Get().(*gzip.Writer); ok {
		z.Reset(w)
		return z
	}
	z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is valid
	return z
}

func (r *Resource) putZipper(z *gzip.Writer) {
	z.Reset(io.Discard) // so that it does not hold the connection
	r.zippers.Put(z)
}
