package webhook

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/outbound"
	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Client calls one webhook. It owns no connections and need not be closed, so it may be made for each use. It may be used
// concurrently.
type Client struct {
	caller *Caller
	target *target
	key    key
	name   string
}

// maxRetries limits how often a request is sent again after an answer with Retry-After.
const maxRetries = 10

// String names the webhook: the URL in quotes, or "the service name.namespace.svc:443".
func (c *Client) String() string { return c.name }

// Post sends body, which is JSON, and returns the body of the answer, which has a code of 200 to 206 and is not empty. The error
// is an *Error.
//
// The request is a POST with a query such as timeout=30s. It is sent by HTTP/1.1, so that calls are spread over the endpoints of
// a service, or by HTTP/2 if the host of the URL is localhost or a loopback address. If the answer has the code 429 or at least
// 500, and a Retry-After header in seconds, the request is sent again, at most ten times and as long as the deadline allows.
// Everything, including the last byte of the answer, must be done within the timeout.
//
// body must not change during the call or after it; it may be sent several times.
func (c *Client) Post(ctx context.Context, body []byte) ([]byte, error) {
	answer, err := c.post(ctx, body)
	if err != nil {
		return nil, c.Reject(err)
	}
	return answer, nil
}

func (c *Client) post(ctx context.Context, body []byte) ([]byte, error) {
	t, release, err := c.caller.acquire(c.key, c.target)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, c.caller.opts.Timeout, errTimeout)
	defer cancel()
	defer context.AfterFunc(c.caller.life, cancel)()
	for attempt := 0; ; attempt++ {
		answer, again, err := c.try(ctx, t, body)
		if err != nil && c.caller.life.Err() != nil {
			return nil, c.problem(errClosed)
		}
		if err == nil || again == nil || attempt == maxRetries || !outbound.Lasts(ctx, *again) || !outbound.Sleep(ctx, *again) {
			return answer, err
		}
	}
}

// try sends the request once. If err is not nil, again is the time after which the answer asks for a retry, or nil.
func (c *Client) try(ctx context.Context, t *transport, body []byte) (answer []byte, again *time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target.url, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json, */*")
	req.Header.Set("Accept-Encoding", "gzip")
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", c.caller.opts.UserAgent)
	if t.identity.Authorization != nil {
		value, err := t.identity.Authorization(ctx)
		if err != nil {
			return nil, nil, c.problem(err)
		}
		if value != "" {
			req.Header.Set("Authorization", value)
		}
	}
	resp, err := t.client.Do(req)
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		return nil, nil, c.problem(timeout("context deadline exceeded (Client.Timeout exceeded while awaiting headers)"))
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if isRedirect(resp) { // the redirect was not followed
		return nil, nil, c.problem(errRedirect)
	}
	if d, ok := outbound.RetryAfter(resp); ok && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError) {
		again = &d
	}
	refused := resp.StatusCode < http.StatusOK || resp.StatusCode > http.StatusPartialContent
	answer, err = c.read(ctx, resp, refused)
	if err != nil {
		return nil, again, err
	}
	contentType := resp.Header.Get("Content-Type")
	if contentType == "" {
		contentType = "application/json"
	}
	if _, _, err := mime.ParseMediaType(contentType); err != nil {
		return nil, again, apierrors.NewInternalError(err)
	}
	if refused {
		return nil, again, outbound.Refusal(resp, answer, http.MethodPost, schema.GroupResource{}, "")
	}
	if len(answer) == 0 {
		return nil, nil, fmt.Errorf("0-length response with status code: %d and content type: %s", resp.StatusCode, contentType)
	}
	return answer, nil, nil
}

// problem wraps err in an error that names the webhook, as the errors of package http do.
func (c *Client) problem(err error) error { return &url.Error{Op: "Post", URL: c.target.url, Err: err} }

// read reads the body of an answer. If refused is set, the answer is an error, and read reads only the beginning of its body.
func (c *Client) read(ctx context.Context, resp *http.Response, refused bool) ([]byte, error) {
	limit := c.caller.opts.MaxAnswer
	if refused {
		limit = min(limit, outbound.MaxRefusal)
	} else if resp.ContentLength > limit {
		return nil, c.problem(tooLong(limit))
	}
	sent := &io.LimitedReader{R: resp.Body, N: limit + 1}
	body, err := readAll(sent, resp.Header.Get("Content-Encoding"), limit+1)
	long := sent.N <= 0 || int64(len(body)) > limit
	if long {
		err = nil // a truncated body may fail to decompress
	}
	if err == nil {
		err = ctx.Err() // a server that shuts down may end its answer as if it were complete
	}
	if err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		err = timeout("net/http: request canceled (Client.Timeout or context cancellation while reading body)")
	}
	if stream := (http2.StreamError{}); errors.As(err, &stream) {
		return nil, fmt.Errorf("stream error when reading response body, may be caused by closed connection. Please retry. Original error: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", err)
	}
	if long {
		if !refused {
			return nil, c.problem(tooLong(limit))
		}
		body = body[:min(int64(len(body)), limit)]
	}
	return body, nil
}

// readAll reads at most limit bytes of sent, which has the encoding gzip or none.
func readAll(sent io.Reader, encoding string, limit int64) ([]byte, error) {
	if strings.EqualFold(encoding, "gzip") {
		text, err := gzip.NewReader(sent)
		if errors.Is(err, io.EOF) {
			return nil, nil // the body is empty
		}
		if err != nil {
			return nil, err
		}
		sent = text
	}
	return io.ReadAll(io.LimitReader(sent, limit))
}

// errTimeout is the cause of a context whose call has taken too long.
var errTimeout = errors.New("webhook: timeout")

// timeout is the error of a call that has taken too long. The errors of package http differ by where the timeout was noticed.
type timeout string

// Error implements error.
func (t timeout) Error() string { return string(t) }

// Is implements errors.Is.
func (t timeout) Is(target error) bool { return target == context.DeadlineExceeded }

// Timeout implements net.Error.
func (t timeout) Timeout() bool { return true }

// Temporary implements net.Error.
func (t timeout) Temporary() bool { return true }

func tooLong(limit int64) error { return fmt.Errorf("the answer is longer than %d bytes", limit) }
