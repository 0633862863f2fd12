package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

// Durable tests that a backend's data outlives the backend. open opens, or creates, the backend whose data is under dir; the
// test closes it. Durable does not replace a test that kills the process, such as [Kill].
func Durable(t *testing.T, open func(t *testing.T, dir string) storage.Backend) {
	t.Run("Durable/values and revisions continue", func(t *testing.T) {
		dir := t.TempDir()
		last := int64(0)
		revisions := map[string]int64{}
		for round := range 5 {
			b := newBackend(t, open(t, dir))
			if now := b.revision(); now < last {
				t.Fatalf("opened at revision %d, closed at %d", now, last)
			}
			for key, revision := range revisions {
				b.wantGet(key, 0, "v "+key, revision)
			}
			if got := b.list(storage.Range{}); len(got.KVs) != len(revisions) {
				t.Fatalf("round %d: %d keys, want %d", round, len(got.KVs), len(revisions))
			}
			for i := range 20 {
				key := fmt.Sprintf("%d/%d", round, i)
				revisions[key] = b.put(key, "v "+key)
				if revisions[key] <= last {
					t.Fatalf("revision %d after %d", revisions[key], last)
				}
				last = revisions[key]
			}
			gone := fmt.Sprintf("%d/%d", round, 7)
			last = b.del(gone)
			delete(revisions, gone)
			if err := b.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
		}
	})
	t.Run("Durable/conditions hold across a restart", func(t *testing.T) {
		dir := t.TempDir()
		b := newBackend(t, open(t, dir))
		r1 := b.put("a", "1")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = newBackend(t, open(t, dir))
		b.refused(storage.Commit{Key: "a", Value: []byte("2")})
		wantCurrent(t, b.refused(storage.Commit{Key: "a", Expect: r1 + 1, Value: []byte("2")}), "1", r1)
		r2 := b.commit(storage.Commit{Key: "a", Expect: r1, Value: []byte("2")})
		b.wantGet("a", 0, "2", r2)
	})
	t.Run("Durable/a revision once shown keeps its state", func(t *testing.T) {
		dir := t.TempDir()
		b := newBackend(t, open(t, dir))
		r1 := b.put("a", "1")
		r2 := b.put("a", "2")
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		b = newBackend(t, open(t, dir))
		// The restart may have removed history, but may not have changed it.
		if res, err := b.Get(b.ctx, "a", r1); err == nil && string(res.KV.Value) != "1" {
			t.Errorf("at revision %d the value is %q now", r1, res.KV.Value)
		}
		f := b.watch(storage.WatchRange{From: b.revision()})
		r3 := b.put("a", "3")
		if r3 <= r2 {
			t.Errorf("revision %d after %d", r3, r2)
		}
		f.want(fmt.Sprintf("put a=3@%d", r3))
	})
	t.Run("Durable/a random history with restarts", func(t *testing.T) { restarts(t, open) })
	t.Run("Durable/close waits for commits under way", func(t *testing.T) {
		dir := t.TempDir()
		b := newBackend(t, open(t, dir))
		var all sync.WaitGroup
		done := make([]storage.KV, 8)
		for w := range done {
			all.Go(func() {
				for i := 0; ; i++ {
					c := storage.Commit{Key: fmt.Sprint("k", w), Expect: storage.AnyRevision, Value: []byte(fmt.Sprint(i))}
					res, err := b.Commit(b.ctx, c)
					if err != nil {
						if !errors.Is(err, storage.ErrClosed) {
							t.Errorf("Commit: %v", err)
						}
						return
					}
					done[w] = storage.KV{Key: c.Key, Value: c.Value, Revision: res.Revision}
				}
			})
		}
		feed := b.watch(storage.WatchRange{From: b.revision()})
		for range 50 {
			feed.next()
		}
		b.close()
		all.Wait()
		b = newBackend(t, open(t, dir))
		for _, kv := range done {
			if kv.Key != "" && b.get(kv.Key, 0).KV.Revision < kv.Revision {
				t.Errorf("%s was acknowledged at revision %d; after Close there is %+v", kv.Key, kv.Revision, b.get(kv.Key, 0))
			}
		}
	})
	t.Run("Durable/what was loaded stays", func(t *testing.T) {
		dir := t.TempDir()
		b := newBackend(t, open(t, dir))
		b.load(1000, kv("a", "1", 700), kv("b", "2", 1000))
		b.close()
		b = newBackend(t, open(t, dir))
		if now := b.revision(); now < 1000 {
			t.Errorf("the store is at revision %d, want 1000", now)
		}
		b.wantGet("a", 0, "1", 700)
		b.wantGet("b", 0, "2", 1000)
		b.wantCompacted(999)
		if err := b.loader().Load(b.ctx, 2000, each(nil, nil)); !errors.Is(err, storage.ErrNotEmpty) {
			t.Errorf("Load: %v, want ErrNotEmpty", err)
		}
	})
}

// restarts makes a random history in which the backend is sometimes closed and opened again.
func restarts(t *testing.T, open func(t *testing.T, dir string) storage.Backend) {
	dir, rnd := t.TempDir(), seeded(t)
	b := newBackend(t, open(t, dir))
	m := newModel(b)
	for step := range 200 {
		if step%25 == 24 {
			b.close()
			b = newBackend(t, open(t, dir))
			if now, last := b.revision(), m.revisions[len(m.revisions)-1]; now < last {
				t.Fatalf("opened at revision %d, closed at %d", now, last)
			}
		}
		m.step(t, b, rnd, step)
	}
	// A restart may have removed history: then all history before some revision.
	for i := len(m.revisions) - 1; i >= 0; i-- {
		if _, err := b.Range(b.ctx, storage.Range{At: m.revisions[i]}); errors.Is(err, storage.ErrCompacted) {
			m.floor = i + 1
			break
		}
		m.compare(t, b, m.revisions[i], rnd)
	}
	for i := m.floor; i < len(m.revisions); i += 1 + rnd.IntN(20) {
		f := b.watch(storage.WatchRange{From: m.revisions[i], Prev: true})
		f.want(m.changes[i:]...)
		f.wantIdle()
	}
	if m.floor > 0 {
		b.wantCompacted(m.revisions[m.floor-1])
	}
}
