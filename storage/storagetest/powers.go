package storagetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

var healthTests = []backendTest{
	{"healthy until closed", func(t *testing.T, b *backend) {
		h, ok := b.Backend.(storage.Healther)
		if !ok {
			t.Skip("the backend is no storage.Healther")
		}
		if err := h.Health(b.ctx); err != nil {
			t.Errorf("Health: %v", err)
		}
		b.put("a", "1")
		if err := h.Health(b.ctx); err != nil {
			t.Errorf("Health after a commit: %v", err)
		}
		b.close()
		if err := h.Health(b.ctx); err == nil {
			t.Error("it is healthy after Close")
		}
	}},
	{"how much room there is", func(t *testing.T, b *backend) {
		s, ok := b.Backend.(storage.Sizer)
		if !ok {
			t.Skip("the backend is no storage.Sizer")
		}
		before, limit := s.Size()
		if before < 0 || limit >= 0 && limit < before {
			t.Errorf("%d bytes of %d", before, limit)
		}
		for i := range 64 {
			b.put(fmt.Sprint(i), strings.Repeat("x", 64<<10))
		}
		used, limit := s.Size()
		for end := time.Now().Add(Timeout); used < before+64*(64<<10) && time.Now().Before(end); used, limit = s.Size() {
			time.Sleep(10 * time.Millisecond) // a backend may write later
		}
		if used < before+64*(64<<10) || limit >= 0 && limit < used {
			t.Errorf("%d bytes of %d after 4 MiB; there were %d", used, limit, before)
		}
		b.close()
		if used, limit := s.Size(); used != 0 || limit != 0 {
			t.Errorf("%d bytes of %d after Close", used, limit)
		}
	}},
	{"ready until closed", func(t *testing.T, b *backend) {
		r, ok := b.Backend.(storage.Readier)
		if !ok {
			t.Skip("the backend is no storage.Readier")
		}
		b.put("a", "1")
		ctx, cancel := context.WithTimeout(b.ctx, Timeout)
		defer cancel()
		for r.Ready(ctx) != nil && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if err := r.Ready(b.ctx); err != nil {
			t.Errorf("Ready: %v", err)
		}
		b.close()
		if err := r.Ready(b.ctx); err == nil {
			t.Error("it is ready after Close")
		}
	}},
}

// loader returns the backend as a storage.Loader, or skips the test.
func (b *backend) loader() storage.Loader {
	b.t.Helper()
	l, ok := b.Backend.(storage.Loader)
	if !ok {
		b.t.Skip("the backend is no storage.Loader")
	}
	return l
}

func (b *backend) load(revision int64, kvs ...storage.KV) {
	b.t.Helper()
	if err := b.loader().Load(b.ctx, revision, each(kvs, nil)); err != nil {
		b.t.Fatalf("Load: %v", err)
	}
}

// each yields kvs, and then err unless it is nil.
func each(kvs []storage.KV, err error) iter.Seq2[storage.KV, error] {
	return func(yield func(storage.KV, error) bool) {
		for _, kv := range kvs {
			if !yield(kv, nil) {
				return
			}
		}
		if err != nil {
			yield(storage.KV{}, err)
		}
	}
}

func kv(key, value string, revision int64) storage.KV {
	return storage.KV{Key: key, Value: []byte(value), Revision: revision}
}

