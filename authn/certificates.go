package authn

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// certificates verifies the client certificates of requests, and remembers the results.
type certificates struct {
	roots  func() *x509.CertPool
	accept func(leaf *x509.Certificate) (*Response, error)

	mu    sync.Mutex // guards the fields below
	pool  *x509.CertPool
	known *simplelru.LRU[*x509.Certificate, verdict]
	size  int // the sum of the sizes in known
}

// verdict is the result for a certificate with certificates.pool.
type verdict struct {
	response *Response
	err      error
	until    time.Time // the result has to be found again from then on
	size     int       // of all certificates that the client has sent, in bytes: they are one piece of memory
}

// refusalTime is the time for which a certificate remains refused. It is short because a certificate may become valid. It is not 0
// because a server asks more than one authority about the certificate of each request, and most certificates are of only one.
const refusalTime = 10 * time.Second

// Bounds of what is remembered: the number of clients' certificates, which are of as many connections, and the size in bytes of all that
// the clients have sent.
const (
	maxCertificates     = 4096
	maxCertificateBytes = 16 << 20
)

// Bounds of what a client sends. To verify a certificate takes up to a hundred checks of signatures for ten intermediate certificates with
// one subject, and each takes a millisecond.
const (
	maxChain       = 8 // certificates
	maxSameSubject = 2 // certificates with one subject: a cross-signed authority has two
)

// newCertificates returns certificates that verify with the pool that roots returns. accept is called for a certificate that has
// verified, and its response is kept with it.
func newCertificates(roots func() *x509.CertPool, accept func(leaf *x509.Certificate) (*Response, error)) *certificates {
	c := &certificates{roots: roots, accept: accept}
	c.known, _ = simplelru.NewLRU(maxCertificates, func(_ *x509.Certificate, v verdict) { c.size -= v.size }) // fails for a size below 1
	return c
}

// check verifies the certificate of a request. there is false if the request has none, or if there are no authorities.
func (c *certificates) check(r *http.Request) (resp *Response, there bool, err error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, false, nil
	}
	pool := c.roots()
	if pool == nil {
		return nil, false, nil
	}
	leaf := r.TLS.PeerCertificates[0]
	if known, ok := c.find(pool, leaf); ok {
		return known.response, true, known.err
	}
	found := c.judge(leaf, r.TLS.PeerCertificates[1:], pool)
	c.remember(pool, leaf, found)
	return found.response, true, found.err
}

// judge verifies a certificate, and asks accept about it.
func (c *certificates) judge(leaf *x509.Certificate, rest []*x509.Certificate, pool *x509.CertPool) (v verdict) {
	if v.err = checkChain(leaf, rest); v.err == nil {
		v.until, v.err = verify(leaf, rest, pool)
	}
	if v.err == nil {
		v.response, v.err = c.accept(leaf)
	}
	if v.err != nil {
		v = verdict{err: v.err, until: time.Now().Add(refusalTime)}
	}
	for v.size = len(leaf.Raw); len(rest) > 0; rest = rest[1:] {
		v.size += len(rest[0].Raw)
	}
	return v
}

// checkChain returns an error if it could take long to verify what a client has sent.
func checkChain(leaf *x509.Certificate, rest []*x509.Certificate) error {
	if n := 1 + len(rest); n > maxChain {
		return fmt.Errorf("the client has sent %d certificates: want at most %d", n, maxChain)
	}
	for i, one := range rest {
		same := 1
		for _, other := range rest[:i] {
			if bytes.Equal(one.RawSubject, other.RawSubject) {
				same++
			}
		}
		if same > maxSameSubject {
			return fmt.Errorf("the client has sent more than %d intermediate certificates with one subject", maxSameSubject)
		}
	}
	return nil
}

// find returns what is remembered of a certificate. It forgets all if the pool is another one.
func (c *certificates) find(pool *x509.CertPool, leaf *x509.Certificate) (verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool != pool {
		c.pool = pool
		c.known.Purge()
		return verdict{}, false
	}
	known, ok := c.known.Get(leaf)
	if ok && time.Now().After(known.until) {
		c.known.Remove(leaf)
		return verdict{}, false
	}
	return known, ok
}

func (c *certificates) remember(pool *x509.CertPool, leaf *x509.Certificate, v verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool != pool || v.size > maxCertificateBytes/16 {
		return
	}
	c.known.Remove(leaf) // of another request of the connection
	c.known.Add(leaf, v)
	for c.size += v.size; c.size > maxCertificateBytes; {
		c.known.RemoveOldest()
	}
}

// verify verifies a certificate for client authentication. It returns the time until which the result holds.
func verify(leaf *x509.Certificate, rest []*x509.Certificate, roots *x509.CertPool) (until time.Time, err error) {
	opts := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, CurrentTime: time.Now()}
	if len(rest) > 0 {
		opts.Intermediates = x509.NewCertPool()
		for _, c := range rest {
			opts.Intermediates.AddCert(c)
		}
	}
	chains, err := leaf.Verify(opts)
	if err != nil {
		return time.Time{}, fmt.Errorf("verifying certificate %q (serial %s) failed: %w", leaf.Subject.CommonName, leaf.SerialNumber, err)
	}
	for _, chain := range chains {
		if end := firstEnd(chain); end.After(until) {
			until = end
		}
	}
	return until, nil
}

// firstEnd returns the time at which the first certificate of a chain expires.
func firstEnd(chain []*x509.Certificate) time.Time {
	end := chain[0].NotAfter
	for _, c := range chain[1:] {
		if c.NotAfter.Before(end) {
			end = c.NotAfter
		}
	}
	return end
}
