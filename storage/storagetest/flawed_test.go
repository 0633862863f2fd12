package storagetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// flaw is a promise that a backend breaks.
type flaw struct {
	name string
	red  string // the subtest that must fail, as a pattern for -test.run
	slow bool   // the test waits long for something that does not come
	// Each of these funcs, unless nil, is called instead of the sound backend's method.
	get    func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error)
	list   func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error)
	commit func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error)
	watch  func(b *flawed, ctx context.Context, w storage.WatchRange) (storage.Feed, error)
	stat   func(b *flawed, ctx context.Context, key string) (storage.Stat, error)
	oldest func(b *flawed, ctx context.Context) (int64, error)
	next   func(f *flawedFeed, got storage.Changes) storage.Changes // changes what a feed delivers
	end    func(f *flawedFeed, err error) error                     // changes the error with which a feed ends
	wake   func(f *flawedFeed, again func()) bool                   // called instead of the sound Wake
}

// flawed is a sound backend with one flaw.
type flawed struct {
	*memory.Backend
	flaw flaw

	mu   sync.Mutex // guards all below
	n    int        // number of commits
	seen storage.RangeResult
	lost storage.Commit

	oldest int64 // the result of the last call
}

// nth reports whether this is one of the commits that the flaw affects.
func (b *flawed) nth(every int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
	return b.n%every == 0
}

func (b *flawed) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	if b.flaw.get != nil {
		return b.flaw.get(b, ctx, key, at)
	}
	return b.Backend.Get(ctx, key, at)
}

func (b *flawed) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	if b.flaw.list != nil {
		return b.flaw.list(b, ctx, r)
	}
	return b.Backend.Range(ctx, r)
}

func (b *flawed) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	if b.flaw.commit != nil {
		return b.flaw.commit(b, ctx, c)
	}
	return b.Backend.Commit(ctx, c)
}

func (b *flawed) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	watch := b.Backend.Watch
	if b.flaw.watch != nil {
		watch = func(ctx context.Context, w storage.WatchRange) (storage.Feed, error) { return b.flaw.watch(b, ctx, w) }
	}
	f, err := watch(ctx, w)
	if err != nil {
		return nil, err
	}
	return &flawedFeed{Feed: f, b: b, w: w}, nil
}

func (b *flawed) Stat(ctx context.Context, key string) (storage.Stat, error) {
	if b.flaw.stat != nil {
		return b.flaw.stat(b, ctx, key)
	}
	return b.Backend.Stat(ctx, key)
}

func (b *flawed) Oldest(ctx context.Context) (int64, error) {
	if b.flaw.oldest != nil {
		return b.flaw.oldest(b, ctx)
	}
	return b.Backend.Oldest(ctx)
}

type flawedFeed struct {
	storage.Feed
	b    *flawed
	w    storage.WatchRange
	n    int // number of changes so far
	held []storage.Change
}

func (f *flawedFeed) Wake(again func()) bool {
	if f.b.flaw.wake != nil {
		return f.b.flaw.wake(f, again)
	}
	return f.inner(again)
}

// inner calls the sound Wake.
func (f *flawedFeed) inner(again func()) bool {
	w, ok := f.Feed.(storage.Waker)
	return ok && w.Wake(again)
}

func (f *flawedFeed) Next(ctx context.Context) (storage.Changes, error) {
	got, err := f.Feed.Next(ctx)
	if err != nil {
		if f.b.flaw.end != nil {
			err = f.b.flaw.end(f, err)
		}
		return got, err
	}
	if f.b.flaw.next != nil {
		got = f.b.flaw.next(f, got)
	}
	return got, nil
}

// every changes some of the changes that a feed delivers; a nil result removes one.
func every(n int, alter func(f *flawedFeed, c storage.Change) []storage.Change) func(*flawedFeed, storage.Changes) storage.Changes {
	return func(f *flawedFeed, got storage.Changes) storage.Changes {
		var out []storage.Change
		for _, c := range got.Changes {
			if f.n++; f.n%n != 0 {
				out = append(out, c)
				continue
			}
			out = append(out, alter(f, c)...)
		}
		got.Changes = out
		return got
	}
}

