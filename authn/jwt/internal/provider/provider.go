// Package provider knows the keys of an OpenID Connect provider: it finds and fetches them in the background
// (https://openid.net/specs/openid-connect-discovery-1_0.html), fetches them again when a token needs a key that it does not know, and
// verifies tokens.
//
// A Provider has one goroutine, which is the only one that connects. It begins with discovery, again every Limits.Retry until it has
// keys. Until then tokens are refused at once. Afterwards a token whose signature no known key verifies waits for keys that are
// fetched after it came. All such tokens wait for the same fetch, the fetches have a pause between them, and the number of waiting
// tokens is bounded: an unknown key id costs the issuer at most a request in each Limits.Pause, however many clients invent some. Tokens
// with known keys never wait. A fetch that fails leaves the known keys in use.
package provider

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/authn/internal/jose"
)

// Limits bound what a provider costs. Zero fields stand for the defaults.
type Limits struct {
	Timeout   time.Duration // of a request to the provider, with the reading of the answer; 30 s
	Retry     time.Duration // between two attempts while no keys are known; 10 s
	Pause     time.Duration // at least so long between the beginnings of two fetches; 1 s
	Every     time.Duration // fetches without cause, so that keys that the provider withdraws are forgotten; 1 h
	Document  int64         // bytes of the discovery document and of the keys; 1 MiB
	Keys      int           // keys; 100
	Modulus   int           // bits of an RSA key; 8192
	Waiting   int           // tokens that wait for keys; 1000
	Redirects int           // in one request; 10, less than 0 none
	Conns     int           // to a host at a time; 16
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Timeout: cmp.Or(l.Timeout, 30*time.Second), Retry: cmp.Or(l.Retry, 10*time.Second), Pause: cmp.Or(l.Pause, time.Second),
		Every: cmp.Or(l.Every, time.Hour), Document: cmp.Or(l.Document, 1<<20), Keys: cmp.Or(l.Keys, 100), Waiting: cmp.Or(l.Waiting, 1000),
		Redirects: cmp.Or(l.Redirects, 10), Modulus: cmp.Or(l.Modulus, 8192), Conns: cmp.Or(l.Conns, 16),
	}
}

// Options are the options of New.
type Options struct {
	Issuer       string // what tokens and the discovery document state
	DiscoveryURL string // of the discovery document; "" is the well-known place below Issuer
	// Client connects; see NewClient. It is not closed.
	Client *http.Client
	Limits Limits
	// Fetched is called after each attempt to get keys, with a hash of the keys, or with the error. A nil Fetched is not called.
	Fetched func(keys string, err error)
}

// Errors of Verify, besides those of package jose.
var (
	// ErrUninitialized means that no keys are known yet.
	ErrUninitialized = errors.New("oidc: authenticator not initialized")
	// ErrBusy means that Limits.Waiting tokens wait already.
	ErrBusy = errors.New("oidc: too many tokens wait for the keys of their issuer")
	// ErrClosed means that the provider is closed.
	ErrClosed = errors.New("oidc: the authenticator is closed")
)

// Provider verifies the tokens of an issuer. Make one with New, and Close it. All methods may be called concurrently.
type Provider struct {
	o     Options
	ended context.Context
	end   context.CancelFunc
	done  chan struct{} // closed when run has returned
	wake  chan struct{} // has an element if next is set
	keys  atomic.Pointer[keySet]

	mu      sync.Mutex // guards the fields below
	now     *fetch     // is going on
	next    *fetch     // is wanted
	waiting int
	err     error // of the last attempt
}

// fetch is one attempt to get keys. done is closed when it has ended.
type fetch struct{ done chan struct{} }

// keySet are the keys of one fetch, or of several that had the same.
type keySet struct {
	keys []jose.Key
	hash string
}

// New returns a provider, and begins discovery in the background.
func New(o Options) *Provider {
	o.Limits = o.Limits.withDefaults()
	if o.Fetched == nil {
		o.Fetched = func(string, error) {}
	}
	first := &fetch{make(chan struct{})}
	p := &Provider{o: o, done: make(chan struct{}), wake: make(chan struct{}, 1), now: first, err: ErrUninitialized}
	p.ended, p.end = context.WithCancel(context.Background())
	go p.run()
	return p
}

// Close ends the fetch in progress, and waits for it. Tokens whose keys are known are verified afterwards too.
func (p *Provider) Close() {
	p.end()
	<-p.done
}

