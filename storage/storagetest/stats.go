package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// historian returns the backend as a storage.Historian, or skips the test.
func (b *backend) historian() storage.Historian {
	b.t.Helper()
	h, ok := b.Backend.(storage.Historian)
	if !ok {
		b.t.Skip("the backend is no storage.Historian")
	}
	return h
}

// oldest returns the oldest revision, and checks that it is the oldest.
func (b *backend) oldest() int64 {
	b.t.Helper()
	oldest, err := b.historian().Oldest(b.ctx)
	if now := b.revision(); err != nil || oldest < 1 || oldest > now {
		b.t.Fatalf("Oldest = %d, %v; the store is at %d", oldest, err, now)
	}
	b.get("a", oldest)
	b.list(storage.Range{At: oldest})
	b.watch(storage.WatchRange{From: oldest}).Close()
	if oldest > 1 { // 0 would read the latest state
		b.wantCompacted(oldest - 1)
	}
	return oldest
}

// knownTests test a backend that is a storage.Knower.
var knownTests = []backendTest{
	{"what a read tells", func(t *testing.T, b *backend) {
		k, ok := b.Backend.(storage.Knower)
		if !ok {
			t.Skip("the backend is no storage.Knower")
		}
		if got, ok := k.Known(); !ok || got != b.revision() {
			t.Errorf("Known = %d, %v; a read tells %d", got, ok, b.revision())
		}
		var commits sync.WaitGroup
		for i := range 4 {
			commits.Go(func() {
				for n := range 25 {
					c := storage.Commit{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision, Value: []byte(fmt.Sprint(n))}
					res, err := b.Commit(b.ctx, c)
					if got, ok := k.Known(); err != nil || !ok || got < res.Revision {
						t.Errorf("Known = %d, %v after a commit at %d, %v", got, ok, res.Revision, err)
					}
				}
			})
		}
		commits.Wait()
		b.close()
		if got, ok := k.Known(); ok {
			t.Errorf("Known = %d after Close", got)
		}
	}},
}

var oldestTests = []backendTest{
	{"with and without history", func(t *testing.T, b *backend) {
		start := b.oldest()
		for i := range 20 {
			b.put(fmt.Sprint("k", i%3), "v")
		}
		b.del("k0")
		if now := b.oldest(); now != start {
			t.Errorf("the oldest was %d, and is %d without a compaction", start, now)
		}
	}},
	{"after compactions", func(t *testing.T, b *backend) {
		b.historian()
		var at []int64
		for i := range 12 {
			at = append(at, b.put("a", fmt.Sprint(i)), b.put("b", fmt.Sprint(i)), b.del("b"))
		}
		for _, i := range []int{0, 1, 2, 5, 20, len(at) - 2, len(at) - 1} {
			b.compact(at[i])
			for range 2 { // the first read may detect it, and then it is known
				if got := b.oldest(); got != at[i] {
					t.Fatalf("compacted at %d: Oldest = %d", at[i], got)
				}
			}
		}
		b.put("c", "1")
		if got, want := b.oldest(), at[len(at)-1]; got != want {
			t.Errorf("Oldest = %d after a commit, want %d", got, want)
		}
	}},
	{"beside compactions", func(t *testing.T, b *backend) {
		h := b.historian()
		b.compactor()
		var begun, done atomic.Int64
		stop := make(chan struct{})
		var asking sync.WaitGroup
		for range 3 {
			asking.Go(func() {
				for last := int64(0); ; {
					select {
					case <-stop:
						return
					default:
					}
					least := done.Load()
					got, err := h.Oldest(b.ctx)
					if most := begun.Load(); err != nil || got < max(least, last) || most > 0 && got > most {
						t.Errorf("Oldest = %d, %v; the last was %d, and the compactions at %d to %d", got, err, last, least, most)
						return
					}
					last = got
				}
			})
		}
		end := time.Now().Add(budget() / 10)
		for i := 0; i < 5000 && (i < 5 || time.Now().Before(end)); i++ {
			at := b.put("a", fmt.Sprint(i))
			b.put("b", fmt.Sprint(i))
			begun.Store(at)
			b.compact(at)
			done.Store(at)
		}
		close(stop)
		asking.Wait()
	}},
	{"after Close", func(t *testing.T, b *backend) {
		h := b.historian()
		ended, cancel := context.WithCancel(b.ctx)
		cancel()
		if _, err := h.Oldest(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("Oldest with a context that has ended: %v", err)
		}
		b.close()
		if got, err := h.Oldest(b.ctx); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Oldest = %d, %v; want ErrClosed", got, err)
		}
	}},
}

