package storage

import (
	"context"
	"errors"
	"slices"
	"sync"
)

const maxChunk = 10_000 // rows read at once when selectors drop some

// List implements Interface.
func (s *Store) List(ctx context.Context, opts ListOptions) (Page, error) {
	l := &listing{s: s, opts: opts, scope: opts.Selection.Scope(s.opts.Namespaced), limit: int(max(opts.Limit, 0))}
	if err := l.begin(ctx); err != nil {
		return Page{}, err
	}
	return l.next(ctx)
}

// listing is one List under way, or one portion of it.
type listing struct {
	s     *Store
	opts  ListOptions
	scope Scope
	limit int    // of what is left; 0: none
	from  string // the next key to look at, relative to the resource
	at    int64  // the revision read at; 0 until the first answer, when it is the latest
	token string // for an ExpiredError: goes on from the same key at the latest state

	records    []Record
	chosen     int   // records that match
	more       int64 // keys that follow the last one looked at
	cut        bool  // the page ends here because the portion does
	unreadable *UnreadableError
	listed     Listed
	tell       *sync.Once // of Hooks.Listed; nil: not cut yet

	// Of portions:
	held  *portion // whose records these are; nil: they are copied
	bytes int64    // about what the records take in memory
	rest  bool     // this is not the first portion
}

// next makes the page, or the next portion of it.
func (l *listing) next(ctx context.Context) (Page, error) {
	if err := l.collect(ctx); err != nil {
		return Page{}, err
	}
	if l.unreadable != nil {
		return Page{}, l.unreadable
	}
	page, err := l.page(ctx)
	if err == nil {
		err = l.hold(page.Bytes)
	}
	if err != nil {
		return Page{}, err
	}
	l.listed.Returned += page.Count
	if l.cut {
		page.Next = l.later()
	} else {
		l.tells()
	}
	return page, nil
}

// tells tells what a list took: once, however often its portions are read.
func (l *listing) tells() {
	switch {
	case l.s.opts.Hooks.Listed == nil:
	case l.tell == nil:
		l.s.opts.Hooks.Listed(l.listed)
	default:
		l.tell.Do(func() { l.s.opts.Hooks.Listed(l.listed) })
	}
}

