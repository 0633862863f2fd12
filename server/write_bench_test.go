package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage/memory"
)

// send is like do, with a Content-Type.
func (s *bench) send(method, path, contentType, body string, want int) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", s.token)
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Code != want {
		s.b.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
	}
}

// BenchmarkWrite measures one write of each sort, of an object of 1.75 KB in memory, without a network.
func BenchmarkWrite(b *testing.B) {
	const apply, strategic = "application/apply-patch+yaml", "application/strategic-merge-patch+json"
	one := widgetsPath + "/w000042"
	body := func(color string, i int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w000042"},"spec":{"size":%d,"color":%q}}`, i, color)
	}
	blue := strings.Repeat("blue ", 300)
	for name, write := range map[string]func(s *bench, i int){
		"create": func(s *bench, i int) {
			s.send("POST", widgetsPath, "application/json", widget(1000+i), http.StatusCreated)
		},
		"put":       func(s *bench, i int) { s.send("PUT", one, "application/json", body(blue, i), http.StatusOK) },
		"put-no-op": func(s *bench, _ int) { s.send("PUT", one, "application/json", body(blue, 42), http.StatusOK) },
		"merge-patch": func(s *bench, i int) {
			s.send("PATCH", one, mergePatch, fmt.Sprintf(`{"spec":{"size":%d}}`, i), http.StatusOK)
		},
		"json-patch": func(s *bench, i int) {
			s.send("PATCH", one, jsonPatch, fmt.Sprintf(`[{"op":"add","path":"/spec/size","value":%d}]`, i), http.StatusOK)
		},
		"strategic": func(s *bench, i int) {
			s.send("PATCH", one, strategic, fmt.Sprintf(`{"spec":{"size":%d}}`, i), http.StatusOK)
		},
		"apply": func(s *bench, i int) {
			s.send("PATCH", one+"?fieldManager=b&force=true", apply, body(blue, i), http.StatusOK)
		},
		"apply-no-op": func(s *bench, _ int) {
			s.send("PATCH", one+"?fieldManager=b&force=true", apply, body(blue, 42), http.StatusOK)
		},
		"status-patch": func(s *bench, i int) {
			s.send("PATCH", one+"/status", mergePatch, fmt.Sprintf(`{"status":{"ready":%v}}`, i%2 == 0), http.StatusOK)
		},
	} {
		b.Run(name, func(b *testing.B) {
			s := newBench(b, memory.Open(), 100)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				write(s, i)
				i++
			}
		})
	}
}
