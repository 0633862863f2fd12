package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
)

// discarded is a ResponseWriter that drops everything.
type discarded struct {
	header http.Header
	bytes  int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) WriteHeader(int)             {}
func (d *discarded) Write(p []byte) (int, error) { d.bytes += len(p); return len(p), nil }

// The allocations of a LIST from the cache do not depend on the number of objects. The test is not parallel, since it counts all
// allocations of the process.
func TestListAllocatesNothingForAnObject(t *testing.T) {
	const few, many = 100, 1000
	srv, err := server.New(server.Options{Groups: []server.Group{widgets()}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = srv.Close() }()
	do := func(w http.ResponseWriter, method, path, body string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
		srv.Handler().ServeHTTP(w, r)
	}
	queries := []string{"", "?resourceVersion=0", "?resourceVersion=1", "?limit=100000"}
	fewer := map[string]float64{}
	for made := range many {
		w := httptest.NewRecorder()
		if do(w, "POST", widgetsPath, fmt.Sprintf(`{"metadata":{"name":"w%d"},"spec":{"size":%d}}`, made, made)); w.Code != 201 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if made+1 != few && made+1 != many {
			continue
		}
		for _, query := range queries {
			bytes := 0
			allocs := testing.AllocsPerRun(20, func() {
				w := &discarded{header: http.Header{}}
				do(w, "GET", widgetsPath+query, "")
				bytes = w.bytes
			})
			if bytes < made*len(`{"metadata":{"name":"w0"}}`) {
				t.Fatalf("LIST%s: %d bytes for %d objects", query, bytes, made+1)
			}
			if made+1 == few {
				fewer[query] = allocs
			} else if allocs > fewer[query]+50 {
				t.Errorf("LIST%s: %v allocations for %d objects, %v for %d", query, fewer[query], few, allocs, many)
			}
		}
	}
}
