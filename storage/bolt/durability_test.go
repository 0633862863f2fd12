package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// broken is a disk that works only while ok is set.
type broken struct {
	ok      atomic.Bool
	err     error
	flushes atomic.Int64
}

func newBroken() *broken {
	d := &broken{err: syscall.ENOSPC}
	d.ok.Store(true)
	return d
}

func (d *broken) sync(int) error {
	d.flushes.Add(1)
	if d.ok.Load() {
		return nil
	}
	return d.err
}

// opened opens a file in a mode. The returned func copies the file as a process that is killed now would leave it.
func opened(t *testing.T, path string, o bolt.Options) (b *bolt.Backend, crash func() string) {
	t.Helper()
	b, err := bolt.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b, func() string {
		left := filepath.Join(t.TempDir(), "left.db")
		writeFile(t, left, readFile(t, path))
		return left
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	for want, o := range map[string]bolt.Options{
		"Sync 3 is none of":             {Sync: 3},
		"Sync -1 is none of":            {Sync: -1},
		"Interval must not be negative": {Sync: bolt.SyncInterval, Interval: -1},
		"for SyncInterval alone":        {Interval: time.Second},
		"Quota is -1 bytes; it must be": {Quota: -1},
		"must be at least 4194304":      {Quota: 300_000},
	} {
		_, err := bolt.Open(path, o)
		wantError(t, err, want)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was created")
	}
}

// Commits that SyncInterval has in memory are read as if they were in the file.
func TestUnflushedChangesAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	b, _ := opened(t, path, bolt.Options{Sync: bolt.SyncInterval, Interval: time.Hour})
	put(t, b, "a", "1") // is flushed with the reservation, or at once
	put(t, b, "b", "1")
	put(t, b, "d", "1")
	flush(t, b)
	at := revision(t, b)
	feed := watch(t, b, storage.WatchRange{From: 1, Prev: true})
	r1 := put(t, b, "b", "2")
	r2 := put(t, b, "c", "1")
	r3 := del(t, b, "a")
	r4 := put(t, b, "b", "3")
	r5 := put(t, b, "e", "1")
	if n := b.Unflushed(); n != 5 {
		t.Fatalf("%d changes wait in memory, want 5", n)
	}
	for _, test := range []struct {
		r     storage.Range
		want  string
		count int64
	}{
		{storage.Range{}, "b=3 c=1 d=1 e=1", 4},
		{storage.Range{At: at}, "a=1 b=1 d=1", 3},
		{storage.Range{At: r1}, "a=1 b=2 d=1", 3},
		{storage.Range{At: r2}, "a=1 b=2 c=1 d=1", 4},
		{storage.Range{At: r3}, "b=2 c=1 d=1", 3},
		{storage.Range{Limit: 2}, "b=3 c=1", 4},
		{storage.Range{Limit: 3, At: r2}, "a=1 b=2 c=1", 4},
		{storage.Range{From: "b\x00", To: "e"}, "c=1 d=1", 2},
		{storage.Range{From: "c", To: "c"}, "", 0},
		{storage.Range{From: "d\x00"}, "e=1", 1},
		{storage.Range{CountOnly: true}, "", 4},
	} {
		res, err := b.Range(t.Context(), test.r)
		var got []string
		for _, kv := range res.KVs {
			got = append(got, kv.Key+"="+string(kv.Value))
		}
		if err != nil || strings.Join(got, " ") != test.want || res.Count != test.count {
			t.Errorf("Range(%+v) = %q of %d, %v; want %q of %d", test.r, got, res.Count, err, test.want, test.count)
		}
	}
	wantGet(t, b, "b", r2, "2", r1)
	wantGet(t, b, "b", 0, "3", r4)
	wantGet(t, b, "a", r2, "1", 2)
	if res, err := b.Get(t.Context(), "a", 0); err != nil || res.Found {
		t.Errorf("Get = %+v, %v, want nothing", res, err)
	}
	if res, err := b.Commit(t.Context(), create("b", "x")); !errors.Is(err, storage.ErrConflict) || res.Current.Revision != r4 ||
		string(res.Current.Value) != "3" || res.Revision != r5 {
		t.Errorf("Commit = %+v, %v, want a conflict with the value in memory", res, err)
	}
	if res, err := b.Commit(t.Context(), create("d", "x")); !errors.Is(err, storage.ErrConflict) || string(res.Current.Value) != "1" {
		t.Errorf("Commit = %+v, %v, want a conflict with the value in the file", res, err)
	}
	wantChanges(t, feed, "a=1@2", "b=1@3", "d=1@4",
		fmt.Sprintf("b=2@%d was 1@3", r1), fmt.Sprintf("c=1@%d", r2), fmt.Sprintf("-a@%d was 1@2", r3),
		fmt.Sprintf("b=3@%d was 2@%d", r4, r1), fmt.Sprintf("e=1@%d", r5))
	if n := b.Unflushed(); n != 5 {
		t.Fatalf("%d changes wait in memory, want 5 still", n)
	}
	if err := b.Compact(t.Context(), r4); err != nil { // it is durable, and so is everything before it
		t.Error(err)
	}
	if n := b.Unflushed(); n != 0 {
		t.Errorf("%d changes wait in memory after Compact", n)
	}
	if _, err := b.Get(t.Context(), "b", r2); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("Get: %v, want ErrCompacted", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := bolt.Verify(path); err != nil {
		t.Error(err)
	}
	wantGet(t, open(t, path, bolt.Options{}), "b", 0, "3", r4)
}

// flush makes everything durable.
func flush(t *testing.T, b *bolt.Backend) {
	t.Helper()
	if err := b.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnIntervalIsAnInterval(t *testing.T) {
	b, crash := opened(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{Sync: bolt.SyncInterval, Interval: time.Millisecond})
	put(t, b, "a", "1")
	for end := time.Now().Add(30 * time.Second); b.Unflushed() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing is flushed")
		}
	}
	left := open(t, crash(), bolt.Options{})
	if res, err := left.Get(t.Context(), "a", 0); err != nil || !res.Found {
		t.Errorf("Get after a crash = %+v, %v", res, err)
	}
}

