package bolt_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"go.etcd.io/bbolt"
)

// A key that expired while the file was closed, or after its process was killed, is deleted when the file is open again.
func TestExpiryGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		for name, killed := range map[string]bool{"closed": false, "killed": true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					path := filepath.Join(t.TempDir(), "test.db")
					b := open(t, path, o)
					var revisions []int64
					for i := range 10 {
						revisions = append(revisions, putFor(t, b, fmt.Sprint("short", i), "s", time.Minute))
					}
					putFor(t, b, "long", "l", time.Hour)
					put(t, b, "stays", "s")
					flush(t, b)
					last := revision(t, b)
					if killed {
						next := filepath.Join(t.TempDir(), "killed.db")
						if err := b.AtRest(func() error { return copyFile(next, path) }); err != nil {
							t.Fatal(err)
						}
						path = next
					}
					closed(t, b, path)
					time.Sleep(10 * time.Minute)
					b = open(t, path, o)
					wantKeys(t, b, "long* stays")
					from := revision(t, b) - 10 // a weaker mode continues after the reserved revisions
					if from != last && (!killed || o.Sync == bolt.SyncAlways) {
						t.Errorf("it was at revision %d, and 10 deletions later it is at %d", last, from+10)
					}
					var want []string
					for i, r := range revisions {
						want = append(want, fmt.Sprintf("-short%d@%d was s@%d", i, from+1+int64(i), r))
					}
					wantChanges(t, watch(t, b, storage.WatchRange{From: from, Prev: true}), want...)
					time.Sleep(50*time.Minute - time.Second)
					wantKeys(t, b, "long* stays")
					time.Sleep(time.Second + late)
					wantKeys(t, b, "stays")
					closed(t, b, path)
				})
			})
		}
	})
}

func TestOpeningAFileDeletesNothingBeforeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		b := open(t, path, bolt.Options{})
		now := putFor(t, b, "a", "1", time.Minute)
		for range 5 {
			closed(t, b, path)
			time.Sleep(10 * time.Second)
			b = open(t, path, bolt.Options{})
			wantKeys(t, b, "a*")
			if got := revision(t, b); got != now {
				t.Errorf("the revision is %d, want %d", got, now)
			}
		}
		time.Sleep(10*time.Second + late)
		wantKeys(t, b, "")
		closed(t, b, path)
	})
}

func TestSnapshotAndRestoreKeepTTLs(t *testing.T) {
	t.Parallel()
	inEveryMode(t, func(t *testing.T, o bolt.Options) {
		dir := t.TempDir()
		b := open(t, filepath.Join(dir, "test.db"), o)
		putFor(t, b, "hour", "1", time.Hour)
		putFor(t, b, "minute", "1", time.Minute)
		put(t, b, "stays", "1")
		content, _ := snapshot(t, b)
		time.Sleep(10 * time.Minute)
		wantKeys(t, b, "hour* stays")
		for _, bump := range []int64{-1, 0} {
			path := filepath.Join(dir, fmt.Sprint("restored", bump))
			if err := bolt.Restore(path, bytes.NewReader(content), bolt.RestoreOptions{RevisionBump: bump}); err != nil {
				t.Fatal(err)
			}
			r := open(t, path, o)
			wantKeys(t, r, "hour* stays")
			if bump < 0 {
				time.Sleep(30 * time.Minute)
				wantKeys(t, r, "hour* stays")
			} else {
				time.Sleep(20*time.Minute + late)
				wantKeys(t, r, "stays")
			}
			closed(t, r, path)
		}
	})
}

// A copy into another backend leaves out values with a TTL, because the time they have left is not known there.
func TestCopyLeavesOutWhatExpires(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		src, path := open(t, filepath.Join(t.TempDir(), "test.db"), o), filepath.Join(t.TempDir(), "copy.db")
		put(t, src, "a", "1")
		putFor(t, src, "b", "1", time.Hour)
		putFor(t, src, "c", "1", time.Hour)
		last := put(t, src, "c", "2")
		dst := open(t, path, o)
		res, err := storage.Copy(t.Context(), dst, src, storage.CopyOptions{})
		if err != nil || res != (storage.CopyResult{Revision: last, Values: 2, Expiring: 1}) {
			t.Errorf("Copy = %+v, %v", res, err)
		}
		if got := keys(t, dst); got != "a c" {
			t.Errorf("the keys are %q", got)
		}
		closed(t, dst, path)
		if v, err := bolt.FileVersion(path); err != nil || v != 1 {
			t.Errorf("the copy has format version %d, %v; want 1", v, err)
		}
	})
}

