package jwt

import "time"

// NewImpatientFile returns a File that waits shortly.
func NewImpatientFile(publish func(*Authenticator) error, o Options, ready, grace time.Duration) *File {
	f := NewFile(publish, o)
	f.ready, f.grace = ready, grace
	return f
}