var loadTests = []backendTest{
	{"keeps every revision", func(t *testing.T, b *backend) {
		b.load(1000, kv("a", "1", 700), kv("b", "2", 20), kv("c", "", 1000), kv("c/d", "3", 21))
		if now := b.revision(); now != 1000 {
			t.Fatalf("the store is at revision %d, want 1000", now)
		}
		for _, at := range []int64{0, 1000} {
			b.wantGet("a", at, "1", 700)
			b.wantGet("b", at, "2", 20)
			b.wantGet("c", at, "", 1000)
			b.wantMissing("d", at)
			if res := b.list(storage.Range{At: at}); versions(res.KVs) != "[a=1@700 b=2@20 c=@1000 c/d=3@21]" || res.Count != 4 || res.Revision != 1000 {
				t.Errorf("Range at %d = %s, count %d, revision %d", at, versions(res.KVs), res.Count, res.Revision)
			}
		}
	}},
	{"history below is compacted", func(t *testing.T, b *backend) {
		b.load(1000, kv("a", "1", 700))
		for _, at := range []int64{20, 700, 999} {
			b.wantCompacted(at)
		}
		b.watch(storage.WatchRange{From: 1000}).wantIdle()
	}},
	{"goes on from there", func(t *testing.T, b *backend) {
		b.load(1000, kv("a", "1", 700), kv("b", "2", 20))
		f := b.watch(storage.WatchRange{From: 1000, Prev: true})
		wantCurrent(t, b.refused(storage.Commit{Key: "a", Value: []byte("x")}), "1", 700)
		wantCurrent(t, b.refused(storage.Commit{Key: "a", Expect: 1000, Value: []byte("x")}), "1", 700)
		r1 := b.commit(storage.Commit{Key: "a", Expect: 700, Value: []byte("11")})
		r2 := b.commit(storage.Commit{Key: "b", Expect: 20, Delete: true})
		if r1 <= 1000 || r2 <= r1 {
			t.Errorf("the commits have the revisions %d and %d", r1, r2)
		}
		f.want(fmt.Sprintf("put a=11@%d (was 1@700)", r1), fmt.Sprintf("delete b@%d (was 2@20)", r2))
		b.wantGet("a", 1000, "1", 700)
		b.wantGet("b", r1, "2", 20)
		b.wantMissing("b", 0)
	}},
	{"nothing but a revision", func(t *testing.T, b *backend) {
		b.load(50)
		if now := b.revision(); now != 50 {
			t.Errorf("the store is at revision %d, want 50", now)
		}
		b.wantCompacted(49)
		if r := b.put("a", "1"); r <= 50 {
			t.Errorf("revision %d after 50", r)
		}
	}},
	{"many values", func(t *testing.T, b *backend) {
		var kvs []storage.KV
		for i := range 12_000 {
			kvs = append(kvs, kv(fmt.Sprintf("k%06d", i), fmt.Sprint("v", i), int64(20_000-i)))
		}
		b.load(20_001, kvs...)
		res := b.list(storage.Range{})
		if !slices.EqualFunc(res.KVs, kvs, sameKV) || res.Count != int64(len(kvs)) {
			t.Errorf("%d keys, count %d; want what was loaded, %d", len(res.KVs), res.Count, len(kvs))
		}
	}},
	{"refused when in use", func(t *testing.T, b *backend) {
		l := b.loader()
		r := b.put("a", "1")
		unchanged := func() {
			t.Helper()
			if err := l.Load(b.ctx, 1000, each([]storage.KV{kv("b", "2", 700)}, nil)); !errors.Is(err, storage.ErrNotEmpty) {
				t.Errorf("Load: %v, want ErrNotEmpty", err)
			}
			b.wantMissing("b", 0)
			if now := b.revision(); now >= 1000 {
				t.Errorf("the store is at revision %d", now)
			}
		}
		unchanged()
		b.wantGet("a", 0, "1", r)
		b.del("a")
		unchanged()
	}},
	{"refused a second time", func(t *testing.T, b *backend) {
		b.load(100, kv("a", "1", 70))
		if err := b.loader().Load(b.ctx, 1000, each(nil, nil)); !errors.Is(err, storage.ErrNotEmpty) {
			t.Errorf("Load: %v, want ErrNotEmpty", err)
		}
		b.wantGet("a", 100, "1", 70)
	}},
	{"an error of the values", func(t *testing.T, b *backend) {
		mine := errors.New("mine")
		if err := b.loader().Load(b.ctx, 1000, each([]storage.KV{kv("a", "1", 700)}, mine)); !errors.Is(err, mine) {
			t.Errorf("Load: %v, want the error of the values", err)
		}
	}},
	{"after Close", func(t *testing.T, b *backend) {
		l := b.loader()
		b.close()
		if err := l.Load(b.ctx, 1000, each(nil, nil)); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Load: %v, want ErrClosed", err)
		}
	}},
}