// stater returns the backend as a storage.Stater, or skips the test.
func (b *backend) stater() storage.Stater {
	b.t.Helper()
	s, ok := b.Backend.(storage.Stater)
	if !ok {
		b.t.Skip("the backend is no storage.Stater")
	}
	return s
}

// wantStat checks that Stat agrees with Get.
func (b *backend) wantStat(keys ...string) {
	b.t.Helper()
	s := b.stater()
	for _, key := range keys {
		got, err := s.Stat(b.ctx, key)
		res := b.get(key, 0)
		if want := (storage.Stat{Revision: res.KV.Revision, At: res.Revision}); err != nil || got != want {
			b.t.Fatalf("Stat(%q) = %+v, %v; Get says %+v", key, got, err, want)
		}
	}
}

var statTests = []backendTest{
	{"present, missing, deleted, made again", func(t *testing.T, b *backend) {
		all := []string{"a", "a/", "a/b", "a0", "b", "\xff", "ключ"}
		b.wantStat(all...)
		for _, key := range all {
			b.put(key, "")
			b.wantStat(all...)
			b.put(key, "2")
			b.wantStat(all...)
		}
		for _, key := range all {
			b.del(key)
			b.wantStat(all...)
			b.put(key, "3")
			b.wantStat(all...)
		}
		b.wantStat("a\x01", "aa", "c")
	}},
	{"after compactions", func(t *testing.T, b *backend) {
		b.stater()
		b.put("a", "1")
		b.put("b", "1")
		for range 3 {
			b.compact(b.del("a"))
			b.wantStat("a", "b")
			b.compact(b.put("c", "1"))
			b.wantStat("a", "b", "c")
			b.put("a", "1")
			b.wantStat("a", "b", "c")
		}
	}},
	{"a random history", func(t *testing.T, b *backend) {
		b.stater()
		rnd := seeded(t)
		m := newModel(b)
		for step := range 150 {
			m.step(t, b, rnd, step)
			b.wantStat(fmt.Sprintf("p%d/k%d", rnd.IntN(3), rnd.IntN(6)))
		}
	}},
	{"of a value that is large", func(t *testing.T, b *backend) {
		b.stater()
		b.put("a", string(make([]byte, 1<<20)))
		b.wantStat("a")
	}},
	{"beside commits", statBeside},
	{"after Close", func(t *testing.T, b *backend) {
		s := b.stater()
		b.put("a", "1")
		ended, cancel := context.WithCancel(b.ctx)
		cancel()
		if _, err := s.Stat(ended, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("Stat with a context that has ended: %v", err)
		}
		b.close()
		if got, err := s.Stat(b.ctx, "a"); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Stat = %+v, %v; want ErrClosed", got, err)
		}
	}},
}

// statBeside calls Stat for a key that is being written. A result must be of a state that is not older than what was known
// before, and must agree with that state.
func statBeside(t *testing.T, b *backend) {
	s := b.stater()
	var known atomic.Int64 // an acknowledged revision
	known.Store(b.put("a", "0"))
	stop := make(chan struct{})
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			var last storage.Stat
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := known.Load()
				got, err := s.Stat(b.ctx, "a")
				if err != nil || got.At < max(least, last.At) || got.Revision > got.At || got.Revision != 0 && got.Revision < last.Revision {
					t.Errorf("Stat = %+v, %v; before it was %+v, and revision %d was known", got, err, last, least)
					return
				}
				res, err := b.Get(b.ctx, "a", got.At)
				if err != nil || res.KV.Revision != got.Revision {
					t.Errorf("Stat = %+v; Get at %d = %+v, %v", got, got.At, res, err)
					return
				}
				last = got
			}
		})
	}
	end := time.Now().Add(budget() / 10)
	for i := 0; i < 20_000 && (i < 10 || time.Now().Before(end)); i++ {
		switch i % 4 {
		case 2:
			known.Store(b.del("a"))
		case 3:
			known.Store(b.put("b", "v"))
		default:
			known.Store(b.put("a", fmt.Sprint(i)))
		}
		// The other goroutines may not run before it is over.
		if got, err := s.Stat(b.ctx, "a"); err != nil || got.At < known.Load() {
			t.Errorf("Stat = %+v, %v; revision %d was known", got, err, known.Load())
			break
		}
	}
	close(stop)
	asking.Wait()
}
