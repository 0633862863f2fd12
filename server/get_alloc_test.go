package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
)

// A GET makes few allocations in all filters; these were a fifth of its cost. The test is not parallel, since it counts all
// allocations of the process.
func TestAGetAllocatesLittle(t *testing.T) {
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	ask := func(method, target, body string) *http.Request {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.ProtoMajor, r.ProtoMinor = 2, 0
		r.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
		r.Header.Set("Accept", "application/json")
		r.Header.Set("User-Agent", "test")
		return r
	}
	post := httptest.NewRecorder()
	srv.Handler().ServeHTTP(post, ask("POST", widgetsPath, widget(1)))
	if post.Code != http.StatusCreated {
		t.Fatalf("answered %d %s", post.Code, post.Body)
	}
	const most = 32 // fewer without the race detector, with which pools drop values
	for _, query := range []string{"", "?resourceVersion=0"} {
		r, w := ask("GET", widgetsPath+"/w000001"+query, ""), &discarded{}
		got := testing.AllocsPerRun(200, func() {
			w.header, w.bytes = http.Header{}, 0
			srv.Handler().ServeHTTP(w, r)
		})
		if w.bytes < 1000 {
			t.Fatalf("%q: answered %d bytes", query, w.bytes)
		}
		if got > most {
			t.Errorf("%q: %v allocations, want at most %d", query, got, most)
		}
	}
}
