package flowcontrol

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
)

// Default bounds of an InFlight.
const (
	DefaultReads  = 400 // reading requests
	DefaultWrites = 200 // writing requests
)

// InFlight bounds the requests that are served at the same time. It counts reading and writing requests separately, so that
// neither kind can block the other. Requests never wait. Requests of members of system:masters are never rejected; they are
// counted only up to the bound.
type InFlight struct {
	made                        time.Time
	reads, writes               gauge
	releaseReads, releaseWrites func()
}

// NewInFlight returns an InFlight with the given bounds. 0 means the default, 400 reads and 200 writes; a negative number means
// no bound.
func NewInFlight(reads, writes int) *InFlight {
	if reads == 0 {
		reads = DefaultReads
	}
	if writes == 0 {
		writes = DefaultWrites
	}
	l := &InFlight{made: time.Now()}
	l.reads.limit, l.writes.limit = int64(reads), int64(writes)
	l.releaseReads, l.releaseWrites = l.reads.leave, l.writes.leave
	return l
}

// Admit implements Controller. It never waits.
func (l *InFlight) Admit(_ context.Context, a authz.Attributes) (func(), error) {
	g, release, reason := &l.writes, l.releaseWrites, "mutating requests in flight"
	if a.IsReadOnly() {
		g, release, reason = &l.reads, l.releaseReads, "read-only requests in flight"
	}
	if g.enter(l.second()) {
		return release, nil
	}
	if a.User != nil && a.User.InGroup(authn.MastersGroup) {
		return func() {}, nil
	}
	return nil, &RejectedError{RetryAfter: time.Second, Reason: reason}
}

// Served returns the number of requests that are being served now, without exempt requests beyond a bound.
func (l *InFlight) Served() (reads, writes int) {
	return int(l.reads.now.Load()), int(l.writes.now.Load())
}

// Peaks returns the maximum number of reading and of writing requests that were served at the same time in about the last second,
// without exempt requests beyond a bound.
func (l *InFlight) Peaks() (reads, writes int) {
	second := l.second()
	return l.reads.peak.within(second, l.reads.now.Load()), l.writes.peak.within(second, l.writes.now.Load())
}

// second returns the number of seconds since l was made.
func (l *InFlight) second() int64 { return int64(time.Since(l.made) / time.Second) }

// gauge counts requests up to a limit.
type gauge struct {
	limit int64 // negative: no limit
	now   atomic.Int64
	peak  peak
}

func (g *gauge) enter(second int64) bool {
	for {
		n := g.now.Load()
		if g.limit >= 0 && n >= g.limit {
			return false
		}
		if g.now.CompareAndSwap(n, n+1) {
			g.peak.note(second, n+1)
			return true
		}
	}
}

func (g *gauge) leave() { g.now.Add(-1) }
