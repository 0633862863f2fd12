package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
)

// bench is a server whose handler is called without a network, so that only the library is measured.
type bench struct {
	b       *testing.B
	handler http.Handler
	token   string
}

func newBench(b *testing.B, opener storage.Opener, objects int, backends ...audit.Backend) *bench {
	b.Helper()
	srv, err := server.New(server.Options{Storage: opener, Groups: []server.Group{widgets()}, Policy: server.Policy{Audit: backends}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = srv.Close() })
	s := &bench{b, srv.Handler(), "Bearer " + srv.Credentials().Token}
	for i := range objects {
		s.do("POST", widgetsPath, widget(i), http.StatusCreated)
	}
	return s
}

func widget(i int) string {
	return fmt.Sprintf(`{"metadata":{"name":"w%06d","labels":{"tier":"t%d"}},"spec":{"size":%d,"color":%q}}`, i, i%100, i, strings.Repeat("blue ", 300))
}

func (s *bench) do(method, path, body string, want int) int {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", s.token)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != want {
		s.b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
	return w.Body.Len()
}

func BenchmarkServer(b *testing.B) {
	for name, opener := range map[string]func(b *testing.B) storage.Opener{
		"memory": func(*testing.B) storage.Opener { return memory.Open() },
		"bolt":   func(b *testing.B) storage.Opener { return bolt.At(filepath.Join(b.TempDir(), "bench.db")) },
	} {
		b.Run(name, func(b *testing.B) {
			b.Run("get", func(b *testing.B) {
				s := newBench(b, opener(b), 100)
				b.ReportAllocs()
				for b.Loop() {
					s.do("GET", widgetsPath+"/w000042", "", http.StatusOK)
				}
			})
			b.Run("list-1000", func(b *testing.B) {
				s := newBench(b, opener(b), 1000)
				b.ReportAllocs()
				for b.Loop() {
					b.SetBytes(int64(s.do("GET", widgetsPath, "", http.StatusOK)))
				}
			})
			b.Run("list-1000-label", func(b *testing.B) {
				s := newBench(b, opener(b), 1000)
				b.ReportAllocs()
				for b.Loop() {
					s.do("GET", widgetsPath+"?labelSelector=tier%3Dt7", "", http.StatusOK)
				}
			})
			b.Run("create", func(b *testing.B) {
				s := newBench(b, opener(b), 0)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					s.do("POST", widgetsPath, widget(i), http.StatusCreated)
					i++
				}
			})
		})
	}
}

// BenchmarkAudit measures requests that are recorded at each level by a sink that drops the events.
func BenchmarkAudit(b *testing.B) {
	drop := audit.SinkFunc(func(context.Context, ...*audit.Event) error { return nil })
	for _, level := range []audit.Level{audit.None, audit.Metadata, audit.Request, audit.RequestResponse} {
		backend := audit.Backend{Name: "drop", Policy: &audit.Policy{Rules: []audit.Rule{{Level: level}}}, Sink: drop}
		for _, request := range []struct {
			name, method, path string
			objects, code      int
		}{
			{"get", "GET", widgetsPath + "/w000042", 100, http.StatusOK},
			{"list-1000", "GET", widgetsPath, 1000, http.StatusOK},
			{"create", "POST", widgetsPath, 0, http.StatusCreated},
		} {
			b.Run(string(level)+"/"+request.name, func(b *testing.B) {
				s := newBench(b, memory.Open(), request.objects, backend)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					body := ""
					if request.method == "POST" {
						body = widget(i)
					}
					s.do(request.method, request.path, body, request.code)
				}
			})
		}
	}
}
