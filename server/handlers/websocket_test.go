package handlers_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/keelson-dev/keelson/server/handlers"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func dial(t *testing.T, server *httptest.Server, target string, o *websocket.DialOptions) *websocket.Conn {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), server.URL+target, o)
	must(t, err)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return conn
}

func TestWebSocketWatch(t *testing.T) {
	stop := make(chan struct{})
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Stop = stop }})
	h.make(t, "a")
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	conn := dial(t, server, base+"?watch=1&allowWatchBookmarks=1", nil)
	next := func(want string) {
		t.Helper()
		kind, got, err := conn.Read(t.Context())
		if err != nil || kind != websocket.MessageText || string(got) != want {
			t.Fatalf("%v %v\ngot  %s\nwant %s", kind, err, got, want)
		}
	}
	next(frame("ADDED", h.whole(t, "a")))
	next(mark(h.now(t), true))
	h.make(t, "b")
	next(frame("ADDED", h.whole(t, "b")))

	other := dial(t, server, base+"?watch=1", &websocket.DialOptions{Subprotocols: []string{"base64url.bearer.authorization.k8s.io.dG9rZW4", "v1"}})
	if got := other.Subprotocol(); got != "v1" {
		t.Errorf("subprotocol %q", got)
	}
	close(stop)
	if kind, rest, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("after the end: %v %q %v", kind, rest, err)
	}
}

func TestWebSocketWatchEndsWithTheClient(t *testing.T) {
	h := newHouse(t, tune{})
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended <- struct{}{}
	}))
	t.Cleanup(server.Close)
	for _, leave := range []func(conn *websocket.Conn) error{
		func(conn *websocket.Conn) error { return conn.Close(websocket.StatusGoingAway, "") },
		(*websocket.Conn).CloseNow,
	} {
		conn := dial(t, server, base+"?watch=1", nil)
		must(t, conn.Write(t.Context(), websocket.MessageText, bytes.Repeat([]byte("x"), 1<<20))) // messages of the client are ignored
		must(t, leave(conn))
		<-ended
	}
}

func TestWebSocketNeedsAConnection(t *testing.T) {
	h := newHouse(t, tune{})
	w := h.ask("GET", base+"?watch=1", "", "Upgrade: websocket", "Connection: keep-alive, Upgrade")
	if w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A client that does not use the protocol correctly gets an error, and the connection ends.
func TestWebSocketHandshakes(t *testing.T) {
	h := newHouse(t, tune{})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for want, headers := range map[int][]string{
		101: {"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "Origin: https://elsewhere.example.com"},
		400: {"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: short"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", server.URL+base+"?watch=1", http.NoBody)
		must(t, err)
		for _, line := range append(headers, "Connection: Upgrade", "Upgrade: websocket") {
			name, value, _ := strings.Cut(line, ": ")
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		if resp.StatusCode != want || want == 101 && resp.Header.Get("Sec-WebSocket-Accept") == "" {
			t.Errorf("%v: %d %v", headers, resp.StatusCode, resp.Header)
		}
		if want != 101 { // the body ends with the connection
			text, err := io.ReadAll(resp.Body)
			if err != nil || len(text) == 0 {
				t.Errorf("%v: %q %v", headers, text, err)
			}
		}
		_ = resp.Body.Close()
	}
}

// The server does not wait long for a client that sends one endless message instead of the response to the close.
func TestWebSocketOfASilentClient(t *testing.T) {
	t.Parallel()
	stop, ended := make(chan struct{}), make(chan struct{})
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Stop = stop }})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	must(t, err)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "GET "+base+"?watch=1 HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"+
		"\x82\xff\x00\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00 the beginning of a binary message of 2^56 bytes")
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", resp, err)
	}
	close(stop)
	<-ended
}

// An event in a binary form is a binary message, without the length that it has in a stream of bytes.
func TestWebSocketWatchInProtobufAndCBOR(t *testing.T) {
	h, _ := cachedMaps(t, 0)
	h.makeMap(t, 0)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for _, mediaType := range []string{"application/vnd.kubernetes.protobuf", "application/cbor"} {
		conn := dial(t, server, maps+"?watch=1", &websocket.DialOptions{HTTPHeader: http.Header{"Accept": {mediaType}}})
		kind, got, err := conn.Read(t.Context())
		if err != nil || kind != websocket.MessageBinary {
			t.Fatalf("%s: %v %v", mediaType, kind, err)
		}
		want := "ADDED " + string(formOf(t, mediaType, h.ask("GET", maps+"/m00000", "").Body.Bytes()))
		var event string
		if mediaType == "application/cbor" {
			event = cborEvents(t, string(got))[0]
		} else {
			var e metav1.WatchEvent
			must(t, e.Unmarshal(got))
			event = e.Type + " " + string(e.Object.Raw)
		}
		if event != want {
			t.Errorf("%s: %q\nwant %q", mediaType, event, want)
		}
	}
}