// Expired keys are removed with the history, like all deletions, and a compact copy has the keys that are still to expire.
func TestCompactionAndShrinkOfKeysThatExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		b := open(t, path, bolt.Options{Window: time.Minute})
		for i := range 300 {
			putFor(t, b, fmt.Sprint("k", i), strings.Repeat("v", 20_000), time.Minute)
		}
		putFor(t, b, "last", "v", time.Hour)
		time.Sleep(time.Minute + late)
		wantKeys(t, b, "last*")
		time.Sleep(5 * time.Minute)
		wantVersions(t, b, 1)
		closed(t, b, path)
		shrunk := false
		b = open(t, path, bolt.Options{Shrink: true, Hooks: bolt.Hooks{Shrunk: func(before, after int64, err error) { shrunk = after < before/10 }}})
		if !shrunk {
			t.Error("the file was not shrunk")
		}
		wantKeys(t, b, "last*")
		time.Sleep(time.Hour)
		wantKeys(t, b, "")
		closed(t, b, path)
	})
}

// Until a file has a TTL it has the format version that every release supports.
func TestTheFormatVersionTellsOfTTLs(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		path := filepath.Join(t.TempDir(), "test.db")
		want := func(want uint64) {
			t.Helper()
			if got, err := bolt.FileVersion(path); err != nil || got != want {
				t.Errorf("format version %d, %v; want %d", got, err, want)
			}
		}
		for i, ttl := range []time.Duration{0, -time.Second, time.Hour, 0} {
			b := open(t, path, o)
			putFor(t, b, "a", "1", ttl)
			if _, err := b.Commit(t.Context(), storage.Commit{Key: "a", Expect: storage.AnyRevision, Delete: true, TTL: time.Hour}); err != nil {
				t.Error(err)
			}
			closed(t, b, path)
			want([]uint64{1, 1, 2, 2}[i])
		}
	})
}

// If there is an invalid entry, nothing is deleted wrongly, and commits continue.
func TestADamagedExpiryHoldsNothingElseUp(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		twice(t, func(t *testing.T, i int) {
			path := filepath.Join(t.TempDir(), "test.db")
			b := open(t, path, o)
			at, wrong := time.Now().Add(time.Minute).Unix(), putFor(t, b, "stays", "1", time.Minute)
			wrong += int64(i) * (put(t, b, "stays", "2") - wrong) // one has a TTL and is gone, one has none
			putFor(t, b, "hour", "1", time.Hour)
			closed(t, b, path)
			edit(t, path, func(tx *bbolt.Tx) error { return bolt.PutExpiry(tx, at, wrong) })
			wantError(t, bolt.Verify(path), "expiry: it has 2 entries, and 1 keys expire")
			b = open(t, path, o)
			time.Sleep(time.Minute)
			for range 2 {
				time.Sleep(time.Minute)
				put(t, b, "b", "1")
				wantKeys(t, b, "b hour* stays")
				if i == 0 && o.Sync == bolt.SyncInterval {
					break // it skips keys that were changed since
				}
				wantError(t, b.Health(t.Context()), path, "damaged", fmt.Sprintf("it says that revision %d of key %q expires at %d", wrong, "stays", at))
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if err := b.Health(t.Context()); !errors.Is(err, storage.ErrClosed) {
				t.Errorf("Health: %v, want ErrClosed", err)
			}
		})
	})
}

// twice runs a test in two bubbles.
func twice(t *testing.T, test func(t *testing.T, i int)) {
	t.Helper()
	for i := range 2 {
		t.Run(fmt.Sprint(i), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, i) }) })
	}
}

// expiringFile makes a closed file that has a key with a TTL.
func expiringFile(t *testing.T, path string) {
	t.Helper()
	b, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	putFor(t, b, "a", "1", time.Hour)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