// later returns what reads the portion after l.
func (l *listing) later() func(ctx context.Context) (Page, error) {
	rest := listing{s: l.s, opts: l.opts, scope: l.scope, from: l.from, at: l.at, token: l.token, listed: l.listed, tell: l.tell, rest: true}
	if l.limit > 0 {
		rest.limit = l.limit - l.chosen
	}
	if rest.tell == nil {
		rest.tell = new(sync.Once)
	}
	return func(ctx context.Context) (Page, error) {
		own := rest
		return own.next(ctx)
	}
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

// collect reads rows, all at one revision, until the page is full, the portion is, or the interval is at its end.
func (l *listing) collect(ctx context.Context) error {
	chunk := l.limit
	left := chunk // rows of the chunk, which may come in several portions
	for {
		rows, err := l.read(ctx, left)
		if err != nil {
			return err
		}
		l.at = rows.revision
		l.listed.Fetched += rows.len()
		seen := l.take(rows)
		l.more = rows.count - int64(seen)
		short := l.opts.Portion > 0 && (left == 0 || seen < left)
		switch {
		case l.more <= 0 || l.full() || l.unreadable != nil && (l.unreadable.Truncated || !short):
			return nil
		case l.unreadable == nil && l.opts.Portion > 0 && l.bytes >= l.opts.Portion:
			l.cut = true
			return nil
		case short:
			left = max(left-seen, 0)
			continue
		}
		chunk = min(2*max(chunk, 1), maxChunk)
		left = chunk
	}
}

// read reads the next rows; a chunk of 0 is all of them, or as many as a portion has. Of a single key a Get is cheaper than a
// Range.
func (l *listing) read(ctx context.Context, chunk int) (*portion, error) {
	if err := l.hold(l.bytes + l.opts.Portion); err != nil {
		return nil, err
	}
	p, err := l.readRows(ctx, chunk)
	if err != nil {
		return nil, expired(err, l.at, l.token)
	}
	if p.bytes > l.opts.Portion {
		err = l.hold(l.bytes + p.bytes)
	}
	return p, err
}

// hold tells the account of the list how much it holds.
func (l *listing) hold(bytes int64) error {
	if l.opts.Account == nil || l.opts.Portion <= 0 {
		return nil
	}
	return l.opts.Account.Hold(bytes)
}

func (l *listing) readRows(ctx context.Context, chunk int) (*portion, error) {
	if key, ok := l.scope.Single(); ok && l.from == key {
		res, err := l.s.get(ctx, key, l.at)
		if err != nil {
			return nil, err
		}
		one := &portion{revision: res.Revision}
		if res.Found {
			one.kvs, one.count, one.bytes = []KV{res.KV}, 1, bytesOf(res.KV.Key, len(res.KV.Value))
		}
		return one, nil
	}
	r := Range{At: l.at, Limit: chunk}
	r.From, r.To = l.s.interval(Scope{From: l.from, To: l.scope.To})
	if l.opts.Portion <= 0 {
		res, err := l.s.rangeAt(ctx, r)
		return &portion{kvs: res.KVs, count: res.Count, revision: res.Revision}, err
	}
	r.Bytes, r.Uncounted = l.opts.Portion, l.limit == 0 || l.rest || l.selective()
	if chunk == 0 {
		r.Limit = maxChunk
	}
	if r.At > 0 {
		return l.s.portion(ctx, r)
	}
	if r.At = l.s.pinned(); r.At > 0 {
		if p, err := l.s.portion(ctx, r); !errors.Is(err, ErrCompacted) {
			return p, err
		}
		r.At = 0 // history has overtaken the latest state
	}
	return l.s.portion(ctx, r)
}

// take adds the rows that match until the page is full, and returns how many it has looked at.
func (l *listing) take(rows *portion) (seen int) {
	n := rows.len()
	if l.records == nil && !l.selective() && n > 0 {
		if rows.kvs == nil && rows.unreadable == nil && (l.limit == 0 || n <= l.limit) {
			l.held, l.records, l.chosen, l.bytes = rows, rows.records, n, rows.bytes
			l.from = rows.key(l.s, n-1) + "\x00"
			return n
		}
		l.records = make([]Record, 0, n)
	}
	if l.held != nil {
		l.held, l.records = nil, slices.Clip(l.records)
	}
	for i := range n {
		if l.full() {
			return seen
		}
		seen++
		key := rows.key(l.s, i)
		l.from = key + "\x00"
		if !l.scope.Has(key) {
			continue
		}
		e := rows.entry(l.s, i)
		if e.Unreadable != nil {
			if l.unreadable = l.unreadable.And(e.Unreadable); l.unreadable.Truncated {
				return seen
			}
			continue
		}
		if l.opts.Selective() {
			l.listed.Evaluated++
		}
		if !l.opts.Matches(e.Record) {
			continue
		}
		if l.chosen++; l.unreadable == nil { // else there is no page
			l.records = append(l.records, e.Record)
			l.bytes += bytesOf(key, e.Record.Body.Size())
		}
	}
	return seen
}

func (l *listing) full() bool { return l.limit > 0 && l.chosen >= l.limit }

// selective says that rows of the interval may be left out.
func (l *listing) selective() bool { return l.opts.Selective() || !l.scope.Whole() }

func (l *listing) page(ctx context.Context) (Page, error) {
	p := Page{Records: slices.Values(l.records), Count: len(l.records), Revision: l.at, Bytes: l.bytes}
	if held := l.held; held != nil { // which is shared as long as the page is shown
		p.Records = func(yield func(Record) bool) { slices.Values(held.records)(yield) }
	}
	if l.more <= 0 || l.cut {
		return p, nil
	}
	p.Continue = l.scope.Token(Continue{Revision: l.at, From: l.from})
	if l.selective() {
		return p, nil
	}
	remaining := l.more
	if l.rest { // it was not counted
		from, to := l.s.interval(Scope{From: l.from, To: l.scope.To})
		res, err := l.s.rangeAt(ctx, Range{From: from, To: to, At: l.at, CountOnly: true})
		if err != nil {
			return Page{}, expired(err, l.at, l.token)
		}
		remaining = res.Count
	}
	p.Remaining = &remaining
	return p, nil
}
