package credentials

import (
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// retry is the least time for which a serving certificate is used before it is replaced. When the authority itself expires soon,
// it can only make certificates that are to be replaced at once; without retry one would be made for each connection.
const retry = time.Hour

// serving is the serving certificate of a Bundle, which is replaced while it is in use.
type serving struct {
	ca      authority
	path    string
	want    profile
	now     func() time.Time
	renewed func(until time.Time, err error)

	current atomic.Pointer[served]
	mu      sync.Mutex // held while the next certificate is made
}

// served is a certificate, and the time at which it is replaced.
type served struct {
	cert  tls.Certificate
	until time.Time
}

// newServed returns p as served from now on.
func newServed(p *pair, now time.Time) *served {
	until := p.cert.NotAfter.Add(-renewal)
	if least := now.Add(retry); until.Before(least) {
		until = least
	}
	return &served{tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key, Leaf: p.cert}, until}
}

// get returns the certificate for a connection now.
func (s *serving) get() (*tls.Certificate, error) {
	now := s.now()
	if c := s.current.Load(); now.Before(c.until) {
		return &c.cert, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Load()
	if now.Before(before.until) { // another goroutine has replaced it
		return &before.cert, nil
	}
	p, err := s.ca.open(s.path, s.want, now)
	if err != nil { // the certificate could not be written, and the next Open makes another
		var issued error
		if p, issued = issue(s.want.template(now), s.ca.pair); issued != nil {
			return nil, fmt.Errorf("credentials: %w", issued)
		}
	}
	next := newServed(p, now)
	s.current.Store(next)
	if s.renewed != nil {
		s.renewed(p.cert.NotAfter, err)
	}
	return &next.cert, nil
}

// Certificate returns the serving certificate for a new connection, as tls.Config.GetCertificate does. Until 30 days before the
// certificate of Open expires, Certificate returns that certificate. Then it makes a new certificate of the same authority, which
// replaces the old one in serving.pem. So clients trust a server that is never restarted, and other processes with the same
// directory use the new certificate, too. Certificate may be called concurrently. All calls but the one that makes a certificate
// only read the clock.
func (b *Bundle) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return b.serving.get() }
