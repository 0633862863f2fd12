package storage

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
)

// Oldest implements Source. If the backend is no [Historian], Oldest reads at the first possible revision. The error has the
// oldest revision; if it does not, Oldest returns the latest revision, the only one that is sure to be retained.
func (s *Store) Oldest(ctx context.Context) (int64, error) {
	if s.history != nil {
		return s.history.Oldest(ctx)
	}
	const first = 1
	_, err := s.backend.Get(ctx, s.opts.Prefix, first)
	var expired *ExpiredError
	switch {
	case err == nil:
		return first, nil
	case errors.As(err, &expired) && expired.Oldest > 0:
		return expired.Oldest, nil
	case errors.Is(err, ErrCompacted):
		return s.Revision(ctx)
	}
	return 0, err
}

// Replay implements Replayer. If the backend is no Replayer, the result is math.MaxInt64: a watch may begin anywhere.
func (s *Store) Replay() int64 {
	if s.replay != nil {
		return s.replay.Replay()
	}
	return math.MaxInt64
}

// Known implements Source.
func (s *Store) Known() (revision int64, ok bool) {
	if s.knower == nil {
		return 0, false
	}
	return s.knower.Known()
}

// Stat implements Source.
func (s *Store) Stat(ctx context.Context, key string) (Stat, error) {
	if s.checkKey(key) != nil {
		now, err := s.Revision(ctx)
		return Stat{At: now}, err
	}
	if s.stater != nil {
		return s.stater.Stat(ctx, s.root+key)
	}
	res, err := s.backend.Get(ctx, s.root+key, 0)
	return Stat{Revision: res.KV.Revision, At: res.Revision}, err
}

// State implements Source.
func (s *Store) State(ctx context.Context, at int64) (State, error) {
	if at < 0 {
		return State{}, checkExact(Read{Revision: at})
	}
	p := &portions{s: s, at: at, limit: firstPage}
	p.from, p.to = s.interval(Scope{})
	if err := p.read(ctx); err != nil {
		return State{}, err
	}
	return State{Revision: p.at, Entries: func(yield func(Entry, error) bool) { p.walk(ctx, yield) }}, nil
}

// State reads portions of about portionBytes, and of at most maxPortion values. An etcd counts all remaining keys for each
// portion, so few large portions cost it less. The caller of State keeps the state anyway, so large portions need no extra
// memory.
const (
	portionBytes  = 16 << 20
	maxPortion    = 10_000
	portionGrowth = 8 // a portion has at most this many times the values of the previous one
)

// portions is a State in progress.
type portions struct {
	s        *Store
	from, to string // the keys that are left
	at       int64  // 0 before the first portion
	limit    int    // limit of the next portion
	kvs      []KV   // the current portion
	more     bool   // other values follow it
	walked   bool
}

// read reads the next portion, always at the revision of the first.
func (p *portions) read(ctx context.Context) error {
	r := Range{From: p.from, To: p.to, At: p.at, Limit: p.limit, Bytes: portionBytes, Uncounted: true}
	res, err := p.s.rangeAt(ctx, r)
	if err != nil {
		return expired(err, p.at, "")
	}
	n := len(res.KVs)
	p.at, p.kvs, p.more = res.Revision, res.KVs, n > 0 && int64(n) < res.Count
	if !p.more {
		return nil
	}
	p.from = res.KVs[n-1].Key + "\x00"
	size := 0
	for _, kv := range res.KVs {
		size += len(kv.Key) + len(kv.Value)
	}
	p.limit = min(max(n*portionBytes/max(size, 1), 1), portionGrowth*p.limit, maxPortion)
	return nil
}

// walk yields the portion that was read, and the following ones. It reads each portion while the previous one is processed.
func (p *portions) walk(ctx context.Context, yield func(Entry, error) bool) {
	if p.walked {
		yield(Entry{}, errors.New("storage: the entries of a state can be walked once"))
		return
	}
	p.walked = true
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	for {
		kvs, more := p.kvs, p.more
		p.kvs = nil
		var err error
		if more {
			reading.Go(func() { err = p.read(ctx) })
		}
		for _, e := range p.s.entriesOf(kvs) {
			if !yield(e, nil) {
				return
			}
		}
		if reading.Wait(); err != nil {
			yield(Entry{}, err)
		}
		if !more || err != nil {
			return
		}
	}
}

// entriesOf makes entries of values, on all processors.
func (s *Store) entriesOf(kvs []KV) []Entry {
	out := make([]Entry, len(kvs))
	divided(len(kvs), func(i int) { out[i] = s.entry(kvs[i]) })
	return out
}

// minShare is the minimum number of values for one goroutine. Each value may have to be decoded and encoded.
const minShare = 32

// divided calls do for the numbers below n, on all processors, and returns when all calls have returned.
func divided(n int, do func(i int)) {
	share := max((n+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0), minShare)
	var others sync.WaitGroup
	for from := share; from < n; from += share {
		others.Go(func() {
			for i := from; i < min(from+share, n); i++ {
				do(i)
			}
		})
	}
	for i := range min(share, n) {
		do(i)
	}
	others.Wait()
}

// Follow implements Source.
func (s *Store) Follow(ctx context.Context, from int64) (Following, error) {
	feed, err := s.backend.Watch(ctx, WatchRange{Prefix: s.root, From: from})
	if err != nil {
		return nil, expired(err, from, "")
	}
	f := &following{s: s, feed: feed, reached: from}
	if w, ok := feed.(Waker); ok {
		return &wakingFollowing{following: f, Waker: w}, nil
	}
	return f, nil
}

// wakingFollowing is a following whose feed is a Waker. Its Next waits for nothing but the feed.
type wakingFollowing struct {
	*following
	Waker
}

// following is the Following of a Store.
type following struct {
	s       *Store
	feed    Feed
	reached int64 // the revision up to which all changes were delivered; used by Next only
}

// Next implements Following.
func (f *following) Next(ctx context.Context) (Moves, error) {
	got, err := f.feed.Next(ctx)
	if err != nil {
		return Moves{}, expired(err, f.reached, "")
	}
	f.reached = max(f.reached, got.Progress)
	f.s.known.raise(got.Progress)
	return Moves{Moves: f.s.movesOf(got.Changes), Progress: got.Progress}, nil
}

// movesOf makes the moves for changes. It makes many moves on all processors.
func (s *Store) movesOf(changes []Change) []Move {
	if len(changes) == 0 {
		return nil
	}
	out := make([]Move, len(changes))
	if len(changes) > minShare {
		divided(len(changes), func(i int) { out[i] = s.move(changes[i]) })
		return out
	}
	for i := range changes {
		out[i] = s.move(changes[i])
	}
	return out
}

// move makes the move for a change.
func (s *Store) move(c Change) Move {
	if c.Deleted {
		return Move{Entry: Entry{Record: Record{Key: c.Key[len(s.root):], Revision: c.Revision}}, Deleted: true}
	}
	return Move{Entry: s.entry(KV{Key: c.Key, Value: c.Value, Revision: c.Revision, Stale: c.Stale})}
}

// RequestProgress implements Following.
func (f *following) RequestProgress() { f.feed.RequestProgress() }

// Close implements Following.
func (f *following) Close() { f.feed.Close() }