func sameKV(a, b storage.KV) bool {
	return a.Key == b.Key && string(a.Value) == string(b.Value) && a.Revision == b.Revision && a.Stale == b.Stale && a.Expiring == b.Expiring
}

// raiser returns the backend as a storage.Raiser, or skips the test.
func (b *backend) raiser() storage.Raiser {
	b.t.Helper()
	r, ok := b.Backend.(storage.Raiser)
	if !ok {
		b.t.Skip("the backend is no storage.Raiser")
	}
	return r
}

var raiseTests = []backendTest{
	{"the revision grows and history is gone", func(t *testing.T, b *backend) {
		r := b.raiser()
		r1, r2 := b.put("a", "1"), b.put("b", "2")
		if err := r.Raise(b.ctx, r2+20, 1000); err != nil {
			t.Fatalf("Raise: %v", err)
		}
		now := b.revision()
		if now <= r2+20 {
			t.Errorf("the store is at revision %d, want more than %d", now, r2+20)
		}
		for _, at := range []int64{r1, r2, r2 + 20} {
			b.wantCompacted(at)
		}
		for _, at := range []int64{0, now} {
			if got, want := versions(b.list(storage.Range{At: at}).KVs), fmt.Sprintf("[a=1@%d b=2@%d]", r1, r2); got != want {
				t.Errorf("Range at %d = %s, want %s", at, got, want)
			}
		}
		f := b.watch(storage.WatchRange{From: now})
		r3 := b.commit(storage.Commit{Key: "a", Expect: r1, Value: []byte("3")})
		f.want(fmt.Sprintf("put a=3@%d", r3))
	}},
	{"an empty store", func(t *testing.T, b *backend) {
		r := b.raiser()
		start := b.revision()
		if err := r.Raise(b.ctx, start+5, 1000); err != nil {
			t.Fatalf("Raise: %v", err)
		}
		if now := b.revision(); now <= start+5 {
			t.Errorf("the store is at revision %d, want more than %d", now, start+5)
		}
		if res := b.list(storage.Range{}); res.Count != 0 || len(res.KVs) != 0 {
			t.Errorf("Range = %s, count %d", versions(res.KVs), res.Count)
		}
	}},
	{"what is there already needs no commit", func(t *testing.T, b *backend) {
		r := b.raiser()
		b.put("a", "1")
		now := b.put("a", "2")
		if err := r.Raise(b.ctx, now-1, 0); err != nil {
			t.Errorf("Raise: %v", err)
		}
		if after := b.revision(); after < now {
			t.Errorf("the revision went from %d to %d", now, after)
		}
		b.wantGet("a", 0, "2", now)
	}},
	{"too many commits are refused and change nothing", func(t *testing.T, b *backend) {
		r := b.raiser()
		r1 := b.put("a", "1")
		now := b.put("a", "2")
		f := b.watch(storage.WatchRange{From: now})
		err := r.Raise(b.ctx, now+1000, 10)
		var raise *storage.RaiseError
		if !errors.As(err, &raise) || raise.Wanted != now+1000 || raise.Current != now || raise.Limit != 10 || raise.Needed <= 10 {
			t.Errorf("Raise: %v (%+v), want a RaiseError for %d at %d", err, raise, now+1000, now)
		}
		if after := b.revision(); after != now {
			t.Errorf("the revision went from %d to %d", now, after)
		}
		b.wantGet("a", r1, "1", r1)
		f.wantIdle()
	}},
	{"after Close", func(t *testing.T, b *backend) {
		r := b.raiser()
		b.close()
		if err := r.Raise(b.ctx, 100, 1000); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Raise: %v, want ErrClosed", err)
		}
	}},
}