// Ready returns nil once keys are known. Otherwise the error is that of the last attempt to get them.
func (p *Provider) Ready() error {
	if p.keys.Load() != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Failed reports whether no keys are known, and an attempt to get them has failed.
func (p *Provider) Failed() bool {
	err := p.Ready()
	return err != nil && !errors.Is(err, ErrUninitialized)
}

// Wait waits until keys are known.
func (p *Provider) Wait(ctx context.Context) error {
	for p.keys.Load() == nil {
		f := p.going()
		if f == nil {
			f = p.wanted()
		}
		if err := p.await(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// Try waits for the attempt to get keys that is going on, if no keys are known, and returns the error of Ready. After New the first
// attempt is going on.
func (p *Provider) Try(ctx context.Context) error {
	if f := p.going(); f != nil && p.keys.Load() == nil {
		if err := p.await(ctx, f); err != nil {
			return err
		}
	}
	return p.Ready()
}

// Verify verifies the signature of a token, and returns its claims. The error is one of this package, one of package jose, or that of
// ctx, and says nothing about the time.
func (p *Provider) Verify(ctx context.Context, token *jose.Signed) (claims []byte, err error) {
	keys := p.keys.Load()
	if keys == nil {
		return nil, ErrUninitialized
	}
	claims, err = token.Verify(keys.keys)
	if !errors.Is(err, jose.ErrSignature) {
		return claims, err
	}
	for _, newer := range []func() *fetch{p.going, p.wanted} { // a fetch that has begun before the token came may have its key, the next one must
		f := newer()
		if f == nil {
			continue
		}
		if err := p.await(ctx, f); err != nil {
			return nil, err
		}
		now := p.keys.Load()
		if now == keys {
			continue
		}
		if claims, err = token.Verify(now.keys); !errors.Is(err, jose.ErrSignature) {
			return claims, err
		}
		keys = now
	}
	return nil, jose.ErrSignature
}

// going returns the fetch that is going on, or nil.
func (p *Provider) going() *fetch {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// wanted returns a fetch that has not begun.
func (p *Provider) wanted() *fetch {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = &fetch{make(chan struct{})}
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	return p.next
}

// await waits for the end of a fetch.
func (p *Provider) await(ctx context.Context, f *fetch) error {
	p.mu.Lock()
	full := p.waiting >= p.o.Limits.Waiting
	if !full {
		p.waiting++
	}
	p.mu.Unlock()
	if full {
		return ErrBusy
	}
	defer func() {
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
	}()
	select {
	case <-f.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ended.Done():
		return ErrClosed
	}
}

// run gets keys until the provider is closed.
func (p *Provider) run() {
	defer close(p.done)
	address := "" // of the keys; "" is not known
	for p.ended.Err() == nil {
		begun := time.Now()
		p.begin()
		keys, err := p.get(&address)
		p.finish(keys, err)
		if p.keys.Load() == nil {
			p.sleep(p.o.Limits.Retry - time.Since(begun))
			continue
		}
		p.sleep(p.o.Limits.Pause - time.Since(begun))
		select {
		case <-p.wake:
		case <-time.After(p.o.Limits.Every):
			address = ""
		case <-p.ended.Done():
		}
	}
}

// sleep waits until the provider is closed, at most for d.
func (p *Provider) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.ended.Done():
	}
}

// begin makes the wanted fetch, if there is one, the one that is going on.
func (p *Provider) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil { // the first
		return
	}
	if p.now, p.next = p.next, nil; p.now == nil {
		p.now = &fetch{make(chan struct{})}
	}
	select {
	case <-p.wake:
	default:
	}
}

// finish publishes the result of the fetch that is going on.
func (p *Provider) finish(keys []jose.Key, err error) {
	hash := ""
	if err == nil {
		hash = hashOf(keys)
		if known := p.keys.Load(); known == nil || known.hash != hash {
			p.keys.Store(&keySet{keys, hash})
		}
	}
	if p.ended.Err() == nil {
		p.o.Fetched(hash, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	close(p.now.done)
	p.now = nil
}

// NewClient returns a client for the requests of providers. It trusts roots, or those of the system if roots is nil. It follows
// redirects to https only. dial may be nil.
func NewClient(roots *x509.CertPool, dial func(ctx context.Context, network, address string) (net.Conn, error), l Limits) *http.Client {
	l = l.withDefaults()
	const handshake = 10 * time.Second
	if dial == nil {
		dial = (&net.Dialer{Timeout: l.Timeout, KeepAlive: 30 * time.Second}).DialContext
	}
	return &http.Client{
		Timeout: l.Timeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: dial, TLSClientConfig: tlsConfig(roots), TLSHandshakeTimeout: handshake, ForceAttemptHTTP2: true,
			MaxIdleConns: 4, MaxConnsPerHost: l.Conns, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			switch {
			case r.URL.Scheme != "https":
				return fmt.Errorf("a redirect to the scheme %.20q is not followed", r.URL.Scheme)
			case len(via) > l.Redirects:
				return fmt.Errorf("there are more than %d redirects", max(0, l.Redirects))
			}
			return nil
		},
	}
}
