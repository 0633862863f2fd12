package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// probe is a raw connection to a server. Its client has no certificate.
func (r *running) probe(t *testing.T, protocol string) *tls.Conn {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(r.Credentials().CAPEM) {
		t.Fatal("no CA")
	}
	c, err := tls.Dial("tcp", strings.TrimPrefix(r.url, "https://"), &tls.Config{RootCAs: pool, NextProtos: []string{protocol}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// held returns how much is held in a budget, by the metrics.
func (r *running) held(t *testing.T, c *http.Client, what string) int {
	t.Helper()
	_, text := call(t, c, "GET", r.url+"/metrics", "", "Authorization", "Bearer "+r.Credentials().Token)
	m := regexp.MustCompile(`(?m)^keelson_budget_held\{what="` + what + `"\} (\d+)$`).FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("no metric of %s in %.200s", what, text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// noneLeft waits until c is the only connection.
func (r *running) noneLeft(t *testing.T, c *http.Client) {
	t.Helper()
	for r.held(t, c, "connections") > 1 {
		time.Sleep(10 * time.Millisecond)
	}
}

// Bodies that are announced and never sent hold nothing, whichever client announces them and in whatever framing.
func TestUnsentBodiesHoldNothing(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Groups: []server.Group{widgets()}, Limits: server.Limits{RequestTimeout: 2 * time.Second}})
	admin, auth := srv.client(t), "Authorization: Bearer "+srv.Credentials().Token+"\r\n"
	mounted := httptest.NewServer(srv.Handler())
	t.Cleanup(mounted.Close)
	var probes []net.Conn
	for range 5 {
		for _, head := range []string{
			"POST " + widgetsPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf",
			"POST " + widgetsPath + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
			"GET " + widgetsPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
			"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
			"POST " + widgetsPath + " HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 1000\r\n\r\nhalf", // waits for its body
			"GET " + widgetsPath + "?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 1000\r\n\r\n",
		} {
			c := srv.probe(t, "http/1.1")
			plain, err := net.Dial("tcp", mounted.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = plain.Close() })
			for _, c := range []net.Conn{c, plain} {
				if _, err := io.WriteString(c, head); err != nil {
					t.Fatal(err)
				}
				probes = append(probes, c)
			}
		}
	}
	for _, c := range probes {
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		answer, err := io.ReadAll(c) // until the server closes it
		if e, ok := err.(net.Error); ok && e.Timeout() || !bytes.HasPrefix(answer, []byte("HTTP/1.1 ")) {
			t.Errorf("%.100q, %v", answer, err)
		}
	}
	srv.noneLeft(t, admin)
}

// h2 is a client that sends any frames of HTTP/2.
type h2 struct {
	*http2.Framer
	conn  *tls.Conn
	block bytes.Buffer
	enc   *hpack.Encoder
}

func (r *running) h2(t *testing.T, settings ...http2.Setting) *h2 {
	t.Helper()
	c := &h2{conn: r.probe(t, "h2")}
	c.Framer, c.enc = http2.NewFramer(c.conn, c.conn), hpack.NewEncoder(&c.block)
	c.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(c.conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return c
}

// request begins a request on a stream.
func (c *h2) request(stream uint32, method, path string, end bool, more ...string) error {
	c.block.Reset()
	for i, pair := 0, append([]string{":method", method, ":scheme", "https", ":authority", "x", ":path", path}, more...); i < len(pair); i += 2 {
		_ = c.enc.WriteField(hpack.HeaderField{Name: pair[i], Value: pair[i+1]})
	}
	const frame = 64 << 10
	part := c.block.Next(frame)
	err := c.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: part, EndHeaders: c.block.Len() == 0, EndStream: end})
	for err == nil && c.block.Len() > 0 {
		part = c.block.Next(frame)
		err = c.WriteContinuation(stream, c.block.Len() == 0, part)
	}
	return err
}

// until reads frames until f returns true, and returns the error that came before.
func (c *h2) until(f func(http2.Frame) bool) error {
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Minute))
	for {
		frame, err := c.ReadFrame()
		if err != nil {
			return err
		}
		if f(frame) {
			return nil
		}
	}
}

