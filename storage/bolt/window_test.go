package bolt_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

func TestHistoryGoesOnAcrossARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	b := open(t, path, bolt.Options{Sync: bolt.NoSync})
	var revisions []int64
	var want []string
	for i := range 1500 { // more than Next reads in one step
		r := put(t, b, "k", fmt.Sprint(i))
		s := fmt.Sprintf("k=%d@%d", i, r)
		if i > 0 {
			s += fmt.Sprintf(" was %d@%d", i-1, revisions[i-1])
		}
		revisions, want = append(revisions, r), append(want, s)
	}
	gone := del(t, b, "k")
	want = append(want, fmt.Sprintf("-k@%d was 1499@%d", gone, revisions[1499]))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	b = open(t, path, bolt.Options{})
	if got := revision(t, b); got != gone {
		t.Errorf("opened at revision %d, closed at %d", got, gone)
	}
	feed := watch(t, b, storage.WatchRange{Prefix: "k", From: revisions[0] - 1, Prev: true})
	late := watch(t, b, storage.WatchRange{Prefix: "k", From: revisions[1490], Prev: true})
	next := put(t, b, "k", "new")
	want = append(want, fmt.Sprintf("k=new@%d", next))
	wantChanges(t, feed, want...)
	wantChanges(t, late, want[1491:]...)
	for _, i := range []int{0, 1, 700, 1499} {
		wantGet(t, b, "k", revisions[i], fmt.Sprint(i), revisions[i])
	}
	if res, err := b.Get(t.Context(), "k", gone); err != nil || res.Found {
		t.Errorf("Get at the deletion = %+v, %v, want nothing", res, err)
	}
}

func TestHistoryIsKeptForTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		o := bolt.Options{Window: time.Minute}
		b := open(t, path, o)
		r1 := put(t, b, "a", "1")
		r2 := put(t, b, "a", "2")
		put(t, b, "gone", "1")
		r4 := del(t, b, "gone")
		idle := watch(t, b, storage.WatchRange{Prefix: "quiet", From: r4})
		time.Sleep(50 * time.Second)
		wantGet(t, b, "a", r1, "1", r1)
		r5 := put(t, b, "a", "3")
		time.Sleep(30 * time.Second)
		if _, err := b.Get(t.Context(), "a", r1); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Get at a revision older than the window: %v, want ErrCompacted", err)
		}
		if _, err := b.Watch(t.Context(), storage.WatchRange{From: r1}); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Watch from a revision older than the window: %v, want ErrCompacted", err)
		}
		wantGet(t, b, "a", r4, "2", r2)
		// Kept: the two values of a, and the change in the window.
		wantVersions(t, b, 2)

		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		b = open(t, path, o) // all history found in the file counts as new
		wantGet(t, b, "a", r4, "2", r2)
		time.Sleep(50 * time.Second)
		wantGet(t, b, "a", r4, "2", r2)
		time.Sleep(20 * time.Second)
		if _, err := b.Get(t.Context(), "a", r4); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Get: %v, want ErrCompacted", err)
		}
		wantGet(t, b, "a", 0, "3", r5)
		wantVersions(t, b, 1)
		if _, err := idle.Next(t.Context()); !errors.Is(err, storage.ErrClosed) {
			t.Errorf("Next: %v, want ErrClosed", err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAnIdleWatchDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{Window: time.Minute})
		defer b.Close()
		idle := watch(t, b, storage.WatchRange{Prefix: "quiet", From: revision(t, b)})
		slow := watch(t, b, storage.WatchRange{Prefix: "loud", From: revision(t, b)})
		for i := range 10 {
			put(t, b, "loud", fmt.Sprint(i))
			time.Sleep(time.Minute)
		}
		idle.RequestProgress()
		if got, err := idle.Next(t.Context()); err != nil || got.Progress != revision(t, b) {
			t.Errorf("Next = %+v, %v, want progress %d", got, err, revision(t, b))
		}
		r := put(t, b, "quiet", "1")
		wantChanges(t, idle, fmt.Sprintf("quiet=1@%d", r))
		if got, err := slow.Next(t.Context()); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("Next = %+v, %v, want ErrCompacted: it has lost changes", got, err)
		}
	})
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]bolt.Options{
		"changes": {WindowChanges: 100},
		"bytes":   {WindowBytes: 100 * (1000 + 3)},
	} {
		t.Run(name, func(t *testing.T) {
			compacted := make(chan int64, 10_000)
			o.Hooks.Compacted = func(revision int64, _ int) { compacted <- revision }
			b := open(t, filepath.Join(t.TempDir(), "test.db"), o)
			last := int64(0)
			for range 400 {
				last = put(t, b, "key", string(make([]byte, 1000)))
			}
			for r := range compacted {
				if r == last-100 {
					break
				}
			}
			wantVersions(t, b, 101)
			if _, err := b.Get(t.Context(), "key", last-100); err != nil {
				t.Errorf("Get at the edge of the window: %v", err)
			}
			if _, err := b.Get(t.Context(), "key", last-101); !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Get below the window: %v, want ErrCompacted", err)
			}
		})
	}
}

