package storage

import (
	"context"
	"errors"
	"slices"
	"sync"
)

const maxChunk = 10_000 // maximum number of rows read at once when selectors drop some

// List implements Interface.
func (s *Store) List(ctx context.Context, opts ListOptions) (Page, error) {
	if err := opts.Plain(); err != nil {
		return Page{}, err
	}
	l := &listing{s: s, opts: opts, scope: opts.Selection.Scope(s.opts.Namespaced), limit: int(max(opts.Limit, 0))}
	if err := l.begin(ctx); err != nil {
		return Page{}, err
	}
	return l.next(ctx)
}

// listing is one List, or one portion of it, in progress.
type listing struct {
	s     *Store
	opts  ListOptions
	scope Scope
	limit int    // number of records still wanted; 0: no limit
	from  string // the next key to look at, relative to the resource
	at    int64  // the revision to read at; 0 until the first result when it is the latest
	token string // for an ExpiredError: continues at the same key at the latest state

	records    []Record
	chosen     int   // number of matching records
	more       int64 // number of keys after the last row examined
	cut        bool  // the page ends here because the portion does
	unreadable *UnreadableError
	listed     Listed
	tell       *sync.Once // for Hooks.Listed; nil: the list has not been cut yet

	// Of portions:
	held  *portion // the portion whose records these are; nil: the records are copied
	bytes int64    // about the memory that the records take
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

// tells calls Hooks.Listed. It does so once, however often the portions of the list are read.
func (l *listing) tells() {
	switch {
	case l.s.opts.Hooks.Listed == nil:
	case l.tell == nil:
		l.s.opts.Hooks.Listed(l.listed)
	default:
		l.tell.Do(func() { l.s.opts.Hooks.Listed(l.listed) })
	}
}

// later returns the function that reads the portion after l.
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

// begin finds where the list starts, and waits for the required revision.
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

// collect reads rows, all at one revision, until the page or the portion is full or the interval ends.
func (l *listing) collect(ctx context.Context) error {
	chunk := l.limit
	left := chunk // rows left in the chunk, which may come in several portions
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

// read reads the next rows. A chunk of 0 is all rows, or as many as a portion has. For a single key a Get is cheaper than a
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

// hold reports to the list's account how many bytes the list holds.
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
		r.At = 0 // the revision was compacted meanwhile
	}
	return l.s.portion(ctx, r)
}

// take adds the rows that match until the page is full, and returns how many rows it has examined.
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
		if l.chosen++; l.unreadable == nil { // after an unreadable record no page is returned
			l.records = append(l.records, e.Record)
			l.bytes += bytesOf(key, e.Record.Body.Size())
		}
	}
	return seen
}

func (l *listing) full() bool { return l.limit > 0 && l.chosen >= l.limit }

// selective reports whether rows of the interval may be left out.
func (l *listing) selective() bool { return l.opts.Selective() || !l.scope.Whole() }

func (l *listing) page(ctx context.Context) (Page, error) {
	p := Page{Records: slices.Values(l.records), Count: len(l.records), Revision: l.at, Bytes: l.bytes}
	if held := l.held; held != nil { // held is shared as long as the page is in use
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
	if l.rest { // the backend did not count
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
