package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/keelson-dev/keelson/server/servertest"
)

// A page of somebody else's opens no WebSocket, though the browser has a certificate of the administrator's.
func TestWebSocketsOfOtherOrigins(t *testing.T) {
	t.Parallel()
	o := wireKinds(false)
	o.Serving.AllowOrigin = func(origin string) bool { return origin == "https://console.example.com" }
	srv := servertest.Start(t, o)
	transport := srv.Transport()
	transport.ForceAttemptHTTP2 = false
	defer transport.CloseIdleConnections()
	for origin, want := range map[string]int{
		"": 101, srv.URL: 101, "https://console.example.com": 101, "https://elsewhere.example.com": 403, "null": 403,
	} {
		header := http.Header{"Authorization": {"Bearer " + srv.Token}}
		if origin != "" {
			header.Set("Origin", origin)
		}
		conn, resp, err := websocket.Dial(t.Context(), srv.URL+widgetList+"?watch=1", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}, HTTPHeader: header})
		if resp == nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", origin, resp.StatusCode, want)
		}
		if err == nil {
			_ = conn.CloseNow()
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		if text := string(body); !strings.Contains(text, `"message":"forbidden: `) || !strings.Contains(text, `"code":403`) {
			t.Errorf("%q: %s", origin, text)
		}
	}
}
