package handlers

import (
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/klauspost/compress/gzip"
)

// errSinkClosed is returned by a sink whose client is gone.
var errSinkClosed = errors.New("the client is gone")

// sink writes the events of a watch to the client.
type sink interface {
	// begin sends the header, so that the client can see that the watch has begun.
	begin()
	// buffer returns the buffer to append the next event to, after the bytes that it contains. The buffer is valid until event is
	// called.
	buffer() *[]byte
	// event takes the event that was appended to the buffer. The sink may keep the event until flush.
	event() error
	// shared writes an event after those that were appended. It must not change the bytes of the event.
	shared(event []byte) error
	// flush sends the events that event and shared took.
	flush() error
	// close releases what the sink holds.
	close()
}

// eventsPart is about how many bytes of events are gathered between two writes.
const eventsPart = 128 << 10

// httpSink writes a watch as the body of a response, one event after the other. With gzip, each flush writes one gzip member, so
// that the client can decompress each event when it is sent.
type httpSink struct {
	*watching
	control *http.ResponseController
	under   *transport.Write // the running write; nil before the first
	zip     bool

	// Set between the first event and the flush; nil in an idle watch.
	buf *[]byte
	gz  *gzip.Writer // when zip
}

func (w *watching) newHTTPSink() *httpSink {
	list := w.asked.SendInitialEvents != nil && *w.asked.SendInitialEvents && w.asked.AllowWatchBookmarks
	return &httpSink{watching: w, control: http.NewResponseController(w.w), zip: list && request.AcceptsGzip(w.r)}
}

func (s *httpSink) begin() {
	h := s.w.Header()
	h.Set("Content-Type", s.writer.StreamType())
	if s.zip {
		h.Set("Content-Encoding", "gzip")
		h.Add("Vary", "Accept-Encoding")
	}
	s.w.WriteHeader(http.StatusOK)
	if s.r.Method == http.MethodHead { // the end of the answer sends the header
		return
	}
	s.under = new(transport.Write)
	s.writeLimit.Join(s.under, s.control)
	s.writeLimit.Begins(s.under)
	s.wrote(s.control.Flush())
}

func (s *httpSink) buffer() *[]byte {
	if s.buf == nil {
		s.buf = s.takeBuffer()
	}
	return s.buf
}

func (s *httpSink) event() error {
	if len(*s.buf) > eventsPart {
		s.writeLimit.Begins(s.under)
		s.wrote(s.write())
	}
	return nil
}

func (s *httpSink) shared(event []byte) error {
	s.writeLimit.Begins(s.under)
	err := s.write()
	if err == nil {
		err = s.writeText(event)
	}
	s.wrote(err)
	return nil
}

func (s *httpSink) flush() error {
	s.writeLimit.Begins(s.under)
	s.wrote(s.send())
	s.release()
	return nil
}

// send writes the events that event took, and flushes them.
func (s *httpSink) send() error {
	if err := s.write(); err != nil {
		return err
	}
	if s.gz != nil {
		// Flush comes before Close: a reader that looks for the next member immediately after the last byte has then delivered
		// all bytes of this member.
		if err := errors.Join(s.gz.Flush(), s.gz.Close()); err != nil {
			return err
		}
	}
	return s.control.Flush()
}

func (s *httpSink) write() error {
	if s.buf == nil || len(*s.buf) == 0 {
		return nil
	}
	err := s.writeText(*s.buf)
	*s.buf = (*s.buf)[:0]
	return err
}

func (s *httpSink) writeText(text []byte) (err error) {
	if !s.zip {
		_, err = s.w.Write(text)
		return err
	}
	if s.gz == nil {
		s.gz = s.zipper(s.w)
	}
	_, err = s.gz.Write(text)
	return err
}

// wrote ends a write that has returned err. It aborts the connection if the client has blocked the write for too long, or is
// gone.
func (s *httpSink) wrote(err error) {
	inTime := s.writeLimit.Ends(s.under)
	if !inTime || err != nil && !errors.Is(err, http.ErrNotSupported) {
		s.buf, s.gz = nil, nil // a failed write of HTTP/2 may still read them
		panic(http.ErrAbortHandler)
	}
}

// release gives up what an idle watch does not need.
func (s *httpSink) release() {
	if s.gz != nil {
		s.putZipper(s.gz)
		s.gz = nil
	}
	if s.buf != nil {
		s.giveBuffer(s.buf)
		s.buf = nil
	}
}

func (s *httpSink) close() {
	if s.under != nil {
		s.writeLimit.Leave(s.under)
		s.under = nil
	}
	s.release()
}

// takeBuffer returns an empty buffer. giveBuffer returns it to the pool.
func (r *Resource) takeBuffer() *[]byte {
	if b, ok := r.buffers.Get().(*[]byte); ok {
		*b = (*b)[:0]
		return b
	}
	return new([]byte)
}

func (r *Resource) giveBuffer(b *[]byte) {
	const most = 1 << 20 // larger buffers are left to the garbage collector
	if cap(*b) <= most {
		r.buffers.Put(b)
	}
}
