package storage

import (
	"context"
	"errors"
	"slices"
)

const maxChunk = 10_000 // rows read at once when selectors drop some

// List implements Interface.
func (s *Store) List(ctx context.Context, opts ListOptions) (Page, error) {
	l := &listing{s: s, opts: opts, scope: opts.Selection.Scope(s.opts.Namespaced), limit: int(max(opts.Limit, 0))}
	if err := l.begin(ctx); err != nil {
		return Page{}, err
	}
	if err := l.collect(ctx); err != nil {
		return Page{}, err
	}
	if l.unreadable != nil {
		return Page{}, l.unreadable
	}
	page := l.page()
	if s.opts.Hooks.Listed != nil {
		s.opts.Hooks.Listed(Listed{Fetched: l.fetched, Evaluated: l.evaluated, Returned: page.Count})
	}
	return page, nil
}

// listing is one List under way.
type listing struct {
	s     *Store
	opts  ListOptions
	scope Scope
	limit int    // 0: none
	from  string // the next key to look at, relative to the resource
	at    int64  // the revision read at; 0 until the first answer, when it is the latest
	token string // for an ExpiredError: goes on from the same key at the latest state

	records    []Record
	more       int64 // keys that follow the last one looked at
	fetched    int   // rows read
	evaluated  int   // records that a selector was asked about
	unreadable *UnreadableError
}

// begin finds where the list starts, and waits for a revision that it needs.
func (l *listing) begin(ctx context.Context) error {
	at := l.opts.At
	l.from = l.scope.From
	if l.opts.Continue != "" {
		c, err := l.opts.Place(l.scope)
		if err != nil {
			return err
		}
		l.from, l.at = c.From, max(c.Revision, 0)
		l.token = l.scope.Token(Continue{Revision: AtLatest, From: c.From})
		return nil
	}
	switch at.Match {
	case Any:
		l.limit = 0
	case NotOlderThan:
		return l.s.reach(ctx, at.Revision)
	case Exact:
		if err := checkExact(at); err != nil {
			return err
		}
		l.at = at.Revision
	}
	return nil
}

// collect reads rows, all at one revision, until the page is full or the interval is at its end.
func (l *listing) collect(ctx context.Context) error {
	chunk := l.limit
	for {
		res, err := l.read(ctx, chunk)
		if err != nil {
			return err
		}
		l.at = res.Revision
		l.fetched += len(res.KVs)
		seen := l.take(res.KVs)
		l.more = res.Count - int64(seen)
		if l.more <= 0 || l.full() || l.unreadable != nil {
			return nil
		}
		chunk = min(2*max(chunk, 1), maxChunk)
	}
}

// read reads the next rows; a chunk of 0 is all of them. Of a single key a Get is cheaper than a Range.
func (l *listing) read(ctx context.Context, chunk int) (RangeResult, error) {
	if key, ok := l.scope.Single(); ok && l.from == key {
		res, err := l.s.get(ctx, key, l.at)
		one := RangeResult{Revision: res.Revision}
		if res.Found {
			one.KVs, one.Count = []KV{res.KV}, 1
		}
		return one, l.expired(err)
	}
	r := Range{At: l.at, Limit: chunk}
	r.From, r.To = l.s.interval(Scope{From: l.from, To: l.scope.To})
	before := l.s.known.reached.Load()
	res, err := l.s.backend.Range(ctx, r)
	if err == nil && r.At == 0 {
		l.s.known.saw(before, res.Revision)
	}
	if errors.Is(err, ErrFuture) {
		if err := l.s.reach(ctx, l.at); err != nil {
			return RangeResult{}, err
		}
		res, err = l.s.backend.Range(ctx, r)
	}
	return res, l.expired(err)
}

func (l *listing) expired(err error) error { return expired(err, l.at, l.token) }

// take adds the rows that match until the page is full, and returns how many it has looked at.
func (l *listing) take(kvs []KV) (seen int) {
	if !l.selective() && len(l.records) == 0 {
		l.records = make([]Record, 0, len(kvs))
	}
	for _, kv := range kvs {
		if l.full() {
			return seen
		}
		seen++
		key := kv.Key[len(l.s.root):]
		l.from = key + "\x00"
		if !l.scope.Has(key) {
			continue
		}
		r, err := l.s.record(kv)
		if err != nil {
			if l.fail(err); l.unreadable.Truncated {
				return seen
			}
			continue
		}
		if l.opts.Selective() {
			l.evaluated++
		}
		if l.opts.Matches(r) {
			l.records = append(l.records, r)
		}
	}
	return seen
}

// fail notes a row that cannot be read; a list names several at once.
func (l *listing) fail(err error) {
	var u *UnreadableError
	if !errors.As(err, &u) {
		l.unreadable = &UnreadableError{Err: err, Truncated: true}
		return
	}
	l.unreadable = l.unreadable.And(u)
}

func (l *listing) full() bool { return l.limit > 0 && len(l.records) >= l.limit }

// selective says that rows of the interval may be left out.
func (l *listing) selective() bool { return l.opts.Selective() || !l.scope.Whole() }

func (l *listing) page() Page {
	p := Page{Records: slices.Values(l.records), Count: len(l.records), Revision: l.at}
	if l.more > 0 {
		p.Continue = l.scope.Token(Continue{Revision: l.at, From: l.from})
		if !l.selective() {
			remaining := l.more
			p.Remaining = &remaining
		}
	}
	return p
}
