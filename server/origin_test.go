package server_test

import (
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/keelson-dev/keelson/server/servertest"
)

// A page of another origin cannot open a WebSocket, although the browser has the certificate of the administrator.
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
		token := base64.RawURLEncoding.EncodeToString([]byte(srv.Token)) // as browsers send it
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		conn, resp, err := websocket.Dial(t.Context(), srv.URL+widgetList+"?watch=1", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}, HTTPHeader: header, Subprotocols: []string{"base64url.bearer.authorization.k8s.io." + token, "binary.k8s.io"}})
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

// A request that a page of another origin makes a browser send is refused before it is authenticated.
func TestWritesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	srv := servertest.Start(t, wireKinds(false))
	client := &http.Client{Transport: srv.Transport()}
	defer client.CloseIdleConnections()
	for origin, refused := range map[string]bool{"": false, srv.URL: false, "https://elsewhere.example.com": true, "null": true} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+widgetList, strings.NewReader(`{"metadata":{"name":"a"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if origin != "" {
			req.Header.Set("Origin", origin)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusForbidden || strings.Contains(string(text), "may not send this request to this server") != refused {
			t.Errorf("%q: %d %s", origin, resp.StatusCode, text)
		}
	}
}
