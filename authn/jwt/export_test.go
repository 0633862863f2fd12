package jwt

import "time"

// NewBriefFile returns a File that closes authenticators which were replaced at once.
func NewBriefFile(publish func(*Authenticator) error, o Options) *File {
	f := NewFile(publish, o)
	f.grace = 0
	return f
}

// Patience sets how long a changed file has until the keys of its issuers are known.
func (f *File) Patience(d time.Duration) { f.ready = d }

// SetClock sets the clock of all issuers.
func (a *Authenticator) SetClock(now func() time.Time) {
	for _, i := range a.issuers {
		i.now = now
	}
}
