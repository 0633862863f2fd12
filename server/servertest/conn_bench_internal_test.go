package servertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
)

// BenchmarkConnections sends the same requests to a server over TLS and HTTP/2 by connections in memory, of net.Pipe and of the
// loopback interface: an object of 1 KiB, a list of 500 of them, two writes with their events in a watch, and a handshake.
func BenchmarkConnections(b *testing.B) {
	type text = runtime.Resource[struct {
		Text string `json:"text"`
	}, struct{}]
	for _, kind := range []string{"memory", "pipe", "tcp"} {
		b.Run("conn="+kind, func(b *testing.B) {
			srv := New(b, server.Group{Name: "example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
				server.Kind("Text", server.KindOptions[*text]{}),
			}}}})
			tr := srv.Transport()
			tr.DialContext = dialBy(b, srv, kind)
			benchmarkRequests(b, &http.Client{Transport: bearer{srv.Token, tr}}, srv.URL+"/apis/example.com/v1/namespaces/a/texts")
		})
	}
}

// dialBy returns a dial function for another kind of connection to the server.
func dialBy(b *testing.B, srv *Server, kind string) func(ctx context.Context, network, address string) (net.Conn, error) {
	switch kind {
	case "pipe":
		pipes := pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		if err := srv.listener.Add(pipes); err != nil {
			b.Fatal(err)
		}
		return func(ctx context.Context, _, _ string) (net.Conn, error) {
			client, server := net.Pipe()
			select {
			case pipes.conns <- server:
				return client, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	case "tcp":
		url, err := srv.Listen(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, strings.TrimPrefix(url, "https://"))
		}
	}
	return srv.DialContext
}

// pipes is a listener for connections of net.Pipe.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	close(p.done)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func benchmarkRequests(b *testing.B, client *http.Client, texts string) {
	b.Cleanup(client.CloseIdleConnections)
	body := `{"metadata":{"name":"text-%d"},"spec":{"text":"` + strings.Repeat("x", 1<<10) + `"}}`
	for i := range 500 {
		exchange(b, client, http.MethodPost, texts, fmt.Sprintf(body, i))
	}
	for name, url := range map[string]string{"get": texts + "/text-1", "list": texts} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				exchange(b, client, http.MethodGet, url, "")
			}
		})
	}
	b.Run("watch", func(b *testing.B) {
		resp := begin(b, client, http.MethodGet, texts+"?watch=1&fieldSelector=metadata.name%3Dtext-2", "")
		defer func() { _ = resp.Body.Close() }()
		events := bufio.NewReader(resp.Body)
		next := func() {
			if _, err := events.ReadSlice('\n'); err != nil {
				b.Fatal(err)
			}
		}
		next()
		for b.Loop() {
			for _, text := range []string{"a", "b"} {
				exchange(b, client, http.MethodPatch, texts+"/text-2", `{"spec":{"text":"`+text+`"}}`)
				next()
			}
		}
	})
	b.Run("handshake", func(b *testing.B) {
		for b.Loop() {
			client.CloseIdleConnections()
			exchange(b, client, http.MethodGet, texts+"/text-1", "")
		}
	})
}

func begin(b *testing.B, client *http.Client, method, url, body string) *http.Response {
	r, err := http.NewRequestWithContext(b.Context(), method, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	if resp.StatusCode > http.StatusCreated {
		b.Fatalf("%s %s: %s", method, url, resp.Status)
	}
	return resp
}

func exchange(b *testing.B, client *http.Client, method, url, body string) {
	resp := begin(b, client, method, url, body)
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		b.Fatal(err)
	}
}
