package load

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"
)

// Target is a server with the credentials of a client.
type Target struct {
	URL string // https://HOST:PORT
	// Token is the bearer token; "": it has none.
	Token string
	// CAs are the trusted certificate authorities.
	CAs *x509.CertPool
	// Certificate is the client's certificate; nil: it has none.
	Certificate *tls.Certificate
	// Header has further headers of each request.
	Header http.Header
}

// requestTimeout is the timeout of a request; a LIST of everything by the slowest server takes a tenth of it.
const requestTimeout = 2 * time.Minute

// transport returns a transport with connections of its own: one connection, as long as the server accepts all streams on it.
func (t Target) transport() *http.Transport {
	config := &tls.Config{RootCAs: t.CAs, MinVersion: tls.VersionTLS13}
	if t.Certificate != nil {
		config.Certificates = []tls.Certificate{*t.Certificate}
	}
	return &http.Transport{
		TLSClientConfig:    config,
		ForceAttemptHTTP2:  true,
		DisableCompression: true, // a request asks for compression itself, and answers are not decompressed
		MaxIdleConns:       1, MaxIdleConnsPerHost: 1,
	}
}

// Client is one client of a server, with one connection. Only one goroutine at a time may use it.
type Client struct {
	target    Target
	transport *http.Transport
	body      []byte // the kept part of the last answer
	discard   []byte
}

// Dial returns a client. It connects with its first request.
func (t Target) Dial() *Client {
	return &Client{target: t, transport: t.transport(), discard: make([]byte, 64<<10)}
}

// DialAll returns n clients.
func (t Target) DialAll(n int) []*Client {
	clients := make([]*Client, n)
	for i := range clients {
		clients[i] = t.Dial()
	}
	return clients
}

// Close closes the connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// CloseAll closes the clients' connections.
func CloseAll(clients []*Client) {
	for _, c := range clients {
		c.Close()
	}
}

// KeepAll is a value for Request.Keep that keeps the whole answer.
const KeepAll = 1 << 40

// Request is a request of a client.
type Request struct {
	Method      string // "" means GET
	Path        string // with the query
	ContentType string // of Body; "" means application/json
	Accept      string // "" means application/json
	// Body is the body of the request.
	Body []byte
	Gzip bool  // the answer may be compressed
	Keep int64 // how many bytes at the beginning of the answer are kept; the rest is read and dropped
}

// Answer is an answer with code 200 or 201.
type Answer struct {
	Head []byte // the kept part of the body; valid until the client's next request
	Size int64  // size of the body as it was sent
	// Gzipped reports whether the body was compressed.
	Gzipped bool
}

// StatusError is the error for an answer with another code than 200 and 201.
type StatusError struct {
	// Code is the HTTP code.
	Code int
	// Request is the method and the path of the request.
	Request string
	Body    string // its beginning
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s was answered with %d: %s", e.Request, e.Code, e.Body)
}

// Do sends a request, and reads the answer to its end.
func (c *Client) Do(ctx context.Context, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := c.target.send(ctx, c.transport, r)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusCreated {
		return Answer{}, statusError(r, resp)
	}
	a := Answer{Gzipped: resp.Header.Get("Content-Encoding") == "gzip"}
	c.body = c.body[:0]
	for {
		n, err := resp.Body.Read(c.discard)
		if keep := min(int64(n), r.Keep-a.Size); keep > 0 {
			c.body = append(c.body, c.discard[:keep]...)
		}
		a.Size += int64(n)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Answer{}, fmt.Errorf("reading the answer to %s: %w", r, err)
		}
	}
	a.Head = c.body
	return a, nil
}

// String returns the method and the path.
func (r Request) String() string {
	if r.Method == "" {
		return http.MethodGet + " " + r.Path
	}
	return r.Method + " " + r.Path
}

func (t Target) send(ctx context.Context, transport *http.Transport, r Request) (*http.Response, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, t.URL+r.Path, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, t.Header)
	if t.Token != "" {
		req.Header.Set("Authorization", "Bearer "+t.Token)
	}
	req.Header.Set("Accept", "application/json")
	if r.Accept != "" {
		req.Header.Set("Accept", r.Accept)
	}
	req.Header.Set("User-Agent", "bench")
	if r.Gzip {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	if r.Body != nil {
		contentType := r.ContentType
		if contentType == "" {
			contentType = "application/json"
		}
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	if resp.ProtoMajor != 2 {
		resp.Body.Close()
		return nil, fmt.Errorf("%s was answered with %s: the bench compares servers on HTTP/2", r, resp.Proto)
	}
	return resp, nil
}

func statusError(r Request, resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1000))
	if err != nil {
		text = append(text, err.Error()...)
	}
	return &StatusError{Code: resp.StatusCode, Request: r.String(), Body: string(text)}
}
