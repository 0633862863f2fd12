package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
)

const (
	listed      = 10_000 // objects
	listedBytes = 1800   // about the length of the JSON of each
	listedKinds = 100    // values of the label and the field; each selects one object in a hundred
)

// crate is a kind with a label and a field for selectors.
type crateSpec struct {
	Group string `json:"group"`
	Data  string `json:"data"`
}

type crate = runtime.Resource[crateSpec, struct{}]

// BenchmarkList measures reads of 10,000 objects of 1.8 KiB over a TCP connection of the loopback interface, with the
// client that reads the answer in the same process:
//
//	all            a LIST of all
//	slice          the same bytes, written by a handler of net/http from one slice: what there is to compare with
//	label          a LIST of one object in a hundred, by a label
//	label-indexed  the same with an index
//	label-slice    the bytes of that answer from one slice
//	get            a GET of one object
//
// each over HTTP/1.1 without TLS and over HTTP/2 with it.
func BenchmarkList(b *testing.B) {
	plain, indexed := newCrates(b, false), newCrates(b, true)
	for _, proto := range []string{"http1", "tls-http2"} {
		one := plain.serve(b, proto, plain.Handler())
		other := indexed.serve(b, proto, indexed.Handler())
		all, selected := one.read(b, crates), one.read(b, crates+oneCrate)
		slices := plain.serve(b, proto, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			text := all
			if r.URL.RawQuery != "" {
				text = selected
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			_, _ = w.Write(text)
		}))
		for _, c := range []struct {
			name, path string
			from       *reader
		}{
			{"all", crates, one}, {"slice", crates, slices},
			{"label", crates + oneCrate, one}, {"label-indexed", crates + oneCrate, other}, {"label-slice", crates + oneCrate, slices},
			{"get", crates + "/c00042", one},
		} {
			b.Run(proto+"/"+c.name, func(b *testing.B) {
				b.SetBytes(int64(len(c.from.read(b, c.path))))
				b.ReportAllocs()
				for b.Loop() {
					c.from.discard(b, c.path)
				}
			})
		}
	}
}

const (
	crates   = "/apis/example.com/v1/namespaces/default/crates"
	oneCrate = "?labelSelector=group%3Dg7"
)

// newCrates is a server of 10,000 crates.
func newCrates(b *testing.B, index bool) *crateServer {
	b.Helper()
	o := server.KindOptions[*crate]{}
	if index {
		o.IndexLabels = []string{"group"}
	}
	srv, err := server.New(one([]server.Resource{server.Kind("Crate", o)}))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = srv.Close() })
	s := &crateServer{srv}
	made := s.serve(b, "http1", srv.Handler())
	for i := range listed {
		group := fmt.Sprintf("g%d", i%listedKinds)
		made.post(b, fmt.Sprintf(`{"metadata":{"name":"c%05d","labels":{"group":%q}},"spec":{"group":%q,"data":%q}}`,
			i, group, group, strings.Repeat("x", listedBytes-300)))
	}
	return s
}

type crateServer struct{ *server.Server }

// serve serves a handler on a port of the loopback interface, and returns a client of it.
func (s *crateServer) serve(b *testing.B, proto string, h http.Handler) *reader {
	b.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	hs := &http.Server{Handler: h, TLSConfig: s.Credentials().TLSConfig()}
	url, served := "http://"+ln.Addr().String(), make(chan error, 1)
	transport := &http.Transport{DisableCompression: true, ReadBufferSize: 64 << 10}
	if proto == "http1" {
		go func() { served <- hs.Serve(ln) }()
	} else {
		url = "https" + strings.TrimPrefix(url, "http")
		transport.ForceAttemptHTTP2 = true
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it is the server of this benchmark
		go func() { served <- hs.ServeTLS(ln, "", "") }()
	}
	b.Cleanup(func() {
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = hs.Shutdown(ctx)
		<-served
	})
	return &reader{client: &http.Client{Transport: transport}, url: url, token: s.Credentials().Token, buf: make([]byte, 256<<10)}
}

// reader is a client that reads one answer after the other.
type reader struct {
	client     *http.Client
	url, token string
	buf        []byte
}

func (r *reader) do(b *testing.B, method, path, body string, code int) *http.Response {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := r.client.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	if resp.StatusCode != code {
		text, _ := io.ReadAll(resp.Body)
		b.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return resp
}

func (r *reader) post(b *testing.B, body string) {
	b.Helper()
	r.drain(b, r.do(b, "POST", crates, body, 201))
}

func (r *reader) read(b *testing.B, path string) []byte {
	b.Helper()
	resp := r.do(b, "GET", path, "", 200)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

func (r *reader) discard(b *testing.B, path string) {
	b.Helper()
	r.drain(b, r.do(b, "GET", path, "", 200))
}

// drain reads an answer to its end, so that its connection is used again.
func (r *reader) drain(b *testing.B, resp *http.Response) {
	b.Helper()
	for {
		if _, err := resp.Body.Read(r.buf); err == io.EOF {
			break
		} else if err != nil {
			b.Fatal(err)
		}
	}
	_ = resp.Body.Close()
}