// A crash loses what was in memory, but no revision that was shown is given again, in any later mode.
func TestACrashLeavesAGap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	b, crash := opened(t, path, bolt.Options{Sync: bolt.SyncInterval, Interval: time.Hour})
	put(t, b, "a", "1")
	flush(t, b)
	kept := revision(t, b)
	lost := put(t, b, "a", "2")
	everyMode(t, func(t *testing.T, o bolt.Options) {
		left := crash()
		for range 3 { // opening changes nothing
			again := open(t, left, o)
			now := revision(t, again)
			if now <= lost {
				t.Fatalf("the revision is %d after a crash at %d", now, lost)
			}
			wantGet(t, again, "a", 0, "1", kept)
			for _, at := range []int64{kept, lost, now - 1} {
				if res, err := again.Get(t.Context(), "a", at); !errors.Is(err, storage.ErrCompacted) {
					t.Errorf("Get at %d = %+v, %v; want ErrCompacted", at, res, err)
				}
				if _, err := again.Watch(t.Context(), storage.WatchRange{From: at}); !errors.Is(err, storage.ErrCompacted) {
					t.Errorf("Watch from %d: %v, want ErrCompacted", at, err)
				}
			}
			feed := watch(t, again, storage.WatchRange{From: now, Prev: true})
			next := put(t, again, "a", "3")
			if next != now+1 {
				t.Errorf("revision %d after %d", next, now)
			}
			wantChanges(t, feed, fmt.Sprintf("a=3@%d was 1@%d", next, kept))
			if _, err := again.Snapshot(t.Context(), new(strings.Builder)); err != nil {
				t.Errorf("Snapshot: %v", err)
			}
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
			if err := bolt.Verify(left); err != nil {
				t.Fatal(err)
			}
			left = crash()
		}
	})
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, path, bolt.Options{})
	wantGet(t, again, "a", 0, "2", lost)
	if got := put(t, again, "b", "1"); got != lost+1 {
		t.Errorf("revision %d after a clean stop at %d", got, lost)
	}
}

func TestReservationsAreRenewed(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]bolt.Options{
		"interval": {Sync: bolt.SyncInterval, Interval: time.Hour}, "never": {Sync: bolt.NoSync},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.WindowChanges = 100
			b, _ := opened(t, filepath.Join(t.TempDir(), "test.db"), o.WithBlock(200))
			for i := range 30 { // several blocks
				putAll(t, b, 100, "v")
				last := revision(t, b)
				left := filepath.Join(t.TempDir(), "left.db")
				if err := b.AtRest(func() error { return copyFile(left, b.Path()) }); err != nil {
					t.Fatal(err)
				}
				kept, err := bolt.FileRevision(left)
				if err != nil {
					t.Fatal(err)
				}
				if got := revision(t, open(t, left, bolt.Options{})); got <= last && (kept < last || got < last) {
					t.Fatalf("the revision is %d after crash %d at %d, of which the file has %d", got, i, last, kept)
				}
			}
		})
	}
}

func TestModesMayChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	last := int64(1)
	for i := range 9 {
		b := open(t, path, bolt.Options{Sync: bolt.Sync(i * 2 % 3)})
		if got := revision(t, b); got != last {
			t.Errorf("opened at revision %d, closed at %d", got, last)
		}
		last = put(t, b, "k", fmt.Sprint(i))
		wantGet(t, b, "k", 0, fmt.Sprint(i), int64(i+2))
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIntervalOnADiskThatIsFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	disk := newBroken()
	b, crash := opened(t, path, bolt.Options{Sync: bolt.SyncInterval, Interval: time.Millisecond}.WithSyncing(disk.sync))
	put(t, b, "a", "1")
	flush(t, b)
	disk.ok.Store(false)
	r := put(t, b, "a", "2")
	var err error
	for end := time.Now().Add(30 * time.Second); err == nil && time.Now().Before(end); {
		_, err = b.Commit(t.Context(), storage.Commit{Key: "b", Expect: storage.AnyRevision, Value: []byte("1")})
	}
	if !errors.Is(err, storage.ErrNoSpace) {
		t.Fatalf("Commit: %v, want ErrNoSpace", err)
	}
	wantGet(t, b, "a", 0, "2", r)
	if err := b.Health(t.Context()); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("Health: %v, want ErrNoSpace", err)
	}
	if err := b.Compact(t.Context(), r); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("Compact: %v, want ErrNoSpace", err)
	}
	if _, err := b.Snapshot(t.Context(), new(strings.Builder)); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("Snapshot: %v, want ErrNoSpace: it could not have everything", err)
	}
	if res, err := b.Commit(t.Context(), create("a", "3")); !errors.Is(err, storage.ErrConflict) || string(res.Current.Value) != "2" {
		t.Errorf("Commit = %+v, %v, want a conflict", res, err)
	}
	disk.ok.Store(true)
	if err := b.Health(t.Context()); err != nil {
		t.Errorf("Health with room again: %v", err)
	}
	next := put(t, b, "c", "1")
	flush(t, b)
	left := open(t, crash(), bolt.Options{})
	wantGet(t, left, "a", 0, "2", r)
	wantGet(t, left, "c", 0, "1", next)
}

func TestCloseTellsWhatIsLost(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	disk := newBroken()
	b, _ := opened(t, path, bolt.Options{Sync: bolt.SyncInterval, Interval: time.Hour}.WithSyncing(disk.sync))
	put(t, b, "a", "1")
	flush(t, b)
	disk.ok.Store(false)
	r1, r2 := put(t, b, "a", "2"), put(t, b, "b", "1")
	err := b.Close()
	wantError(t, err, path, "the last 2 changes", fmt.Sprintf("of revisions %d to %d", r1, r2), "are lost")
	if !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("Close: %v, want ErrNoSpace", err)
	}
	again := open(t, path, bolt.Options{})
	if got := revision(t, again); got <= r2 {
		t.Errorf("the revision is %d, and %d was shown", got, r2)
	}
	wantGet(t, again, "a", 0, "1", r1-1)
}

// Commits wait when too much is in memory, and none is lost.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	g := newGate()
	var gated atomic.Bool
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{Sync: bolt.SyncInterval, Interval: time.Hour}.
		WithSyncing(func(n int) error {
			if gated.Load() {
				return g.sync(n)
			}
			return nil
		}))
	put(t, b, "a", "1")
	flush(t, b)
	feed := watch(t, b, storage.WatchRange{From: revision(t, b)})
	gated.Store(true)
	large := strings.Repeat("v", 1<<20)
	done := make(chan error, 40)
	for i := range 40 {
		go func() {
			_, err := b.Commit(t.Context(), create(fmt.Sprint("large", i), large))
			done <- err
		}()
	}
	<-g.reached
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	answered := 0
	for waiting := true; waiting; {
		select {
		case err := <-done:
			if answered++; err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
			waiting = false
		}
	}
	if answered == 0 || answered > 25 {
		t.Errorf("%d commits of 1 MiB were answered while nothing could be flushed, want about 16", answered)
	}
	for seen := 0; seen < answered; { // no change may leave the memory before it is in the file
		got, err := feed.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen += len(got.Changes)
	}
	close(g.open)
	for ; answered < 40; answered++ {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if res, err := b.Range(t.Context(), storage.Range{From: "large", CountOnly: true}); err != nil || res.Count != 40 {
		t.Errorf("%d keys, %v; want 40", res.Count, err)
	}
}

func TestNoSyncLeavesFlushingToTheSystem(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{Sync: bolt.NoSync})
	putAll(t, b, 100, "v")
	if b.Syncs() {
		t.Error("bbolt flushes every transaction")
	}
}
