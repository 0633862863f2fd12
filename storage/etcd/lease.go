package etcd

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/storage"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// lease is one lease of etcd, which many keys with the same TTL share.
type lease struct {
	id      int64
	ttl     time.Duration // TTL of the keys
	expires time.Time     // the lease does not expire before
	wall    time.Time     // the same by the wall clock, which continues while the machine sleeps but can be set back
	keys    int           // number of keys with this lease
}

// maxTTL is about the maximum TTL of etcd, 285 years.
const maxTTL = 9e9 * time.Second

// granted returns the TTL of a lease for keys with the given TTL. While the lease lasts longer than that, it can be given to
// further keys.
func granted(ttl, reuse time.Duration) time.Duration {
	ttl = min(max(ttl, time.Second), maxTTL)
	window := min(reuse, ttl/20, maxTTL-ttl).Truncate(time.Second)
	return (ttl + time.Second - 1).Truncate(time.Second) + window
}

// fits reports whether one more key may be given the lease now.
func (l *lease) fits(now time.Time, limit int) bool {
	return l.keys < limit && l.expires.Sub(now) >= l.ttl && l.wall.Sub(now.Round(0)) >= l.ttl
}

// leases has the leases that may be given to further keys, by TTL.
type leases struct {
	turn  chan struct{} // holds one token, which a goroutine takes to use the other fields
	byTTL map[time.Duration]*lease
	reuse time.Duration
	limit int // maximum number of keys of a lease
}

// maxLeases is the maximum number of different TTLs that are remembered.
const maxLeases = 64

func newLeases(o Options) leases {
	return leases{turn: make(chan struct{}, 1), byTTL: map[time.Duration]*lease{}, reuse: o.LeaseReuse, limit: o.LeaseMaxObjects}
}

// lease returns a lease for one more key: an existing one that fits, or a new one.
func (b *Backend) lease(ctx context.Context, ttl time.Duration) (*lease, error) {
	s := &b.leases
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	now := time.Now()
	if l := s.byTTL[ttl]; l != nil && l.fits(now, s.limit) {
		l.keys++
		return l, nil
	}
	length := granted(ttl, s.reuse)
	id, err := b.grant(ctx, length)
	if err != nil {
		return nil, err
	}
	l := &lease{id: id, ttl: ttl, expires: now.Add(length), wall: now.Add(length).Round(0), keys: 1}
	if len(s.byTTL) >= maxLeases {
		clear(s.byTTL)
	}
	s.byTTL[ttl] = l
	return l, nil
}

// forget stops the use of a lease that does not exist any more.
func (s *leases) forget(ctx context.Context, l *lease) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return // the next commit with this lease will find out
	}
	if s.byTTL[l.ttl] == l {
		delete(s.byTTL, l.ttl)
	}
}

// grant makes a lease. If it fails and etcd has made the lease, the lease expires by itself.
func (b *Backend) grant(ctx context.Context, length time.Duration) (id int64, err error) {
	err = b.call(ctx, "lease", b.opts.RequestTimeout, b.small, true, func(ctx context.Context) error {
		res, err := b.small.lease.LeaseGrant(ctx, &pb.LeaseGrantRequest{TTL: int64(length / time.Second)}, b.callOptions...)
		if err == nil {
			id = res.ID
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if id == 0 {
		return 0, storage.ErrUnavailable
	}
	return id, nil
}
