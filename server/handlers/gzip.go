package handlers

import (
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/keelson-dev/keelson/server/request"
)

// gzipThreshold is the size above which a body is worth compressing.
const gzipThreshold = 128 << 10

// body writes the answer's body, compressed when the client takes gzip and it is large. Once a write has failed
// the connection is aborted: what the client has is not the whole answer.
type body struct {
	c         *call
	code      int
	mediaType string
	gz        *gzip.Writer // nil: identity
	started   bool
	deadline  bool
}

func (c *call) newBody(code int, mediaType string) *body {
	return &body{c: c, code: code, mediaType: mediaType}
}

// write writes a part of the body which is not the last; the first must be larger than gzipThreshold.
func (b *body) write(part []byte) {
	if !b.started {
		b.start(len(part) > gzipThreshold && request.AcceptsGzip(b.c.r))
	}
	if b.c.r.Method == http.MethodHead {
		return
	}
	var err error
	if b.gz != nil {
		_, err = b.gz.Write(part)
	} else {
		_, err = b.c.w.Write(part)
	}
	if err != nil {
		b.abort()
	}
}

// end writes the last part.
func (b *body) end(part []byte) {
	if !b.started && (len(part) <= gzipThreshold || !request.AcceptsGzip(b.c.r)) {
		b.c.w.Header().Set("Content-Length", strconv.Itoa(len(part)))
	}
	b.write(part)
	if b.gz != nil && b.c.r.Method != http.MethodHead {
		if err := b.gz.Close(); err != nil {
			b.abort()
		}
	}
}

func (b *body) abort() {
	b.gz = nil // a write of HTTP/2 that has failed may be reading its buffers still
	panic(http.ErrAbortHandler)
}

// close releases what the body holds; it is called in any case.
func (b *body) close() {
	if b.gz != nil {
		b.c.putZipper(b.gz)
		b.gz = nil
	}
	if b.deadline {
		_ = http.NewResponseController(b.c.w).SetWriteDeadline(time.Time{})
	}
}

func (b *body) start(zip bool) {
	b.started = true
	h := b.c.w.Header()
	h.Set("Content-Type", b.mediaType)
	if zip {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
		b.gz = b.c.zipper(b.c.w)
	}
	// A client that does not read must not hold what the answer is made from beyond the request's own time.
	if at, ok := b.c.ctx.Deadline(); ok && http.NewResponseController(b.c.w).SetWriteDeadline(at) == nil {
		b.deadline = true
	}
	b.c.w.WriteHeader(b.code)
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
