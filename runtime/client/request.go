package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/keelson-dev/keelson/runtime/internal/outbound"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is a request for [Client.Do]. The zero Request is a GET of Config.Server.
type Request struct {
	Method string // the HTTP method; "" means GET
	// Path begins with a slash and is below Config.Server; it must not be escaped. "" means Config.Server itself.
	Path  string
	Query url.Values // the query parameters
	// Header is sent in addition to the headers of the Client: Accept and Content-Type, which are application/json unless Header
	// sets them, User-Agent, and the credentials, which Header cannot replace.
	Header http.Header
	// Body is sent unless it is nil, more than once if the request is repeated. It must not change until Do returns.
	Body []byte

	about about // for the texts of errors
}

// about is the object that a request is for; zero: none.
type about struct {
	resource schema.GroupResource
	name     string
}

// Response is the answer to a Request, with a code from 200 to 206.
type Response struct {
	Code   int         // the status code
	Header http.Header // the header of the answer
	Body   []byte      // the caller's own
}

// Do sends a request. An answer with another code than 200 to 206 is an error: see [Client].
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	ctx, release, err := c.begin(ctx)
	if err != nil {
		return nil, c.problem(&r, err)
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, c.opts.Timeout)
	defer cancel()
	resp, err := c.send(ctx, &r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := c.read(ctx, &r, resp)
	if err != nil {
		return nil, err
	}
	return &Response{Code: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// url returns the URL of a request.
func (c *Client) url(r *Request) string {
	u := *c.base
	u.Path += r.Path
	u.RawQuery = r.Query.Encode()
	return u.String()
}

// send sends a request, again if the answer asks for it. It returns an answer with a code of success, whose body has not been
// read; the caller closes the body.
func (c *Client) send(ctx context.Context, r *Request) (*http.Response, error) {
	if r.Path != "" && !strings.HasPrefix(r.Path, "/") {
		return nil, c.problem(r, fmt.Errorf("the path %q does not begin with a slash", r.Path))
	}
	renewed := false
	for attempt := 0; ; {
		req, err := c.newRequest(ctx, r)
		if err != nil {
			return nil, err
		}
		sent := req.Header.Get("Authorization")
		resp, err := c.http.Do(req)
		if err != nil {
			return nil, c.problem(r, err)
		}
		if resp.StatusCode >= http.StatusOK && resp.StatusCode <= http.StatusPartialContent {
			return resp, nil
		}
		body, _ := io.ReadAll(io.LimitReader(resp.Body, outbound.MaxRefusal)) // on an error the part that was read is used
		_ = resp.Body.Close()
		refusal := outbound.Refusal(resp, body, r.method(), r.about.resource, r.about.name)
		if resp.StatusCode == http.StatusUnauthorized && !renewed && c.identity.refused(sent) {
			renewed = true
			c.opts.Hooks.Retry(req.Method, c.url(r), refusal, 0)
			continue
		}
		after, again := outbound.RetryAfter(resp)
		again = again && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable)
		if !again || attempt >= c.opts.Retries || !outbound.Lasts(ctx, after) {
			return nil, refusal
		}
		c.opts.Hooks.Retry(req.Method, c.url(r), refusal, after)
		if !outbound.Sleep(ctx, after) {
			return nil, refusal
		}
		attempt++
	}
}

func (c *Client) newRequest(ctx context.Context, r *Request) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, c.url(r), body)
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	if r.Body != nil && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	req.Header.Del("Authorization")
	c.identity.setHeaders(req.Header)
	return req, nil
}

// read reads the body of an answer.
func (c *Client) read(ctx context.Context, r *Request, resp *http.Response) ([]byte, error) {
	limit := c.opts.MaxAnswer
	if resp.ContentLength > limit {
		return nil, c.problem(r, tooLong(limit))
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil {
		err = ctx.Err() // a server that shuts down may end its answer as if it were complete
	}
	if err == nil && int64(len(body)) > limit {
		err = tooLong(limit)
	}
	if err != nil {
		return nil, c.problem(r, err)
	}
	return body, nil
}

func tooLong(limit int64) error { return fmt.Errorf("%w: the limit is %d bytes", ErrTooLong, limit) }

// problem wraps err in an error that names the request, as the errors of package http do.
func (c *Client) problem(r *Request, err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if c.life.Err() != nil {
		err = ErrClosed
	}
	method := r.method()
	return &url.Error{Op: method[:1] + strings.ToLower(method[1:]), URL: c.url(r), Err: err}
}

func (r *Request) method() string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}
