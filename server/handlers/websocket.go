package handlers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/websocket"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// isWebSocket reports whether the client asks for a WebSocket (RFC 6455).
func isWebSocket(r *http.Request) bool {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return false
	}
	for token := range strings.SplitSeq(strings.Join(r.Header.Values("Connection"), ","), ",") {
		if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
			return true
		}
	}
	return false
}

// serveWebSocket runs a watch over a WebSocket: one message an event, text for JSON. The client sends nothing; that it
// closes is noticed by reading.
func (w *watching) serveWebSocket(ctx context.Context) {
	conn, rw, err := http.NewResponseController(w.w).Hijack()
	if err != nil { // HTTP/2, or a ResponseWriter that cannot
		w.fail(apierrors.NewBadRequest(fmt.Sprintf("unable to upgrade to a websocket: %v", err)))
		return
	}
	server := websocket.Server{
		Handshake: func(config *websocket.Config, _ *http.Request) error {
			config.Protocol = offered(config.Protocol)
			config.Header = http.Header{"Content-Type": {w.form.streamType()}}
			return nil
		},
		Handler: func(conn *websocket.Conn) {
			ctx, cancel := context.WithCancel(ctx)
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				defer cancel()
				_, _ = io.Copy(io.Discard, conn) // until the connection ends, for whatever reason
			}()
			w.run(ctx, &socketSink{conn: conn, form: w.form, limit: w.Resource.write})
			_ = conn.Close()
			<-gone
		},
	}
	server.ServeHTTP(hijacked{w.w, conn, rw}, w.r)
}

// hijacked is a ResponseWriter whose connection was taken over already.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
	rw   *bufio.ReadWriter
}

// Hijack implements http.Hijacker.
func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.conn, h.rw, nil }

// offered is the subprotocol to agree on: the first that does not carry a credential.
func offered(protocols []string) []string {
	for _, p := range protocols {
		if !strings.HasPrefix(p, "base64url.bearer.authorization.k8s.io.") {
			return []string{p}
		}
	}
	return nil
}

// protobufFrameHead is what an event in protobuf has before it in a stream of bytes: its length.
const protobufFrameHead = 4

type socketSink struct {
	conn  *websocket.Conn
	form  *encoding
	limit time.Duration
	frame []byte // of the event to come, or of the last
}

func (s *socketSink) begin() {}

func (s *socketSink) buffer() *[]byte {
	s.frame = s.frame[:0]
	return &s.frame
}

func (s *socketSink) event() error {
	frame := s.frame
	if s.limit > 0 {
		if err := s.conn.SetWriteDeadline(time.Now().Add(s.limit)); err != nil {
			return errSinkClosed
		}
	}
	message := any(string(frame)) // a text message
	switch {
	case s.form.proto != nil:
		message = frame[protobufFrameHead:] // the message has its length already
	case s.form.Format.MediaType() != "application/json":
		message = frame
	}
	if err := websocket.Message.Send(s.conn, message); err != nil {
		return errSinkClosed
	}
	return nil
}

func (s *socketSink) flush() error { return nil }

func (s *socketSink) close() {}