func TestTheNewestChangeIsKeptWhateverItsSize(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	compacted := make(chan int64, 10)
	o := bolt.Options{WindowBytes: 10}
	o.Hooks.Compacted = func(revision int64, _ int) { compacted <- revision }
	b := open(t, path, o)
	r1 := put(t, b, "a", "larger than ten bytes")
	r2 := put(t, b, "b", "larger than ten bytes")
	if got := <-compacted; got != r1 {
		t.Errorf("compacted up to %d, want %d", got, r1)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, path, bolt.Options{})
	wantChanges(t, watch(t, b, storage.WatchRange{From: r1}), fmt.Sprintf("b=larger than ten bytes@%d", r2))
}

func TestCompactionIsTidiedUpAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	b := open(t, path, bolt.Options{})
	for range 20 { // more than one step of compaction
		putAll(t, b, 50, "v")
	}
	now := del(t, b, "k00000")
	if err := b.Compact(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil { // mostly long before everything is removed
		t.Fatal(err)
	}
	b = open(t, path, bolt.Options{})
	for tries := 0; ; tries++ {
		if log, _, err := b.Versions(); err != nil || log == 49 || tries == 10_000 {
			break // wantVersions reports the error
		}
		time.Sleep(time.Millisecond)
	}
	wantVersions(t, b, 49)
	if _, err := b.Get(t.Context(), "k00001", now-1); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("Get: %v, want ErrCompacted", err)
	}
}

func TestALongRangeIsOneState(t *testing.T) {
	t.Parallel()
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
	const keys = 10_000 // several transactions
	putAll(t, b, keys, "v")
	at := revision(t, b)
	for i := 0; i < keys; i += 2 {
		if i%100 == 0 {
			put(t, b, fmt.Sprintf("k%05d", i), "new")
			del(t, b, fmt.Sprintf("k%05d", i+1))
		}
	}
	for _, limit := range []int{0, 1, 5000} {
		res, err := b.Range(t.Context(), storage.Range{At: at, Limit: limit})
		if err != nil || res.Count != keys || limit > 0 && len(res.KVs) != limit {
			t.Fatalf("Range with limit %d: %d keys, count %d, %v", limit, len(res.KVs), res.Count, err)
		}
		for i, kv := range res.KVs {
			if kv.Key != fmt.Sprintf("k%05d", i) || string(kv.Value) != "v" {
				t.Fatalf("key %d is %s=%s", i, kv.Key, kv.Value)
			}
		}
	}
	if res, err := b.Range(t.Context(), storage.Range{CountOnly: true}); err != nil || res.Count != keys-keys/100 {
		t.Errorf("count %d, %v; want %d", res.Count, err, keys-keys/100)
	}
}

// wantVersions checks how many values the file holds.
func wantVersions(t *testing.T, b *bolt.Backend, want int) {
	t.Helper()
	log, index, err := b.Versions()
	if err != nil || log != want || index != want {
		t.Errorf("the file holds %d values under %d index entries, %v; want %d", log, index, err, want)
	}
}
