package server_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

// manyWidgets creates so many widgets that their list is compressed for clients that accept it.
func manyWidgets(t *testing.T, srv *servertest.Server, n int) {
	t.Helper()
	for i := range n {
		body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w-%04d","annotations":{"text":%q}},"spec":{"size":%d}}`,
			i, strings.Repeat("text ", 200), 1+i%9)
		if a := roundTrip(t, srv.Client(), "POST", srv.URL+widgetsPath, body); a.code != 201 {
			t.Fatal(a.code, a.body)
		}
	}
}

// zippedList is a compressed list, decompressed.
func zippedList(t *testing.T, srv *servertest.Server) string {
	t.Helper()
	a := roundTrip(t, srv.Client(), "GET", srv.URL+widgetsPath, "", "Accept-Encoding", "gzip")
	if a.code != 200 || a.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%d, %v", a.code, a.header)
	}
	in := strings.NewReader(a.body)
	z, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	z.Multistream(false)
	text, err := io.ReadAll(z)
	if err != nil || in.Len() > 0 {
		t.Fatalf("%d bytes follow the member: %v", in.Len(), err)
	}
	return string(text)
}

// The compressed blocks of a list are kept for the next list, within FormBytes, and the metrics show this. Blocks with changed
// objects are made again. Without FormBytes the lists are the same.
func TestFormBytes(t *testing.T) {
	t.Parallel()
	const n = 400
	for name, tc := range map[string]struct {
		bytes, most int64
		kept        bool
	}{
		"by default": {0, 64 << 20, true},
		"little":     {20 << 10, 20 << 10, true},
		"none":       {-1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := servertest.Start(t, server.Options{Limits: server.Limits{FormBytes: tc.bytes}}, widgets())
			manyWidgets(t, srv, n)
			const prefix = "keelson_form_cache_"
			first := zippedList(t, srv)
			made := scrape(t, srv)
			if plain := roundTrip(t, srv.Client(), "GET", srv.URL+widgetsPath, ""); plain.body != first {
				t.Errorf("the compressed list has %d bytes, the plain one %d", len(first), len(plain.body))
			}
			if again := zippedList(t, srv); again != first {
				t.Errorf("the second list has %d bytes, the first %d", len(again), len(first))
			}
			found := scrape(t, srv)
			if _, reported := found[prefix+"bytes"]; !tc.kept {
				if reported {
					t.Error("there are metrics of what is not there")
				}
				return
			}
			if found[prefix+"max_bytes"] != float64(tc.most) || found[prefix+"bytes"] > float64(tc.most) || found[prefix+"bytes"] == 0 {
				t.Errorf("%v bytes of %v, want %d", found[prefix+"bytes"], found[prefix+"max_bytes"], tc.most)
			}
			hits, misses := found[prefix+"hits_total"]-made[prefix+"hits_total"], found[prefix+"misses_total"]-made[prefix+"misses_total"]
			if hits < 1 || tc.bytes == 0 && misses > 0 || tc.bytes > 0 && misses < 1 {
				t.Errorf("the second list found %v and made %v", hits, misses)
			}
			if tc.bytes > 0 {
				return
			}
			patch := `{"spec":{"size":77}}`
			if a := roundTrip(t, srv.Client(), "PATCH", srv.URL+widgetsPath+"/w-0123", patch, "Content-Type", "application/merge-patch+json"); a.code != 200 {
				t.Fatal(a.code, a.body)
			}
			if changed := zippedList(t, srv); strings.Count(changed, `"size":77`) != 1 {
				t.Error("the change is not in the list")
			}
			after := scrape(t, srv)
			if got := after[prefix+"misses_total"] - found[prefix+"misses_total"]; got != 1 {
				t.Errorf("after one change %v blocks were made", got)
			}
			if after[prefix+"forms"] != found[prefix+"forms"] {
				t.Errorf("%v forms, before the change %v", after[prefix+"forms"], found[prefix+"forms"])
			}
		})
	}
}
