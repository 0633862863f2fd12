package handlers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server/handlers"
	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// A message in a binary form is a binary message, without the length that it has in a stream of bytes.
func TestWebSocketWatchInProtobufAndCBOR(t *testing.T) {
	h, _ := cachedMaps(t, 0)
	h.makeMap(t, 0)
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	for _, mediaType := range []string{"application/vnd.kubernetes.protobuf", "application/cbor"} {
		config, err := websocket.NewConfig("ws"+strings.TrimPrefix(server.URL, "http")+maps+"?watch=1", server.URL)
		must(t, err)
		config.Header.Set("Accept", mediaType)
		conn, err := websocket.DialConfig(config)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		var got []byte
		receive := websocket.Codec{Unmarshal: func(data []byte, payload byte, v any) error {
			if payload != websocket.BinaryFrame {
				t.Errorf("%s: a frame of type %d", mediaType, payload)
			}
			*v.(*[]byte) = data
			return nil
		}}
		must(t, receive.Receive(conn, &got))
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
