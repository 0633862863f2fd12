package programtest

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

// client sends requests to a program over HTTP/2 and TLS, with its token.
type client struct {
	http  *http.Client
	token string
}

// newClient returns a client according to the command line: it trusts the certificate of -cert, and has the token of -token.
func newClient(t testing.TB, args []string) client {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // the program has made the certificate itself
	var c client
	for i := range max(0, len(args)-1) {
		switch args[i] {
		case "-token":
			c.token = args[i+1]
		case "-cert":
			pem, err := os.ReadFile(args[i+1])
			if err != nil {
				t.Fatal(err)
			}
			config = &tls.Config{RootCAs: x509.NewCertPool()}
			config.RootCAs.AppendCertsFromPEM(pem)
		}
	}
	c.http = &http.Client{Timeout: waitTime, Transport: &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: true}}
	return c
}

func (c client) close() {
	if c.http != nil {
		c.http.CloseIdleConnections()
	}
}

// WithToken returns a copy of the process that sends requests with another token; "" means none. Use it only for requests.
func (p *Process) WithToken(token string) *Process {
	other := &Process{URL: p.URL, t: p.t, client: p.client}
	other.client.token = token
	return other
}

// Answer is the answer of a server.
type Answer struct {
	// Code is the HTTP code.
	Code int
	// Header has the headers of the answer.
	Header http.Header
	// Body is the body of the answer.
	Body string
	// Proto is the protocol, such as HTTP/2.0.
	Proto string

	t    testing.TB
	what string
}

// Do sends a request; mediaType is the media type of the body.
func (p *Process) Do(method, path, mediaType, body string) Answer {
	p.t.Helper()
	req := p.request(p.t.Context(), method, path, strings.NewReader(body))
	if mediaType != "" {
		req.Header.Set("Content-Type", mediaType)
	}
	return p.answer(req)
}

// Get sends a GET. headers has names and values in turn.
func (p *Process) Get(path string, headers ...string) Answer {
	p.t.Helper()
	req := p.request(p.t.Context(), http.MethodGet, path, http.NoBody)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return p.answer(req)
}

func (p *Process) request(ctx context.Context, method, path string, body io.Reader) *http.Request {
	p.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, p.URL+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	if p.client.token != "" {
		req.Header.Set("Authorization", "Bearer "+p.client.token)
	}
	return req
}

func (p *Process) answer(req *http.Request) Answer {
	p.t.Helper()
	res, err := p.client.http.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	return Answer{res.StatusCode, res.Header, string(body), res.Proto, p.t, req.Method + " " + req.URL.RequestURI()}
}

// Want fails the test at once unless the answer has this code, and its body contains all parts.
func (a Answer) Want(code int, parts ...string) Answer {
	a.t.Helper()
	if a.Code != code {
		a.t.Fatalf("%s: code %d, want %d: %s", a.what, a.Code, code, a.Body)
	}
	for _, part := range parts {
		if !strings.Contains(a.Body, part) {
			a.t.Fatalf("%s: no %q in %s", a.what, part, a.Body)
		}
	}
	return a
}

// JSON decodes the body.
func (a Answer) JSON(into any) {
	a.t.Helper()
	if err := json.Unmarshal([]byte(a.Body), into); err != nil {
		a.t.Fatalf("%s: %v: %s", a.what, err, a.Body)
	}
}

// Watch is a watch that lasts until the test or the server ends.
type Watch struct {
	t     testing.TB
	lines *bufio.Reader
}

// Watch starts a watch.
func (p *Process) Watch(path string) *Watch {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	p.t.Cleanup(cancel)
	res, err := p.client.http.Do(p.request(ctx, http.MethodGet, path, http.NoBody))
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("watch %s: %s", path, res.Status)
	}
	return &Watch{p.t, bufio.NewReader(res.Body)}
}

// Next waits for an event and returns its type and its object. At the end of the watch the type is "".
func (w *Watch) Next() (kind string, object json.RawMessage) {
	w.t.Helper()
	line, err := w.lines.ReadBytes('\n')
	if err != nil {
		return "", nil
	}
	var event struct {
		Type   string
		Object json.RawMessage
	}
	if err := json.Unmarshal(line, &event); err != nil {
		w.t.Fatalf("%v: %s", err, line)
	}
	return event.Type, event.Object
}
