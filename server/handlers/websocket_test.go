package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/handlers"
	"golang.org/x/net/websocket"
)

func dial(t *testing.T, server *httptest.Server, target string, protocols ...string) *websocket.Conn {
	t.Helper()
	config, err := websocket.NewConfig("ws"+strings.TrimPrefix(server.URL, "http")+target, server.URL)
	must(t, err)
	config.Protocol = protocols
	conn, err := websocket.DialConfig(config)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestWebSocketWatch(t *testing.T) {
	stop := make(chan struct{})
	h := newHouse(t, tune{handlers: func(o *handlers.Options) { o.Stop = stop }})
	h.make(t, "a")
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	conn := dial(t, server, base+"?watch=1&allowWatchBookmarks=1")
	next := func(want string) {
		t.Helper()
		var got string
		if err := websocket.Message.Receive(conn, &got); err != nil || got != want {
			t.Fatalf("%v\ngot  %s\nwant %s", err, got, want)
		}
	}
	next(frame("ADDED", h.whole(t, "a")))
	next(mark(h.now(t), true))
	h.make(t, "b")
	next(frame("ADDED", h.whole(t, "b")))

	other := dial(t, server, base+"?watch=1", "base64url.bearer.authorization.k8s.io.dG9rZW4", "v1")
	if got := other.Config().Protocol; len(got) != 1 || got[0] != "v1" {
		t.Errorf("subprotocol %q", got)
	}
	close(stop)
	var rest string
	if err := websocket.Message.Receive(conn, &rest); err == nil {
		t.Errorf("after the end: %s", rest)
	}
}

func TestWebSocketWatchEndsWithTheClient(t *testing.T) {
	h := newHouse(t, tune{})
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	conn := dial(t, server, base+"?watch=1")
	_ = conn.Close()
	<-ended
}

func TestWebSocketNeedsAConnection(t *testing.T) {
	h := newHouse(t, tune{})
	w := h.ask("GET", base+"?watch=1", "", "Upgrade: websocket", "Connection: keep-alive, Upgrade")
	if w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
