package filters_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

// openConns counts the connections of a server.
type openConns struct {
	n atomic.Int64
}

func (o *openConns) state(_ net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew:
		o.n.Add(1)
	case http.StateClosed, http.StateHijacked:
		o.n.Add(-1)
	}
}

// withheld is a request whose body does not come, or comes in part.
const withheld = " /apis/example.com/v1/widgets?%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf"

// A client that announces a body and does not send it gets its answer, unless the handler is aborted, and its connection is
// closed. This holds for all kinds of answers, in any http.Server.
func TestBodiesThatAreNotSent(t *testing.T) {
	const grace = 20 * time.Millisecond
	read := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusCreated)
	}
	for name, tc := range map[string]struct {
		method, query string
		handler       http.HandlerFunc
		want          string // the beginning of the answer
	}{
		"refused":           {"POST", "", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "HTTP/1.1 401 "},
		"silent":            {"PUT", "", func(http.ResponseWriter, *http.Request) {}, "HTTP/1.1 200 "},
		"half read":         {"POST", "", func(_ http.ResponseWriter, r *http.Request) { _, _ = r.Body.Read(make([]byte, 2)) }, "HTTP/1.1 200 "},
		"closed":            {"POST", "", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusConflict); _ = r.Body.Close() }, "HTTP/1.1 409 "},
		"get":               {"GET", "", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "x") }, "HTTP/1.1 200 "},
		"aborted":           {"POST", "", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, ""},
		"panics":            {"POST", "", func(http.ResponseWriter, *http.Request) { panic("x") }, "HTTP/1.1 500 "},
		"read":              {"POST", "timeout=50ms", read, "HTTP/1.1 504 "},
		"read by a watch":   {"GET", "watch=1", func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush() }, "HTTP/1.1 200 "},
		"panics when begun": {"POST", "", func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).Flush(); panic("x") }, "HTTP/1.1 200 "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var open openConns
			ts := httptest.NewUnstartedServer(filters.Chain(tc.handler, filters.Recover(nil), filters.UnreadBody(grace), filters.RequestInfo(request.Resolver{}),
				filters.Deadline(0), filters.Timeout()))
			ts.Config.ConnState = open.state
			ts.Start()
			defer ts.Close()
			c, err := net.Dial("tcp", ts.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			fmt.Fprintf(c, tc.method+withheld, tc.query)
			answer, _ := io.ReadAll(c) // until the server closes
			if !strings.HasPrefix(string(answer), tc.want) || tc.want == "" && len(answer) > 0 {
				t.Errorf("answered %q, want %q", answer, tc.want)
			}
			for open.n.Load() > 0 { // the client's end comes before the server's
				time.Sleep(time.Millisecond)
			}
		})
	}
}

// A GET is answered before its body has come, and a watch then lasts.
func TestBodyOfAWatch(t *testing.T) {
	ts := httptest.NewServer(filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "begun")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}), filters.UnreadBody(time.Hour)))
	defer ts.Close()
	c, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // ends the watch
	fmt.Fprintf(c, "GET"+withheld, "watch=1")
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); line != "begun\n" || !resp.Close {
		t.Errorf("%q, %v, close %t", line, err, resp.Close)
	}
}

// A body that has come does not end its connection, whether the handler has read it or not, and leaves no deadline for later
// requests.
func TestBodiesThatAreSent(t *testing.T) {
	const grace = 300 * time.Millisecond
	var duplex atomic.Int64
	ts := httptest.NewServer(filters.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/read":
			_, _ = io.ReadAll(r.Body)
			_ = http.NewResponseController(w).Flush()
			time.Sleep(2 * grace)
			if r.Context().Err() != nil {
				t.Error("a request whose body was read is ended")
			}
		case "/duplex":
			_ = http.NewResponseController(w).EnableFullDuplex()
			_ = http.NewResponseController(w).Flush()
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				t.Error(err)
			}
			duplex.Add(n)
		}
	}), filters.Recover(nil), filters.UnreadBody(grace)))
	defer ts.Close()
	c, err := net.Dial("tcp", ts.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for _, path := range []string{"/refused", "/read", "/refused", "/read", "/duplex", "/refused"} {
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n", path)
		if path == "/duplex" {
			time.Sleep(2 * grace)
		}
		fmt.Fprint(c, "body")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if _, err := io.ReadAll(resp.Body); err != nil || resp.Close {
			t.Errorf("%s: %v, close %t", path, err, resp.Close)
		}
	}
	if duplex.Load() != 4 {
		t.Errorf("%d bytes are read after the answer has begun", duplex.Load())
	}
}
