package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
)

// below returns routers that serve h below /its/place, by name.
func below(h http.Handler) map[string]http.Handler {
	stripped, all := http.StripPrefix("/its/place", h), map[string]http.Handler{}
	mux := http.NewServeMux()
	mux.Handle("/its/place/", stripped)
	all["ServeMux"] = mux
	for name, mount := range map[string]func(r chi.Router){
		"chi, Mount":           func(r chi.Router) { r.Mount("/its/place", stripped) },
		"chi, Handle":          func(r chi.Router) { r.Handle("/its/place/*", stripped) },
		"chi, Route and Mount": func(r chi.Router) { r.Route("/its", func(r chi.Router) { r.Mount("/place", stripped) }) },
		"chi, Route and Handle": func(r chi.Router) {
			r.Route("/its", func(r chi.Router) { r.Handle("/place/*", stripped) })
		},
		"chi, CleanPath": func(r chi.Router) { r.Use(middleware.CleanPath); r.Mount("/its/place", stripped) },
	} {
		r := chi.NewRouter()
		mount(r)
		all[name] = r
	}
	return all
}

// The answers below a path are those without the path, for one handler that is mounted at several places.
func TestHandlerBelowAPath(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	inner := http.NewServeMux()
	inner.HandleFunc("GET /extra/{name}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.PathValue("name")) })
	if err := srv.Install(server.ExtensionFunc(func(h *server.Host) error { return h.Handle("/extra/", inner) })); err != nil {
		t.Fatal(err)
	}
	admin := "Bearer " + srv.Credentials().Token
	root := httptest.NewServer(srv.Handler())
	defer root.Close()
	for name, router := range below(srv.Handler()) {
		foreign := httptest.NewServer(router)
		defer foreign.Close()
		place := foreign.URL + "/its/place"
		for path, want := range map[string]string{
			"/": "/apis", "/version": "gitVersion", "/readyz": "ok", "/healthz/ping": "ok", "/extra/thing": "thing",
			"/api": "", "/apis": "APIGroupList", "/apis/example.com/v1": "APIResourceList", "/none": "", "/apis/none": "", "/apis/none/v1/x": "",
			"/openapi/v2": "swagger", "/openapi/v3": "/openapi/v3/apis/example.com/v1?hash=", "/openapi/v3/apis/example.com/v1": "openapi",
			"/openapi/v3/apis/example.com/v1?hash=00": "openapi", "/openapi/v3/apis/example.com/v1/?hash=00": "openapi", // redirected
			widgetsPath: "WidgetList", widgetsPath + "/none": "NotFound",
		} {
			code, body := call(t, foreign.Client(), "GET", place+path, "", "Authorization", admin)
			wantCode, wantBody := call(t, root.Client(), "GET", root.URL+path, "", "Authorization", admin)
			if code != wantCode || body != wantBody || !strings.Contains(body, want) {
				t.Errorf("%s: GET %s: %d %.200s\nwant %d %.200s", name, path, code, body, wantCode, wantBody)
			}
		}
		conn, _, err := websocket.Dial(t.Context(), place+widgetsPath+"?watch=1", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {admin}}})
		if err != nil {
			t.Errorf("%s: a WebSocket: %v", name, err)
			continue
		}
		_ = conn.CloseNow()
	}
}

