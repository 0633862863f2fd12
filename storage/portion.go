package storage

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"weak"
)

// portion is what one read of a backend has brought: records, or in their places what cannot be read. It does not change once
// done is closed.
type portion struct {
	done       chan struct{}
	kvs        []KV // of a portion that is not shared: the records are made when they are looked at. nil: they are
	records    []Record
	unreadable map[int]*UnreadableError // of the records that have a Key and a Revision only; nil: of none
	bytes      int64                    // about what it takes in memory
	count      int64                    // as that of a RangeResult
	revision   int64                    // likewise
	err        error
}

// heldPortions are the portions of exact revisions that are being read, or that a reader still has: whoever asks for the same
// shares them. The zero value is empty.
type heldPortions struct {
	mu  sync.Mutex // guards all
	all map[Range]weak.Pointer[portion]
}

// of returns the portion of a range. It is the caller's to read if mine.
func (h *heldPortions) of(r Range) (p *portion, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.all[r].Value(); p != nil {
		return p, false
	}
	if h.all == nil {
		h.all = map[Range]weak.Pointer[portion]{}
	}
	p = &portion{done: make(chan struct{})}
	h.all[r] = weak.Make(p)
	runtime.AddCleanup(p, h.forget, r)
	return p, true
}

// forget forgets the portion of a range, which nobody has any more, unless there is another by now.
func (h *heldPortions) forget(r Range) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[r].Value() == nil {
		delete(h.all, r)
	}
}

// drop forgets a portion that could not be read.
func (h *heldPortions) drop(r Range, p *portion) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[r].Value() == p {
		delete(h.all, r)
	}
}

// portion reads a range, or shares what others read of it, if it is of an exact revision.
func (s *Store) portion(ctx context.Context, r Range) (*portion, error) {
	if r.At == 0 {
		p := new(portion)
		p.read(ctx, s, r)
		return p, p.err
	}
	for {
		p, mine := s.held.of(r)
		if mine {
			s.fill(ctx, r, p)
			return p, p.err
		}
		select {
		case <-p.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !errors.Is(p.err, context.Canceled) && !errors.Is(p.err, context.DeadlineExceeded) {
			return p, p.err
		}
		if err := ctx.Err(); err != nil { // else it was the other's context that has ended
			return nil, err
		}
	}
}

// fill reads a portion that others wait for.
func (s *Store) fill(ctx context.Context, r Range, p *portion) {
	p.err = context.Canceled // what others are told if a codec panics: they try themselves
	defer func() {
		if p.err != nil {
			s.held.drop(r, p)
		}
		close(p.done)
	}()
	p.read(ctx, s, r)
}

func (p *portion) read(ctx context.Context, s *Store, r Range) {
	res, err := s.rangeAt(ctx, r)
	if err != nil {
		p.err = err
		return
	}
	p.revision, p.count, p.records = res.Revision, res.Count, make([]Record, len(res.KVs))
	for i, kv := range res.KVs {
		e := s.entry(kv)
		p.records[i] = e.Record
		p.bytes += bytesOf(kv.Key, len(kv.Value))
		if e.Unreadable != nil {
			if p.unreadable == nil {
				p.unreadable = map[int]*UnreadableError{}
			}
			p.unreadable[i] = e.Unreadable
		}
	}
	p.err = nil
}

// bytesOf is about what the record of a value takes in memory.
func bytesOf(key string, value int) int64 {
	const beside = 256 // key and value
	return int64(beside + len(key) + value)
}

func (p *portion) len() int { return max(len(p.kvs), len(p.records)) }

// key is that of a row, relative to the resource.
func (p *portion) key(s *Store, i int) string {
	if p.kvs != nil {
		return p.kvs[i].Key[len(s.root):]
	}
	return p.records[i].Key
}

// entry makes or returns a row.
func (p *portion) entry(s *Store, i int) Entry {
	if p.kvs != nil {
		return s.entry(p.kvs[i])
	}
	return Entry{Record: p.records[i], Unreadable: p.unreadable[i]}
}

// rangeAt reads a range, and waits for a revision that has not happened yet.
func (s *Store) rangeAt(ctx context.Context, r Range) (RangeResult, error) {
	before := s.known.reached.Load()
	res, err := s.backend.Range(ctx, r)
	if err == nil && r.At == 0 {
		s.known.saw(before, res.Revision)
	}
	if errors.Is(err, ErrFuture) {
		if err := s.reach(ctx, r.At); err != nil {
			return RangeResult{}, err
		}
		res, err = s.backend.Range(ctx, r)
	}
	return res, err
}

// pinned returns the revision at which the latest state can be read so that it can be shared: 0 if that takes asking.
func (s *Store) pinned() int64 {
	if s.knower == nil {
		return 0
	}
	before := s.known.reached.Load()
	revision, ok := s.knower.Known()
	if !ok {
		return 0
	}
	s.known.saw(before, revision)
	return revision
}
