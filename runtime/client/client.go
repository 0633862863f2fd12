package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/runtime/internal/outbound"
)

// Options are the options of [New]. The zero Options is usable. The functions are called concurrently.
type Options struct {
	// UserAgent is the User-Agent header of every request; "" means "keelson".
	UserAgent string
	// Timeout limits a request: all its attempts, the pauses between them, and the reading of the answer. For a watch it limits
	// the time until the stream begins. 0 means 30 seconds.
	Timeout time.Duration
	// Retries limits how often a request is sent again after an answer with the code 429 or 503 and a Retry-After header. 0 means
	// 10, and a negative number means never. If Retry-After is longer than the rest of the timeout, the client does not wait, and
	// the answer is the error.
	Retries int
	// MaxAnswer limits the bytes of an answer after decompression, and of one event of a watch. 0 means 32 MiB. A longer answer
	// or event fails with ErrTooLong. At most 1 MiB of an error answer is read.
	MaxAnswer int64
	// Dial opens connections; nil means a net.Dialer with a timeout of 30 seconds.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Hooks are called when requests fail and are sent again, and when credentials cannot be read.
	Hooks Hooks
}

// Hooks are functions that a Client calls synchronously; any of them may be nil. They must return quickly, and may be called
// concurrently. No argument contains a secret.
type Hooks struct {
	// Retry is called before the pause after which a request is sent again. err is the error in the last answer to the request.
	Retry func(method, url string, err error, after time.Duration)
	// Credentials is called if a token or certificate file could not be read again. The old token or certificate stays in use.
	Credentials func(file string, err error)
}

const (
	defaultUserAgent = "keelson"
	defaultTimeout   = 30 * time.Second
	defaultRetries   = 10
	defaultMaxAnswer = 32 << 20
)

func (o Options) withDefaults() Options {
	if o.UserAgent == "" {
		o.UserAgent = defaultUserAgent
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = defaultMaxAnswer
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if o.Hooks.Retry == nil {
		o.Hooks.Retry = func(string, string, error, time.Duration) {}
	}
	if o.Hooks.Credentials == nil {
		o.Hooks.Credentials = func(string, error) {}
	}
	return o
}

// ErrClosed is wrapped by the errors of calls after Close, and of calls that Close has ended.
var ErrClosed = errors.New("the client is closed")

// ErrTooLong is wrapped by the error of an answer or event that is longer than Options.MaxAnswer.
var ErrTooLong = errors.New("the answer is too long")

// Client sends requests to one server. Use [New] to make a Client, and close it. All methods may be called concurrently.
//
// If the answer was an error, the methods return a StatusError of apimachinery. It has the Status in the body of the answer, or
// else a Status for the code of the answer, with the text of client-go. If there was no answer, or the answer could not be read,
// the error is a *url.Error. The *url.Error wraps [ErrTooLong], [ErrClosed] or the context's error if that is the reason.
type Client struct {
	opts      Options
	base      *url.URL // without query; its path does not end with a slash
	identity  *identity
	http      *http.Client
	transport *http.Transport
	conns     *outbound.Connections
	life      context.Context
	end       context.CancelCauseFunc
	resources resourceCache

	mu     sync.Mutex // guards closed
	closed bool
	calls  sync.WaitGroup // Add under mu, while not closed; watches that have begun are not included
}

// New returns a client of the server in cfg, or an error that names the wrong field of cfg. It reads the files in cfg, and
// connects to nothing.
func New(cfg Config, o Options) (*Client, error) {
	o = o.withDefaults()
	base, err := cfg.check()
	if err != nil {
		return nil, err
	}
	id, err := newIdentity(cfg, o.Hooks.Credentials)
	if err != nil {
		return nil, err
	}
	c := &Client{opts: o, base: base, identity: id}
	c.life, c.end = context.WithCancelCause(context.Background())
	c.conns = outbound.NewConnections(c.life, o.Dial)
	c.transport = newTransport(cfg, id, c.conns.Dial)
	c.http = &http.Client{Transport: c.transport, CheckRedirect: sameServer}
	return c, nil
}

// Close ends the requests and watches in progress, which fail with ErrClosed, waits for the requests, and closes all connections.
// A second call has no effect.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end(ErrClosed)
	c.calls.Wait()
	c.transport.CloseIdleConnections()
	c.conns.Close()
}

// begin counts a call. The caller calls release when the call is over; Close cancels called.
func (c *Client) begin(ctx context.Context) (called context.Context, release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, ErrClosed
	}
	c.calls.Add(1)
	called, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.life, cancel)
	return called, func() {
		stop()
		cancel()
		c.calls.Done()
	}, nil
}