// flaws are the promises of a Backend, each broken in some way.
var flaws = []flaw{
	{name: "a watch loses a change", red: "Concurrent", next: every(40, func(*flawedFeed, storage.Change) []storage.Change { return nil })},
	{name: "a watch delivers a change twice", red: "Concurrent", next: every(40, func(_ *flawedFeed, c storage.Change) []storage.Change {
		return []storage.Change{c, c}
	})},
	{name: "a resumed watch repeats the last change", red: "Concurrent", watch: func(b *flawed, ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
		w.From = max(w.From-1, 1)
		return b.Backend.Watch(ctx, w)
	}},
	{name: "a watch begins too late", red: "Watch/from any revision", watch: func(b *flawed, ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
		w.From++
		return b.Backend.Watch(ctx, w)
	}},
	{name: "a watch changes the order", red: "Concurrent", next: func(_ *flawedFeed, got storage.Changes) storage.Changes {
		if n := len(got.Changes); n > 2 {
			got.Changes[0], got.Changes[1] = got.Changes[1], got.Changes[0]
		}
		return got
	}},
	{name: "a wrong previous value", red: "Concurrent", next: every(30, func(f *flawedFeed, c storage.Change) []storage.Change {
		if c.Prev != nil {
			prev := *c.Prev
			prev.Value = []byte("another")
			c.Prev = &prev
		}
		return []storage.Change{c}
	})},
	{name: "no previous value of a deletion", red: "Watch/previous values", next: every(1, func(_ *flawedFeed, c storage.Change) []storage.Change {
		if c.Deleted {
			c.Prev = nil
		}
		return []storage.Change{c}
	})},
	{name: "a watch shows a wrong revision", red: "Concurrent", next: every(50, func(_ *flawedFeed, c storage.Change) []storage.Change {
		c.Revision--
		return []storage.Change{c}
	})},
	{name: "a watch of a prefix shows its neighbours", red: "Watch/only its prefix", watch: func(b *flawed, ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
		if w.Prefix != "" {
			w.Prefix = w.Prefix[:len(w.Prefix)-1]
		}
		return b.Backend.Watch(ctx, w)
	}},
	{name: "progress is too high", red: "Watch/progress is never above", next: func(_ *flawedFeed, got storage.Changes) storage.Changes {
		got.Progress++
		return got
	}},
	{name: "progress is too high under load", red: "Concurrent", next: func(f *flawedFeed, got storage.Changes) storage.Changes {
		if len(got.Changes) > 0 { // a change that was committed since: it has not been delivered
			time.Sleep(time.Millisecond)
			res, _ := f.b.Backend.Get(context.Background(), "x", 0)
			got.Progress = max(got.Progress, res.Revision)
		}
		return got
	}},
	{name: "progress goes back", red: "Watch/progress when asked for", next: func(f *flawedFeed, got storage.Changes) storage.Changes {
		if len(got.Changes) == 0 {
			got.Progress -= 2
		}
		return got
	}},
	{name: "the changes of one revision are split", red: "Concurrent", next: func(f *flawedFeed, got storage.Changes) storage.Changes {
		got.Changes = append(f.held, got.Changes...)
		f.held = nil
		if n := len(got.Changes); n > 1 { // the last change comes later, below the progress that was shown
			f.held = append([]storage.Change(nil), got.Changes[n-1])
			got.Changes = got.Changes[:n-1]
			f.RequestProgress()
		}
		return got
	}},
	{name: "a reader is not called", red: "Wake/beside writers", slow: true, wake: func(f *flawedFeed, _ func()) bool {
		return f.inner(func() {})
	}},
	{name: "a reader is called twice", red: "Wake/beside writers", wake: func(f *flawedFeed, again func()) bool {
		return f.inner(func() {
			go again()
			again()
		})
	}},
	{name: "a reader is called for nothing", red: "Wake/by a change", wake: func(f *flawedFeed, again func()) bool {
		if !f.inner(func() {}) {
			return false
		}
		again()
		return true
	}},
	{name: "a reader sleeps beside what is there", red: "Wake/not by what is there", wake: func(f *flawedFeed, again func()) bool {
		f.inner(again)
		return true
	}},
	{name: "a reader whose context ends is not called", red: "Wake/by the end of the context", slow: true, watch: func(b *flawed, ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
		return b.Backend.Watch(context.WithoutCancel(ctx), w)
	}},
	{name: "a feed goes on after Close", red: "Watch/ends with Close", end: func(_ *flawedFeed, err error) error {
		if errors.Is(err, storage.ErrClosed) {
			return nil
		}
		return err
	}},
	{name: "a feed says nothing of compaction", red: "Compact/a slow reader", end: func(_ *flawedFeed, err error) error {
		if errors.Is(err, storage.ErrCompacted) {
			return nil
		}
		return err
	}},
	{name: "a watch below the window begins at it", red: "Compact/history below is gone", watch: func(b *flawed, ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
		var e *storage.ExpiredError
		f, err := b.Backend.Watch(ctx, w)
		if errors.As(err, &e) {
			w.From = e.Oldest
			return b.Backend.Watch(ctx, w)
		}
		return f, err
	}},
	{name: "a read below the window shows the oldest state", red: "Compact/history below is gone", get: func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error) {
		var e *storage.ExpiredError
		res, err := b.Backend.Get(ctx, key, at)
		if errors.As(err, &e) {
			return b.Backend.Get(ctx, key, e.Oldest)
		}
		return res, err
	}},
	{name: "a read of the future shows the present", red: "Read/the future", get: func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error) {
		res, err := b.Backend.Get(ctx, key, at)
		if errors.Is(err, storage.ErrFuture) {
			return b.Backend.Get(ctx, key, 0)
		}
		return res, err
	}},
	{name: "a miss without a revision", red: "Read/a missing key says when", get: func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error) {
		res, err := b.Backend.Get(ctx, key, at)
		if !res.Found {
			res.Revision = 0
		}
		return res, err
	}},
	{name: "stale reads", red: "Concurrent", get: func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error) {
		res, err := b.Backend.Get(ctx, key, at)
		if at == 0 && res.Revision%16 == 0 { // an earlier state, with its own revision
			if old, err := b.Backend.Get(ctx, key, res.Revision-3); err == nil {
				return old, nil
			}
		}
		return res, err
	}},
	{name: "a stale value under the latest revision", red: "Concurrent", get: func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error) {
		res, err := b.Backend.Get(ctx, key, at)
		if at == 0 && res.Found && res.KV.Revision > 20 && res.KV.Revision%16 == 0 {
			if old, err := b.Backend.Get(ctx, key, res.KV.Revision-1); err == nil {
				old.Revision = res.Revision
				return old, nil
			}
		}
		return res, err
	}},
	{name: "a stale list", red: "Concurrent", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		res, err := b.Backend.Range(ctx, r)
		b.mu.Lock()
		defer b.mu.Unlock()
		if r.At == 0 && !r.CountOnly && err == nil {
			if b.n++; b.n%10 == 9 {
				return b.seen, nil
			}
			b.seen = res
		}
		return res, err
	}},
	{name: "a list of two states", red: "Concurrent", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		res, err := b.Backend.Range(ctx, r)
		if len(res.KVs) > 1 && r.At == 0 && r.Limit == 0 {
			time.Sleep(time.Millisecond)
			last := len(res.KVs) - 1
			if now, err := b.Backend.Get(ctx, res.KVs[last].Key, 0); err == nil && now.Found {
				res.KVs[last] = now.KV
			}
		}
		return res, err
	}},
	{name: "reads of uncommitted values", red: "Concurrent", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		b.mu.Lock()
		b.lost = c
		b.mu.Unlock()
		time.Sleep(50 * time.Microsecond)
		return b.Backend.Commit(ctx, c)
	}, get: func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error) {
		res, err := b.Backend.Get(ctx, key, at)
		b.mu.Lock()
		defer b.mu.Unlock()
		if at == 0 && res.Found && b.lost.Key == key && !b.lost.Delete {
			res.KV.Value = b.lost.Value
		}
		return res, err
	}},
	{name: "the count stops at the limit", red: "Read/limit and count", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		res, err := b.Backend.Range(ctx, r)
		if !r.CountOnly {
			res.Count = int64(len(res.KVs))
		}
		return res, err
	}},
	{name: "a limit of one more", red: "Read/limit and count", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		if r.Limit > 0 {
			r.Limit++
		}
		return b.Backend.Range(ctx, r)
	}},
	{name: "no more than ten thousand keys", red: "Read/more than ten thousand", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		if r.Limit == 0 && !r.CountOnly {
			r.Limit = 10_000
		}
		return b.Backend.Range(ctx, r)
	}},
	{name: "a range ends after its end", red: "Read/intervals", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		if r.To != "" {
			r.To += "\x00"
		}
		return b.Backend.Range(ctx, r)
	}},
	{name: "a revision is given twice", red: "Commit/every commit has a revision", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		res, err := b.Backend.Commit(ctx, c)
		if err == nil && b.nth(5) {
			res.Revision--
		}
		return res, err
	}},
	{name: "an acknowledged commit is lost", red: "Concurrent", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		if !c.Delete && c.Expect == storage.AnyRevision && b.nth(20) {
			c.Key = "elsewhere"
		}
		return b.Backend.Commit(ctx, c)
	}},
	{name: "commits that check and act in two steps", red: "Concurrent", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		if c.Expect == storage.AnyRevision {
			return b.Backend.Commit(ctx, c)
		}
		now, err := b.Backend.Get(ctx, c.Key, 0)
		if err != nil {
			return storage.CommitResult{}, err
		}
		if now.KV.Revision != c.Expect || c.Delete && !now.Found {
			return storage.CommitResult{Revision: now.Revision, Current: now.KV, Found: now.Found}, storage.ErrConflict
		}
		time.Sleep(50 * time.Microsecond)
		c.Expect = storage.AnyRevision
		return b.Backend.Commit(ctx, c)
	}},
	{name: "an update of an absent key makes it", red: "Commit/change of an absent key", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		res, err := b.Backend.Commit(ctx, c)
		if errors.Is(err, storage.ErrConflict) && !res.Found && !c.Delete {
			c.Expect = 0
			return b.Backend.Commit(ctx, c)
		}
		return res, err
	}},
	{name: "a conflict that does not show what is there", red: "Commit/create only if absent", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		res, err := b.Backend.Commit(ctx, c)
		if err != nil {
			res.Current, res.Found = storage.KV{}, false
		}
		return res, err
	}},
	{name: "a conflict that does not name what is there", red: "Commit/create only if absent", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		res, err := b.Backend.Commit(ctx, c)
		res.Current.Key = ""
		return res, err
	}},
	{name: "a watch outlives its context", red: "Watch/a context that has ended", slow: true, watch: func(b *flawed, ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
		return b.Backend.Watch(context.WithoutCancel(ctx), w)
	}},
	{name: "a watch from 0 begins now", red: "Watch/from before the beginning", watch: func(b *flawed, ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
		if w.From == 0 {
			now, err := b.Backend.Get(ctx, "k", 0)
			if err != nil {
				return nil, err
			}
			w.From = now.Revision
		}
		return b.Backend.Watch(ctx, w)
	}},
	{name: "a conflict that shows an old value", red: "Concurrent", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		old, _ := b.Backend.Get(ctx, c.Key, 0)
		time.Sleep(50 * time.Microsecond)
		res, err := b.Backend.Commit(ctx, c)
		if errors.Is(err, storage.ErrConflict) && old.Found {
			res.Current, res.Found = old.KV, true
		}
		return res, err
	}},
	{name: "a refused commit is made", red: "Commit/a refused commit changes nothing", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		res, err := b.Backend.Commit(ctx, c)
		if errors.Is(err, storage.ErrConflict) {
			c.Expect = storage.AnyRevision
			_, _ = b.Backend.Commit(ctx, c)
		}
		return res, err
	}},
	{name: "an equal value is no commit", red: "Commit/an equal value is a change", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		now, err := b.Backend.Get(ctx, c.Key, 0)
		if err == nil && now.Found && string(now.KV.Value) == string(c.Value) && !c.Delete {
			return storage.CommitResult{Revision: now.KV.Revision}, nil
		}
		return b.Backend.Commit(ctx, c)
	}},
	{name: "a commit that failed with a context error is half made", red: "Concurrent", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		if c.Delete || !b.nth(30) {
			return b.Backend.Commit(ctx, c)
		}
		c.Value = append([]byte("half of "), c.Value...)
		_, err := b.Backend.Commit(ctx, c)
		return storage.CommitResult{}, errors.Join(err, context.DeadlineExceeded)
	}},
	{name: "the TTL is ignored", red: "TTL", slow: true, commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		c.TTL *= 1000
		return b.Backend.Commit(ctx, c)
	}},
	{name: "what expires does not say so", red: "TTL/what expires says so", get: func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error) {
		res, err := b.Backend.Get(ctx, key, at)
		res.KV.Expiring = false
		return res, err
	}},
	{name: "reads go on after Close", red: "Close/everything says ErrClosed", get: func(b *flawed, ctx context.Context, key string, at int64) (storage.GetResult, error) {
		res, err := b.Backend.Get(ctx, key, at)
		if errors.Is(err, storage.ErrClosed) {
			return res, nil
		}
		return res, err
	}},
	{name: "values change afterwards", red: "Read/slices stay as they are", commit: func(b *flawed, ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
		if now, err := b.Backend.Get(ctx, c.Key, 0); err == nil && now.Found {
			copy(now.KV.Value, "overwritten")
		}
		return b.Backend.Commit(ctx, c)
	}},
	{name: "an uncounted list has no end", red: "Read/a count that need not be exact", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		res, err := b.Backend.Range(ctx, r)
		if r.Uncounted {
			res.Count++
		}
		return res, err
	}},
	{name: "an uncounted list ends at the limit", red: "Read/a count that need not be exact", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		res, err := b.Backend.Range(ctx, r)
		if r.Uncounted {
			res.Count = int64(len(res.KVs))
		}
		return res, err
	}},
	{name: "bytes are not bounded", red: "Read/values of so many bytes", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		r.Bytes = 0
		return b.Backend.Range(ctx, r)
	}},
	{name: "a list bounded by its bytes ends there", red: "Read/values of so many bytes", list: func(b *flawed, ctx context.Context, r storage.Range) (storage.RangeResult, error) {
		res, err := b.Backend.Range(ctx, r)
		if r.Bytes > 0 && !r.CountOnly {
			res.Count = int64(len(res.KVs))
		}
		return res, err
	}},
	{name: "a stat of what was deleted", red: "Stat/present, missing", stat: func(b *flawed, ctx context.Context, key string) (storage.Stat, error) {
		s, err := b.Backend.Stat(ctx, key)
		if old, err := b.Backend.Get(ctx, key, s.At-1); err == nil && s.Revision == 0 {
			s.Revision = old.KV.Revision
		}
		return s, err
	}},
	{name: "a stat is at the value's revision", red: "Stat/present, missing", stat: func(b *flawed, ctx context.Context, key string) (storage.Stat, error) {
		s, err := b.Backend.Stat(ctx, key)
		if s.Revision != 0 {
			s.At = s.Revision
		}
		return s, err
	}},
	{name: "a stat of what was", red: "Stat/beside commits", stat: func(b *flawed, ctx context.Context, key string) (storage.Stat, error) {
		s, err := b.Backend.Stat(ctx, key)
		if old, err := b.Backend.Get(ctx, key, s.At-1); err == nil && s.At%8 == 0 {
			return storage.Stat{Revision: old.KV.Revision, At: s.At - 1}, nil
		}
		return s, err
	}},
	{name: "a stat of two states", red: "Stat/beside commits", stat: func(b *flawed, ctx context.Context, key string) (storage.Stat, error) {
		s, err := b.Backend.Stat(ctx, key)
		time.Sleep(50 * time.Microsecond)
		if now, err := b.Backend.Get(ctx, key, 0); err == nil {
			s.At = now.Revision
		}
		return s, err
	}},
	{name: "stats go on after Close", red: "Stat/after Close", stat: func(b *flawed, ctx context.Context, key string) (storage.Stat, error) {
		s, err := b.Backend.Stat(ctx, key)
		if errors.Is(err, storage.ErrClosed) {
			return s, nil
		}
		return s, err
	}},
	{name: "the oldest revision is gone", red: "Oldest/after compactions", oldest: func(b *flawed, ctx context.Context) (int64, error) {
		oldest, err := b.Backend.Oldest(ctx)
		return max(oldest-1, 1), err
	}},
	{name: "the oldest revision is not the oldest", red: "Oldest/with and without history", oldest: func(b *flawed, ctx context.Context) (int64, error) {
		now, err := b.Backend.Get(ctx, "a", 0)
		return now.Revision, err
	}},
	{name: "the oldest revision comes late", red: "Oldest/beside compactions", oldest: func(b *flawed, ctx context.Context) (int64, error) {
		oldest, err := b.Backend.Oldest(ctx)
		time.Sleep(100 * time.Microsecond)
		b.mu.Lock()
		defer b.mu.Unlock()
		if err != nil {
			return 0, err
		}
		b.oldest, oldest = oldest, b.oldest
		return max(oldest, 1), nil
	}},
}