// Over HTTP/2 a hundred requests whose bodies are not sent are answered, and the connection is closed.
func TestUnsentBodiesOfHTTP2(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Groups: []server.Group{widgets()}})
	admin := srv.client(t)
	c := srv.h2(t)
	for i := range uint32(100) {
		if err := c.request(2*i+1, "POST", widgetsPath, false, "content-length", "1000"); err != nil {
			t.Fatal(err)
		}
	}
	answers := 0
	err := c.until(func(f http2.Frame) bool {
		if h, ok := f.(*http2.MetaHeadersFrame); ok && h.PseudoValue("status") == "403" {
			answers++
		}
		return false
	})
	if e, ok := err.(net.Error); ok && e.Timeout() || answers == 0 {
		t.Errorf("%d answers, then %v", answers, err)
	}
	srv.noneLeft(t, admin)
}

// A flood of frames ends with the connection, after as many as net/http allows. A frame that is larger than the server allows is
// an error before it is read. A flood of SETTINGS may go on: net/http keeps nothing of them, and acknowledges many at once.
func TestFloodsOfFrames(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Groups: []server.Group{widgets()}})
	admin := srv.client(t)
	for name, flood := range map[string]func(c *h2, i uint32) error{
		"CONTINUATION": func(c *h2, i uint32) error {
			if i == 0 {
				return c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0x82}})
			}
			return c.WriteContinuation(1, false, bytes.Repeat([]byte{0, 1, 'a', 1, 'b'}, 3000))
		},
		"SETTINGS": func(c *h2, _ uint32) error { return c.WriteSettings() },
		"PING":     func(c *h2, _ uint32) error { return c.WritePing(false, [8]byte{}) },
		"RST_STREAM": func(c *h2, i uint32) error {
			if err := c.request(2*i+1, "GET", widgetsPath, true); err != nil {
				return err
			}
			return c.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		},
		"a large frame": func(c *h2, _ uint32) error { return c.WriteRawFrame(0x77, 0, 0, make([]byte, 65<<10)) },
	} {
		t.Run(name, func(t *testing.T) {
			c := srv.h2(t)
			if name == "RST_STREAM" || name == "a large frame" { // the answers must not end the loop
				go func() { _, _ = io.Copy(io.Discard, c.conn) }()
			}
			_ = c.conn.SetWriteDeadline(time.Now().Add(5 * time.Minute))
			var err error
			sent := uint32(0)
			for ; err == nil && sent < 1_000_000; sent++ {
				err = flood(c, sent)
			}
			if e, ok := err.(net.Error); err == nil && name != "SETTINGS" || ok && e.Timeout() {
				t.Errorf("%d frames, then %v", sent, err)
			}
		})
	}
	srv.noneLeft(t, admin)
}

// A connection has a hundred streams at the same time.
func TestStreamsOfAConnection(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Groups: []server.Group{widgets()}})
	c := srv.h2(t)
	if err := c.until(func(f http2.Frame) bool {
		s, ok := f.(*http2.SettingsFrame)
		if !ok {
			return false
		}
		n, _ := s.Value(http2.SettingMaxConcurrentStreams)
		size, _ := s.Value(http2.SettingMaxFrameSize)
		if n != 100 || size != 64<<10 {
			t.Errorf("%d streams and frames of %d bytes", n, size)
		}
		return true
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.WriteSettingsAck(); err != nil {
		t.Fatal(err)
	}
	for i := range uint32(101) {
		if err := c.request(2*i+1, "GET", widgetsPath+"?watch=1", true, "authorization", "Bearer "+srv.Credentials().Token); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.until(func(f http2.Frame) bool {
		reset, ok := f.(*http2.RSTStreamFrame)
		if ok && (reset.StreamID != 201 || reset.ErrCode != http2.ErrCodeProtocol) {
			t.Errorf("stream %d is reset: %v", reset.StreamID, reset.ErrCode)
		}
		return ok
	}); err != nil {
		t.Error(err)
	}
}

// The bytes and the fields of a header are bounded; above the bounds the answer is 431.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Limits: server.Limits{MaxHeaderBytes: 32 << 10}})
	admin := srv.client(t)
	var many strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&many, "X-%d: \r\n", i)
	}
	for name, tc := range map[string]struct {
		head string
		want int
	}{
		"modest":       {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 16<<10) + "\r\n\r\n", 200},
		"a long field": {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 40<<10) + "\r\n\r\n", 431},
		"a long line":  {"GET /healthz?" + strings.Repeat("x", 40<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
		"many fields":  {"GET /healthz HTTP/1.1\r\nHost: x\r\n" + many.String() + "\r\n", 431},
	} {
		c := srv.probe(t, "http/1.1")
		if _, err := io.WriteString(c, tc.head); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || resp.StatusCode != tc.want {
			t.Errorf("%s: %v, %v, want %d", name, resp, err, tc.want)
		}
		_ = c.Close()
	}
	long := []string{}
	for i := range 10 {
		long = append(long, "x"+strconv.Itoa(i), strings.Repeat("x", 4<<10))
	}
	for want, more := range map[string][]string{"200": long[:4], "431": long} {
		c := srv.h2(t)
		if err := c.request(1, "GET", "/healthz", true, more...); err != nil {
			t.Fatal(err)
		}
		status := ""
		if err := c.until(func(f http2.Frame) bool {
			if h, ok := f.(*http2.MetaHeadersFrame); ok {
				status = h.PseudoValue("status")
			}
			return status != ""
		}); err != nil || status != want {
			t.Errorf("over HTTP/2: %q, %v, want %s", status, err, want)
		}
		_ = c.conn.Close()
	}
	srv.noneLeft(t, admin)
}

