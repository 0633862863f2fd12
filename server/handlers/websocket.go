package handlers

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/keelson-dev/keelson/server/handlers/internal/wire"
)

// socketCloseTime is how long a client has to respond when the server closes a WebSocket.
const socketCloseTime = 5 * time.Second

// hijacked is a ResponseWriter for a connection that was hijacked before. It writes the answer to the handshake.
type hijacked struct {
	conn   net.Conn
	rw     *bufio.ReadWriter
	header http.Header
}

func (h *hijacked) Header() http.Header { return h.header }

// WriteHeader implements http.ResponseWriter. After the header of a refusal, the connection sends nothing but the body of it.
func (h *hijacked) WriteHeader(code int) {
	head := http.Response{StatusCode: code, ProtoMajor: 1, ProtoMinor: 1, Header: h.header}
	if code != http.StatusSwitchingProtocols {
		head.ContentLength, head.Close = -1, true
	}
	_ = head.Write(h.rw)
	_ = h.rw.Flush() // after an error, the first write to the connection fails, too
}

func (h *hijacked) Write(p []byte) (int, error) { return h.rw.Write(p) }

// Hijack implements http.Hijacker.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.conn, h.rw, nil }

// offered returns the subprotocol to select: the first that the client offers and that does not carry a credential. nil selects
// none.
func offered(h http.Header) []string {
	for _, line := range h.Values("Sec-WebSocket-Protocol") {
		for p := range strings.SplitSeq(line, ",") {
			if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, "base64url.bearer.authorization.k8s.io.") {
				return []string{p}
			}
		}
	}
	return nil
}

type socketSink struct {
	conn   *websocket.Conn
	raw    net.Conn // the connection that conn uses
	writer *wire.Writer
	limit  time.Duration
	frame  []byte // the frame of the next event, or of the last
}

func (s *socketSink) begin() {}

func (s *socketSink) buffer() *[]byte {
	s.frame = s.frame[:0]
	return &s.frame
}

func (s *socketSink) event() error { return s.shared(s.frame) }

func (s *socketSink) shared(event []byte) error {
	if s.limit > 0 {
		if err := s.raw.SetWriteDeadline(time.Now().Add(s.limit)); err != nil {
			return errSinkClosed
		}
	}
	kind := websocket.MessageBinary
	message, text := s.writer.Message(event)
	if text {
		kind = websocket.MessageText
	}
	if err := s.conn.Write(context.Background(), kind, message); err != nil {
		return errSinkClosed
	}
	return nil
}

// flush drops a large frame, so that an idle watch holds no memory for it.
func (s *socketSink) flush() error {
	if cap(s.frame) > freeEvents {
		s.frame = nil
	}
	return nil
}

func (s *socketSink) close() {}