// A router that changes the path for itself, and not in the request, does not change which path is served: that is the path for which
// the request was authorized.
func TestHandlerServesTheAuthorizedPath(t *testing.T) {
	t.Parallel()
	health := authz.Func(func(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
		if strings.HasPrefix(a.Path, "/healthz/") {
			return authz.Allow, "", nil
		}
		return authz.NoOpinion, "", nil
	})
	srv, err := server.New(server.Options{Policy: server.Policy{Authorizer: health}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	eventually(t, "the server is ready", func() bool {
		w := httptest.NewRecorder()
		srv.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/healthz/none", http.NoBody))
		return w.Code == 404
	})
	for name, router := range below(srv.Handler()) {
		for path, want := range map[string]int{"/healthz/ping": 200, "/version": 403, "/healthz/../version": 404} {
			w := httptest.NewRecorder()
			router.ServeHTTP(w, httptest.NewRequest("GET", "/its/place"+path, nil))
			if w.Code == 307 && name == "ServeMux" && path == "/healthz/../version" {
				continue // to the clean path, which is authorized when the client requests it
			}
			if w.Code != want {
				t.Errorf("%s: GET %s: %d %s, want %d", name, path, w.Code, w.Body, want)
			}
		}
	}
}

// Shutdown ends watches, refuses new requests and finishes those that have begun, so that the http.Server of the program can end.
func TestShutdownOfAMountedServer(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}, Serving: server.Serving{Filters: tellPosts(begun)}})
	if err != nil {
		t.Fatal(err)
	}
	foreign := httptest.NewServer(srv.Handler())
	defer foreign.Close()
	c, auth := foreign.Client(), "Bearer "+srv.Credentials().Token
	req, _ := http.NewRequestWithContext(t.Context(), "GET", foreign.URL+widgetsPath+"?watch=1", nil)
	req.Header.Set("Authorization", auth)
	watch, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = watch.Body.Close() }()
	late := post(t, c, foreign.URL, auth)
	<-begun

	ended := make(chan error, 1)
	go func() { ended <- srv.Shutdown(t.Context()) }()
	if rest, err := io.ReadAll(watch.Body); err != nil || len(rest) != 0 {
		t.Errorf("the watch ended with %q, %v; want a clean end", rest, err)
	}
	for code := 0; code != 503; { // the watch may end a moment before requests are refused
		code, _ = call(t, c, "GET", foreign.URL+widgetsPath, "", "Authorization", auth)
	}
	select {
	case err := <-ended:
		t.Fatalf("Shutdown returned %v, with a request that had not finished", err)
	case <-time.After(50 * time.Millisecond):
	}
	if got := late(); got != "201 Created" {
		t.Errorf("the request under way was answered %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("Shutdown returned %v", err)
	}
	if err := foreign.Config.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Errorf("the second Shutdown returned %v", err)
	}
}

// Shutdown closes the server when its context ends, and its error says why.
func TestShutdownOfAMountedServerInTime(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 1)
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}, Serving: server.Serving{Filters: tellPosts(begun)}})
	if err != nil {
		t.Fatal(err)
	}
	foreign := httptest.NewServer(srv.Handler())
	defer foreign.Close()
	late := post(t, foreign.Client(), foreign.URL, "Bearer "+srv.Credentials().Token)
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "some requests have not finished: context deadline exceeded") {
		t.Errorf("Shutdown returned %v", err)
	}
	if got := late(); !strings.HasPrefix(got, "5") {
		t.Errorf("after Shutdown the request was answered %q", got)
	}
}

// tellPosts returns a Serving.Filters that sends to begun when a POST is about to be handled.
func tellPosts(begun chan<- struct{}) func([]server.NamedFilter) []server.NamedFilter {
	return func(chain []server.NamedFilter) []server.NamedFilter {
		return server.InsertAfter(chain, server.FilterMetrics, server.NamedFilter{Name: "tell-posts", Filter: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					begun <- struct{}{}
				}
				next.ServeHTTP(w, r)
			})
		}})
	}
}

// post begins to send a widget. The function that it returns sends the rest, and returns the status of the answer.
func post(t *testing.T, c *http.Client, url, auth string) func() string {
	t.Helper()
	body, writer := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url+widgetsPath, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", auth)
	answered := make(chan string, 1)
	go func() {
		resp, err := c.Do(req)
		if err != nil {
			answered <- err.Error()
			return
		}
		_ = resp.Body.Close()
		answered <- resp.Status
	}()
	if _, err := io.WriteString(writer, `{"metadata":`); err != nil {
		t.Fatal(err)
	}
	return func() string {
		if _, err := io.WriteString(writer, `{"name":"late"}}`); err != nil {
			t.Error(err)
		}
		_ = writer.Close()
		return <-answered
	}
}

// Shutdown calls the functions before the stop once, while the server serves.
func TestShutdownOfAMountedServerCallsFunctions(t *testing.T) {
	t.Parallel()
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}})
	if err != nil {
		t.Fatal(err)
	}
	var codes []int
	err = srv.Install(server.ExtensionFunc(func(h *server.Host) error {
		return h.BeforeStop("writes", func(context.Context) error {
			r := httptest.NewRequestWithContext(t.Context(), "POST", widgetsPath, strings.NewReader(`{"metadata":{"name":"last"}}`))
			r.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			srv.Handler().ServeHTTP(w, r)
			codes = append(codes, w.Code)
			return nil
		})
	}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(codes, []int{201}) {
		t.Errorf("the function was answered %v, want 201 once", codes)
	}
}