// Any number of unauthenticated connections does not keep other clients out, and leaves no goroutine behind.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	const most = 20
	srv := run(t, server.Options{Groups: []server.Group{widgets()}, Limits: server.Limits{Connections: flowcontrol.Bounds{All: most}}})
	admin, auth := srv.client(t), "Bearer "+srv.Credentials().Token
	req, _ := http.NewRequestWithContext(t.Context(), "GET", srv.url+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", auth)
	watch, err := admin.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	for range 5 * most {
		c, err := net.Dial("tcp", strings.TrimPrefix(srv.url, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
	}
	other := srv.client(t)
	if n := srv.held(t, other, "connections"); n > most {
		t.Errorf("%d connections, want at most %d", n, most)
	}
	code, text := call(t, other, "POST", srv.url+widgetsPath, `{"metadata":{"name":"a"}}`, "Authorization", auth)
	wantCode(t, 201, code, text)
	if line, err := bufio.NewReader(watch.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"ADDED"`) {
		t.Errorf("the watch has %q, %v", line, err)
	}
}

// A watch above the bound is answered with 429 and Retry-After; a watch that has ended makes room.
func TestWatchesAreBounded(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Groups: []server.Group{widgets()}, Limits: server.Limits{Watches: flowcontrol.Bounds{User: 2}}})
	c, auth := srv.client(t), "Bearer "+srv.Credentials().Token
	watch := func() (*http.Response, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		req, _ := http.NewRequestWithContext(ctx, "GET", srv.url+widgetsPath+"?watch=1", nil)
		req.Header.Set("Authorization", auth)
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp, cancel
	}
	_, end := watch()
	if resp, _ := watch(); resp.StatusCode != 200 {
		t.Fatal(resp.Status)
	}
	resp, _ := watch()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || !strings.Contains(string(text), `"reason":"TooManyRequests"`) ||
		!strings.Contains(string(text), "too many watches of one user: the limit is 2") {
		t.Errorf("%d %v %s %v", resp.StatusCode, resp.Header, text, err)
	}
	if n := srv.held(t, c, "watches"); n != 2 {
		t.Errorf("%d watches", n)
	}
	_, metrics := call(t, c, "GET", srv.url+"/metrics", "", "Authorization", auth)
	for _, want := range []string{
		`(?m)^apiserver_request_total\{code="429",.*verb="WATCH".*\} 1$`,
		`(?m)^apiserver_request_terminations_total\{code="429",.*verb="WATCH".*\} 1$`,
		`(?m)^keelson_budget_limit\{of="user",what="watches"\} 2$`,
	} {
		if !regexp.MustCompile(want).MatchString(metrics) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	end()
	for srv.held(t, c, "watches") > 1 {
		time.Sleep(time.Millisecond)
	}
	if resp, _ := watch(); resp.StatusCode != 200 {
		t.Errorf("after the end of one: %s", resp.Status)
	}
}

// A connection without a request is closed after Limits.IdleTimeout, whatever its protocol.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	srv := run(t, server.Options{Groups: []server.Group{widgets()}, Limits: server.Limits{IdleTimeout: 200 * time.Millisecond}})
	for _, protocol := range []string{"http/1.1", "h2"} {
		c := srv.probe(t, protocol)
		hello := "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
		if protocol == "h2" {
			hello = http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00" // empty SETTINGS
		}
		if _, err := io.WriteString(c, hello); err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		if answer, err := io.ReadAll(c); err != nil || len(answer) == 0 {
			t.Errorf("%s: %d bytes, %v", protocol, len(answer), err)
		}
	}
}
