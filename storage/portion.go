package storage

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"weak"
)

// portion is the result of one read of a backend: records, or in their places the errors of unreadable ones. It does not
// change after done is closed.
type portion struct {
	done       chan struct{}
	kvs        []KV // only in a portion that is not shared; its records are made when they are needed. nil: records is set
	records    []Record
	unreadable map[int]*UnreadableError // by index; those records have a Key and a Revision only. nil: all are readable
	bytes      int64                    // about the memory it takes
	count      int64                    // the Count of the RangeResult
	revision   int64                    // the Revision of the RangeResult
	err        error
}

// heldPortions has the portions of exact revisions that are being read, or that a reader still uses. A caller that asks for
// the same range shares the portion. The zero value is empty.
type heldPortions struct {
	mu  sync.Mutex // guards all
	all map[Range]weak.Pointer[portion]
}

// of returns the portion of a range. If mine is true, the caller must read it.
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

// forget removes the portion of a range, which is not in use any more, unless a new one has taken its place.
func (h *heldPortions) forget(r Range) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[r].Value() == nil {
		delete(h.all, r)
	}
}

// drop removes a portion that could not be read.
func (h *heldPortions) drop(r Range, p *portion) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all[r].Value() == p {
		delete(h.all, r)
	}
}

// portion reads a range. If the range has an exact revision, it shares the result of other readers.
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
		if err := ctx.Err(); err != nil { // otherwise the context of the other reader has ended
			return nil, err
		}
	}
}

// fill reads a portion that other readers wait for.
func (s *Store) fill(ctx context.Context, r Range, p *portion) {
	p.err = context.Canceled // the error for the waiting readers if a codec panics: they then read themselves
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

// bytesOf returns about how much memory the record of a value takes.
func bytesOf(key string, value int) int64 {
	const beside = 256 // cost of a record besides key and value
	return int64(beside + len(key) + value)
}

func (p *portion) len() int { return max(len(p.kvs), len(p.records)) }

// key returns the key of a row, relative to the resource.
func (p *portion) key(s *Store, i int) string {
	if p.kvs != nil {
		return p.kvs[i].Key[len(s.root):]
	}
	return p.records[i].Key
}

// entry returns the entry of a row, and makes it if necessary.
func (p *portion) entry(s *Store, i int) Entry {
	if p.kvs != nil {
		return s.entry(p.kvs[i])
	}
	return Entry{Record: p.records[i], Unreadable: p.unreadable[i]}
}

// rangeAt reads a range. If its revision is in the future, rangeAt waits for it.
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

// pinned returns the revision of the latest state if the backend has it without a request, and 0 otherwise. A read at a given
// revision can be shared.
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
