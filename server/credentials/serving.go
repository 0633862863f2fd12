package credentials

import (
	"crypto/tls"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// retry is how long a serving certificate is shown at least before it is replaced. One that the authority cannot make any longer
// because its own time is nearly up would otherwise be made for each connection.
const retry = time.Hour

// serving is the serving certificate of a Bundle, which is made anew while it is in use.
type serving struct {
	ca      authority
	path    string
	want    profile
	now     func() time.Time
	renewed func(until time.Time, err error)

	current atomic.Pointer[served]
	mu      sync.Mutex // is held by who makes the next
}

// served is a certificate, and when it is replaced.
type served struct {
	cert  tls.Certificate
	until time.Time
}

// newServed is p from a time on.
func newServed(p *pair, now time.Time) *served {
	until := p.cert.NotAfter.Add(-renewal)
	if least := now.Add(retry); until.Before(least) {
		until = least
	}
	return &served{tls.Certificate{Certificate: [][]byte{p.cert.Raw}, PrivateKey: p.key, Leaf: p.cert}, until}
}

// get returns the certificate to show now.
func (s *serving) get() (*tls.Certificate, error) {
	now := s.now()
	if c := s.current.Load(); now.Before(c.until) {
		return &c.cert, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.current.Load()
	if now.Before(before.until) { // somebody else was faster
		return &before.cert, nil
	}
	p, err := s.ca.open(s.path, s.want, now)
	if err != nil { // it is not kept, and the next Open makes another
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

// Certificate returns the serving certificate for a new connection, as tls.Config.GetCertificate does. It is that of Open until 30
// days before its end, and then a new one of the same authority, which is kept in the place of the one before, so that clients go
// on trusting a server that is never restarted. Other processes of the directory use that one too. Any number of goroutines may
// call it; all but the first in a year cost a look at the clock.
func (b *Bundle) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) { return b.serving.get() }
