package storagetest

import (
	"fmt"
	"testing"

	"github.com/keelson-dev/keelson/storage"
)

// Durable tests that a backend's data outlives it. open opens, or creates, the backend whose data is under dir;
// the test closes it. It does not replace a test that kills the process.
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
		// History may have been forgotten with the restart, but may not have changed.
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
}
