package storagetest_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/storage"
)

// Log is a storage.Backend: the list of all changes since the beginning, in memory. It forgets nothing, and every read walks
// the list. The change of revision r is changes[r-2]; an empty Log is at revision 1.
type Log struct {
	news    *sync.Cond // its L guards all fields below, and the feeds; it wakes the feeds
	changes []storage.Change
	closed  bool
}

func NewLog() *Log { return &Log{news: sync.NewCond(new(sync.Mutex))} }

// change locks the Log; the func it returns wakes the feeds and unlocks it.
func (l *Log) change() (done func()) {
	l.news.L.Lock()
	return func() { l.news.Broadcast(); l.news.L.Unlock() }
}

// state returns the values in an interval of keys at a revision, 0 being the latest. The caller has locked the Log.
func (l *Log) state(r storage.Range) (storage.RangeResult, error) {
	now := int64(len(l.changes)) + 1
	switch {
	case l.closed:
		return storage.RangeResult{}, storage.ErrClosed
	case r.At > now:
		return storage.RangeResult{}, storage.ErrFuture
	case r.At == 0:
		r.At = now
	}
	state := map[string]storage.KV{}
	for _, c := range l.changes[:r.At-1] {
		if delete(state, c.Key); !c.Deleted && c.Key >= r.From && (r.To == "" || c.Key < r.To) {
			state[c.Key] = storage.KV{Key: c.Key, Value: c.Value, Revision: c.Revision}
		}
	}
	res := storage.RangeResult{Count: int64(len(state)), Revision: r.At}
	bytes := int64(0)
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if r.Full(len(res.KVs), bytes) {
			break
		}
		res.KVs = append(res.KVs, state[key])
		bytes += int64(len(state[key].Value))
	}
	return res, nil
}

func (l *Log) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	res, err := l.Range(ctx, storage.Range{From: key, To: key + "\x00", At: at})
	kv := append(res.KVs, storage.KV{})[0]
	return storage.GetResult{KV: kv, Found: res.Count > 0, Revision: res.Revision}, err
}

func (l *Log) Range(_ context.Context, r storage.Range) (storage.RangeResult, error) {
	l.news.L.Lock()
	defer l.news.L.Unlock()
	return l.state(r)
}

func (l *Log) Commit(_ context.Context, c storage.Commit) (storage.CommitResult, error) {
	defer l.change()()
	now, err := l.state(storage.Range{From: c.Key, To: c.Key + "\x00"})
	met := storage.CommitResult{Revision: now.Revision, Found: now.Count > 0}
	change := storage.Change{Key: c.Key, Value: c.Value, Revision: now.Revision + 1, Deleted: c.Delete}
	if met.Found {
		met.Current, change.Prev = now.KVs[0], &now.KVs[0]
	}
	switch {
	case err != nil:
		return met, err
	case c.TTL > 0:
		return met, storage.ErrUnsupported
	case c.Expect == storage.AnyRevision && c.Delete && !met.Found:
		return met, nil
	case c.Expect != storage.AnyRevision && (c.Expect != met.Current.Revision || c.Delete && !met.Found):
		return met, storage.ErrConflict
	case c.Delete:
		change.Value = nil
	}
	l.changes = append(l.changes, change)
	return storage.CommitResult{Revision: change.Revision}, nil
}

func (l *Log) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	context.AfterFunc(ctx, func() { l.change()() })
	_, err := l.Range(ctx, storage.Range{CountOnly: true})
	return &logFeed{l: l, ctx: ctx, w: w}, err
}

func (l *Log) Close() error {
	defer l.change()()
	l.closed = true
	return nil
}

type logFeed struct {
	l             *Log
	ctx           context.Context    // the context given to Watch, with which the feed ends
	w             storage.WatchRange // From is the revision that was delivered last
	asked, closed bool
}

func (f *logFeed) Next(ctx context.Context) (out storage.Changes, err error) {
	defer context.AfterFunc(ctx, func() { f.l.change()() })()
	f.l.news.L.Lock()
	defer f.l.news.L.Unlock()
	for ; ; f.l.news.Wait() {
		if err = cmp.Or(f.ctx.Err(), ctx.Err()); f.closed || f.l.closed {
			err = storage.ErrClosed
		}
		if err != nil {
			return out, err
		}
		for _, c := range f.l.changes {
			if c.Revision > f.w.From && strings.HasPrefix(c.Key, f.w.Prefix) {
				if !f.w.Prev {
					c.Prev = nil
				}
				out.Changes = append(out.Changes, c)
			}
		}
		now := int64(len(f.l.changes)) + 1
		if f.w.From = max(f.w.From, now); f.asked || len(out.Changes) > 0 {
			out.Progress, f.asked = now, false
			return out, nil
		}
	}
}

func (f *logFeed) RequestProgress() { defer f.l.change()(); f.asked = true }
func (f *logFeed) Close()           { defer f.l.change()(); f.closed = true }

// A Log is a conformant backend because it passes storagetest.Backend(t, func(*testing.T) storage.Backend { return NewLog()
// }).
func ExampleBackend() {
	l := NewLog()
	made, err := l.Commit(context.Background(), storage.Commit{Key: "a", Value: []byte("1")})
	fmt.Println(made.Revision, err, l.Close())
	// Output: 2 <nil> <nil>
}
