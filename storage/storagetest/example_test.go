package storagetest_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/storage"
)

// Log is a storage.Backend: the list of all changes since the beginning, in memory. It forgets nothing, and every read
// walks the list. The change of revision r is changes[r-2]; an empty Log is at revision 1.
type Log struct {
	mu      sync.Mutex // guards all below, and the feeds
	changes []storage.Change
	closed  bool
	news    chan struct{} // closed, and replaced, when a feed may have something to do
}

// state is what is under the keys in [from, to) at a revision, 0 being the latest. The caller holds mu.
func (l *Log) state(ctx context.Context, from, to string, at int64) (storage.RangeResult, error) {
	now := int64(len(l.changes)) + 1
	switch {
	case ctx.Err() != nil:
		return storage.RangeResult{}, ctx.Err()
	case l.closed:
		return storage.RangeResult{}, storage.ErrClosed
	case at > now:
		return storage.RangeResult{}, storage.ErrFuture
	case at == 0:
		at = now
	}
	state := map[string]storage.KV{}
	for _, c := range l.changes[:at-1] {
		if delete(state, c.Key); !c.Deleted && c.Key >= from && (to == "" || c.Key < to) {
			state[c.Key] = storage.KV{Key: c.Key, Value: c.Value, Revision: c.Revision}
		}
	}
	res := storage.RangeResult{Count: int64(len(state)), Revision: at}
	for _, key := range slices.Sorted(maps.Keys(state)) {
		res.KVs = append(res.KVs, state[key])
	}
	return res, nil
}

func (l *Log) Get(ctx context.Context, key string, at int64) (storage.GetResult, error) {
	res, err := l.Range(ctx, storage.Range{From: key, To: key + "\x00", At: at})
	kv := append(res.KVs, storage.KV{})[0]
	return storage.GetResult{KV: kv, Found: res.Count > 0, Revision: res.Revision}, err
}

func (l *Log) Range(ctx context.Context, r storage.Range) (storage.RangeResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	res, err := l.state(ctx, r.From, r.To, r.At)
	if r.CountOnly {
		res.KVs = nil
	} else if r.Limit > 0 && len(res.KVs) > r.Limit {
		res.KVs = res.KVs[:r.Limit]
	}
	return res, err
}

func (l *Log) Commit(ctx context.Context, c storage.Commit) (storage.CommitResult, error) {
	defer l.tell(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := l.state(ctx, c.Key, c.Key+"\x00", 0)
	res := storage.CommitResult{Revision: now.Revision, Found: now.Count > 0}
	change := storage.Change{Key: c.Key, Value: c.Value, Revision: now.Revision + 1, Deleted: c.Delete}
	if res.Found {
		res.Current, change.Prev = now.KVs[0], &now.KVs[0]
	}
	switch {
	case err != nil:
		return res, err
	case c.TTL > 0:
		return res, storage.ErrUnsupported
	case c.Expect == storage.AnyRevision && c.Delete && !res.Found:
		return res, nil
	case c.Expect != storage.AnyRevision && (c.Expect != res.Current.Revision || c.Delete && !res.Found):
		return res, storage.ErrConflict
	case c.Delete:
		change.Value = nil
	}
	l.changes = append(l.changes, change)
	return storage.CommitResult{Revision: change.Revision}, nil
}

func (l *Log) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	defer l.tell(nil)
	l.mu.Lock()
	defer l.mu.Unlock()
	now, err := l.state(ctx, "", "", 0)
	return &logFeed{l: l, ctx: ctx, w: w, reached: min(w.From, now.Revision)}, err
}

func (l *Log) Close() error {
	l.tell(&l.closed)
	return nil
}

// tell sets a flag and lets the feeds look again.
func (l *Log) tell(flag *bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if flag != nil {
		*flag = true
	}
	if l.news != nil {
		close(l.news)
	}
	l.news = make(chan struct{})
}

type logFeed struct {
	l       *Log
	ctx     context.Context // of Watch: the feed's life
	w       storage.WatchRange
	reached int64 // what is up to this revision has been delivered
	asked   bool  // for progress
	closed  bool
}

func (f *logFeed) Next(ctx context.Context) (storage.Changes, error) {
	for {
		out, news, err := f.read()
		if err != nil || out.Progress > 0 {
			return out, err
		}
		select {
		case <-news:
		case <-f.ctx.Done():
		case <-ctx.Done():
			return storage.Changes{}, ctx.Err()
		}
	}
}

func (f *logFeed) read() (out storage.Changes, news chan struct{}, err error) {
	f.l.mu.Lock()
	defer f.l.mu.Unlock()
	if f.closed || f.l.closed {
		return out, nil, storage.ErrClosed
	}
	for _, c := range f.l.changes[f.reached-1:] {
		if c.Revision > f.w.From && strings.HasPrefix(c.Key, f.w.Prefix) {
			if !f.w.Prev {
				c.Prev = nil
			}
			out.Changes = append(out.Changes, c)
		}
	}
	f.reached = int64(len(f.l.changes)) + 1
	if f.asked || len(out.Changes) > 0 {
		out.Progress, f.asked = f.reached, false
	}
	return out, f.l.news, f.ctx.Err()
}

func (f *logFeed) RequestProgress() { f.l.tell(&f.asked) }
func (f *logFeed) Close()           { f.l.tell(&f.closed) }

// A Log is a backend because it passes: storagetest.Backend(t, func(*testing.T) storage.Backend { return new(Log) }).
func ExampleBackend() {
	l := new(Log)
	defer l.Close()
	made, err := l.Commit(context.Background(), storage.Commit{Key: "a", Value: []byte("1")})
	fmt.Println(made.Revision, err)
	// Output: 2 <nil>
}
