package handlers_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const takesGzip = "Accept-Encoding: br, gzip;q=0.8"

func unzip(t *testing.T, b []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	must(t, err)
	text, err := io.ReadAll(z)
	must(t, err)
	return string(text)
}

// makeLarge creates n widgets of about 10 kB each.
func (h *house) makeLarge(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		w := h.ask("POST", base, fmt.Sprintf(`{"metadata":{"name":"w%03d"},"spec":{"data":%q}}`, i, strings.Repeat(fmt.Sprint(i), 5000)))
		if w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
	}
}

func TestGzip(t *testing.T) {
	h := newHouse(t, tune{})
	h.makeLarge(t, 30)
	plain := h.ask("GET", base, "")
	if plain.Header().Get("Content-Encoding") != "" || plain.Header().Get("Vary") != "" {
		t.Errorf("%v", plain.Header())
	}
	for _, target := range []string{base, base + "?pretty=1"} {
		want := h.ask("GET", target, "").Body.String()
		w := h.ask("GET", target, "", takesGzip)
		if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("Vary") != "Accept-Encoding" || w.Header().Get("Content-Length") != "" {
			t.Errorf("%v", w.Header())
		}
		if got := unzip(t, w.Body.Bytes()); got != want || len(want) < 128<<10 {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
	}
	for _, c := range []struct{ target, head string }{
		{base, "Accept-Encoding: gzip;q=0"}, {base, "Accept-Encoding: br"}, {base + "?limit=2", takesGzip}, {base + "/w000", takesGzip},
	} {
		w := h.ask("GET", c.target, "", c.head)
		if w.Header().Get("Content-Encoding") != "" || w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%v: %v", c, w.Header())
		}
	}
	if w := h.ask("GET", base, "", takesGzip); w.Code == 200 {
		decodeAll(t, unzip(t, w.Body.Bytes()), 30)
	}
	decodeAll(t, plain.Body.String(), 30)
}

func decodeAll(t *testing.T, body string, n int) {
	t.Helper()
	w := httptest.NewRecorder()
	_, _ = w.WriteString(body)
	if got := decodeList(t, w); len(got.Items) != n {
		t.Errorf("%d items, want %d", len(got.Items), n)
	}
}

// brittle is a ResponseWriter that fails after some bytes.
type brittle struct {
	*httptest.ResponseRecorder
	left int
}

func (b *brittle) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errors.New("gone")
	}
	return b.ResponseRecorder.Write(p)
}

func TestFailureInTheBodyAborts(t *testing.T) {
	h := newHouse(t, tune{})
	h.makeLarge(t, 60)
	for _, head := range []string{"", takesGzip} {
		func() {
			defer func() {
				if p := recover(); !aborts(p) {
					t.Errorf("panic %v", p)
				}
			}()
			r := httptest.NewRequest(http.MethodGet, base, nil)
			if head != "" {
				r.Header.Set("Accept-Encoding", "gzip")
			}
			h.ServeHTTP(&brittle{httptest.NewRecorder(), 3000}, r)
			t.Error("ended cleanly")
		}()
	}
}

// TestWatchListGzip reads a compressed watch over a real connection: every event must arrive when it is sent.
func TestWatchListGzip(t *testing.T) {
	h := newHouse(t, tune{})
	h.make(t, "a")
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	request := func(query string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+base+"?watch=1"+query, nil)
		must(t, err)
		r.Header.Set("Accept-Encoding", "gzip")
		resp, err := http.DefaultTransport.RoundTrip(r)
		must(t, err)
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	for _, query := range []string{"&resourceVersion=1", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"} {
		if resp := request(query); resp.Header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", query, resp.Header)
		}
	}
	resp := request("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	if resp.Header.Get("Content-Encoding") != "gzip" || resp.Header.Get("Vary") != "Accept-Encoding" {
		t.Errorf("%v", resp.Header)
	}
	z, err := gzip.NewReader(resp.Body)
	must(t, err)
	lines := bufio.NewReader(z)
	next := func(want string) {
		t.Helper()
		line, err := lines.ReadString('\n')
		if err != nil || line != want {
			t.Fatalf("%v: got %swant %s", err, line, want)
		}
	}
	next(frame("ADDED", h.whole(t, "a")))
	next(mark(h.now(t), true))
	for _, name := range []string{"b", "c"} {
		h.make(t, name)
		next(frame("ADDED", h.whole(t, name)))
	}
}
