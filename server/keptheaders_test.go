package server_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// The header of a request is not kept until the client has received the answer, which a client that opens no windows never does. The
// test is not parallel, because it measures the heap.
func TestHeadersAreNotKeptForAnswers(t *testing.T) {
	for _, path := range []string{"/nonexistent", "/version", widgetsPath, widgetsPath + "/a", widgetsPath + "/none"} {
		srv, err := servertest.Run(server.Options{Groups: []server.Group{widgets()}})
		if err != nil {
			t.Fatal(err)
		}
		client := srv.Client()
		call(t, client, "POST", srv.URL+widgetsPath, `{"metadata":{"name":"a"}}`)
		const streams, fields, size = 50, 500, 1000 // 25 MB
		before := liveHeap()
		conn, framer := unopened(t, srv, path, streams, fields, size)
		for answered := 0; answered < streams; {
			f, err := framer.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if f.Header().Type == http2.FrameHeaders {
				answered++
			}
		}
		if kept := liveHeap() - before; kept > streams*fields*size/4 {
			t.Errorf("%s: %d KiB are kept for %d answers", path, kept>>10, streams)
		}
		_ = conn.Close()
		client.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
}

func liveHeap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// unopened sends GET requests, each with fields more header fields of size bytes, over a connection of HTTP/2 whose windows are closed.
// framer reads the answers.
func unopened(t *testing.T, srv *servertest.Server, path string, streams, fields, size int) (conn *tls.Conn, framer *http2.Framer) {
	t.Helper()
	raw, err := srv.DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	config := srv.Transport().TLSClientConfig
	config.NextProtos = []string{"h2"}
	conn = tls.Client(raw, config)
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	framer = http2.NewFramer(conn, conn)
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(streams) {
		var header bytes.Buffer
		encoder := hpack.NewEncoder(&header)
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}, {"authorization", "Bearer " + srv.Token}} {
			_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		for j := range fields {
			_ = encoder.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", j), Value: strings.Repeat("~", size), Sensitive: true})
		}
		for rest, first := header.Bytes(), true; len(rest) > 0; first = false {
			part := rest[:min(len(rest), 16000)]
			rest = rest[len(part):]
			if first {
				err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: part, EndHeaders: len(rest) == 0, EndStream: true})
			} else {
				err = framer.WriteContinuation(2*i+1, len(rest) == 0, part)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return conn, framer
}
