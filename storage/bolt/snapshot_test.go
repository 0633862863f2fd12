package bolt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"go.etcd.io/bbolt"
)

func snapshot(t *testing.T, b *bolt.Backend) ([]byte, int64) {
	t.Helper()
	var out bytes.Buffer
	revision, err := b.Snapshot(t.Context(), &out)
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), revision
}

func TestASnapshotIsTheStoreAtOneRevision(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		t.Parallel()
		dir := t.TempDir()
		b := open(t, filepath.Join(dir, "test.db"), o)
		stop, written := make(chan struct{}), make(chan struct{})
		var all sync.WaitGroup
		defer all.Wait()
		defer close(stop)
		for w := range 4 {
			all.Go(func() {
				for i := 0; ; i++ {
					if _, err := b.Commit(t.Context(), create(fmt.Sprintf("%d/%06d", w, i), strings.Repeat("v", 500))); err != nil {
						t.Error(err)
						return
					}
					select {
					case <-stop:
						return
					case written <- struct{}{}:
					case <-time.After(time.Millisecond): // about as many commits as during a snapshot
					}
				}
			})
		}
		for i := range 5 {
			<-written
			before := revision(t, b)
			content, at := snapshot(t, b)
			if after := revision(t, b); at < before || at > after {
				t.Errorf("the snapshot is of revision %d, which was %d before and %d after", at, before, after)
			}
			want, err := b.Range(t.Context(), storage.Range{At: at})
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(dir, fmt.Sprint(i))
			writeFile(t, copied, content)
			if err := bolt.Verify(copied); err != nil {
				t.Error(err)
			}
			wantContent(t, open(t, copied, bolt.Options{}), want)
			restored := filepath.Join(dir, fmt.Sprint("restored", i))
			if err := bolt.Restore(restored, bytes.NewReader(content), bolt.RestoreOptions{RevisionBump: -1}); err != nil {
				t.Fatal(err)
			}
			r := open(t, restored, bolt.Options{})
			wantContent(t, r, want)
			if got := revision(t, r); got != at {
				t.Errorf("restored at revision %d, want %d", got, at)
			}
		}
	})
}

func wantContent(t *testing.T, b *bolt.Backend, want storage.RangeResult) {
	t.Helper()
	got, err := b.Range(t.Context(), storage.Range{})
	if err != nil || len(got.KVs) != len(want.KVs) {
		t.Fatalf("%d keys, %v; want %d", len(got.KVs), err, len(want.KVs))
	}
	for i, kv := range got.KVs {
		if w := want.KVs[i]; kv.Key != w.Key || kv.Revision != w.Revision || !bytes.Equal(kv.Value, w.Value) {
			t.Fatalf("key %q is at revision %d, want key %q at %d", kv.Key, kv.Revision, w.Key, w.Revision)
		}
	}
}

// slow is a writer that waits in the middle of a snapshot.
type slow struct {
	bytes.Buffer
	reached, goOn chan struct{}
	once          sync.Once
}

func (s *slow) Write(b []byte) (int, error) {
	s.once.Do(func() { close(s.reached); <-s.goOn })
	return s.Buffer.Write(b)
}

func TestASnapshotHoldsNothingUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, filepath.Join(dir, "test.db"), bolt.Options{Sync: bolt.NoSync})
	putAll(t, b, 1000, "v")
	at := revision(t, b)
	out := &slow{reached: make(chan struct{}), goOn: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		revision, err := b.Snapshot(t.Context(), out)
		if err == nil && revision != at {
			err = fmt.Errorf("the snapshot is of revision %d, want %d", revision, at)
		}
		done <- err
	}()
	<-out.reached
	for range 3 {
		putAll(t, b, 1000, strings.Repeat("w", 30_000)) // 90 MiB: the file grows beyond what was mapped at first
	}
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	close(out.goOn)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "copy.db")
	if err := bolt.Restore(path, &out.Buffer, bolt.RestoreOptions{}); err != nil {
		t.Fatal(err)
	}
	wantGet(t, open(t, path, bolt.Options{}), "k00500", 0, "v", mustGet(t, b, "k00500", at).KV.Revision)
}

func mustGet(t *testing.T, b *bolt.Backend, key string, at int64) storage.GetResult {
	t.Helper()
	res, err := b.Get(t.Context(), key, at)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestASnapshotEndsWithItsContextAndWithClose(t *testing.T) {
	for name, want := range map[string]error{"context": context.Canceled, "close": storage.ErrClosed} {
		t.Run(name, func(t *testing.T) {
			b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
			put(t, b, "k", strings.Repeat("v", 1<<20))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out := &slow{reached: make(chan struct{}), goOn: make(chan struct{})}
			done := make(chan error, 1)
			go func() {
				_, err := b.Snapshot(ctx, out)
				done <- err
			}()
			<-out.reached
			closed := make(chan error, 1)
			if name == "context" {
				cancel()
			} else {
				go func() { closed <- b.Close() }()
				b.WaitStopped()
			}
			close(out.goOn)
			if err := <-done; !errors.Is(err, want) {
				t.Errorf("Snapshot: %v, want %v", err, want)
			}
			if name == "close" {
				if err := <-closed; err != nil {
					t.Error(err)
				}
				if _, err := b.Snapshot(t.Context(), io.Discard); !errors.Is(err, storage.ErrClosed) {
					t.Errorf("Snapshot: %v, want ErrClosed", err)
				}
				if err := b.Verify(t.Context()); !errors.Is(err, storage.ErrClosed) {
					t.Errorf("Verify: %v, want ErrClosed", err)
				}
			}
		})
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
func (f failing) Read([]byte) (int, error)  { return 0, f.err }

// A change whose flush has failed may be in the file, but is in no snapshot before it is durable.
func TestASnapshotHasNothingUnseen(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
	put(t, b, "a", "1")
	unseen, err := b.WriteUnseen("b", "1")
	if err != nil {
		t.Fatal(err)
	}
	_, at := snapshot(t, b)
	if at != unseen {
		t.Errorf("the snapshot is of revision %d, want %d", at, unseen)
	}
	wantGet(t, b, "b", 0, "1", unseen) // it is durable now
	broken := errors.New("broken pipe")
	if _, err := b.Snapshot(t.Context(), failing{broken}); !errors.Is(err, broken) {
		t.Errorf("Snapshot: %v, want the writer's error", err)
	}
}

func TestRestoreGoesOnFarAboveTheSnapshot(t *testing.T) {
	dir := t.TempDir()
	b := open(t, filepath.Join(dir, "test.db"), bolt.Options{})
	old := put(t, b, "a", "1")
	kept := put(t, b, "a", "2")
	gone := put(t, b, "b", "1")
	gone = max(gone, del(t, b, "b"))
	content, at := snapshot(t, b)
	shown := put(t, b, "a", "3") // is lost
	for bump, want := range map[int64]int64{0: at + 1_000_000_000, 50: at + 50} {
		path := filepath.Join(dir, fmt.Sprint("bump", bump))
		if err := bolt.Restore(path, bytes.NewReader(content), bolt.RestoreOptions{RevisionBump: bump}); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{}, 10)
		r := open(t, path, bolt.Options{Hooks: bolt.Hooks{Compacted: func(int64, int) { done <- struct{}{} }}})
		if got := revision(t, r); got != want {
			t.Errorf("restored at revision %d, want %d", got, want)
		}
		wantGet(t, r, "a", 0, "2", kept)
		for _, lost := range []int64{old, at, shown, want - 1} {
			if _, err := r.Get(t.Context(), "a", lost); !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Get at %d: %v, want ErrCompacted", lost, err)
			}
			if _, err := r.Watch(t.Context(), storage.WatchRange{From: lost}); !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Watch from %d: %v, want ErrCompacted", lost, err)
			}
		}
		feed := watch(t, r, storage.WatchRange{From: want, Prev: true})
		wantChanges(t, feed, fmt.Sprintf("a=4@%d was 2@%d", put(t, r, "a", "4"), kept))
		<-done
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := bolt.Verify(path); err != nil {
			t.Error(err)
		}
	}
	path := filepath.Join(dir, "kept")
	if err := bolt.Restore(path, bytes.NewReader(content), bolt.RestoreOptions{RevisionBump: -1}); err != nil {
		t.Fatal(err)
	}
	r := open(t, path, bolt.Options{})
	wantGet(t, r, "a", old, "1", old)
	if got := revision(t, r); got != gone {
		t.Errorf("restored at revision %d, want %d", got, gone)
	}
}

func TestSnapshotsThatAreRefused(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source.db")
	size := filled(t, source)
	good := readFile(t, source)
	edited := func(fn func(tx *bbolt.Tx) error) []byte {
		path := filepath.Join(t.TempDir(), "edited.db")
		writeFile(t, path, good)
		edit(t, path, fn)
		return readFile(t, path)
	}
	broken := errors.New("connection reset")
	for name, test := range map[string]struct {
		r    io.Reader
		o    bolt.RestoreOptions
		want string
	}{
		"empty":                {r: strings.NewReader(""), want: "truncated"},
		"a few bytes":          {r: bytes.NewReader(good[:100]), want: "truncated"},
		"one page":             {r: bytes.NewReader(good[:os.Getpagesize()]), want: "truncated"},
		"two pages":            {r: bytes.NewReader(good[:2*os.Getpagesize()]), want: "truncated"},
		"half":                 {r: bytes.NewReader(good[:size/2]), want: "truncated"},
		"text":                 {r: strings.NewReader(strings.Repeat("hello\n", 10_000)), want: "not a storage file"},
		"another program's":    {r: bytes.NewReader(foreign(t)), want: "not a storage file"},
		"connection lost":      {r: io.MultiReader(bytes.NewReader(good[:size/2]), failing{broken}), want: "connection reset"},
		"too far":              {r: bytes.NewReader(good), o: bolt.RestoreOptions{RevisionBump: 1<<63 - 2}, want: "choose a smaller RevisionBump"},
		"at the end of all":    {r: bytes.NewReader(good), o: bolt.RestoreOptions{RevisionBump: 1 << 62}, want: "choose a smaller RevisionBump"},
		"of a later release":   {r: bytes.NewReader(edited(laterVersion)), want: "format version 4"},
		"of an unfinished one": {r: bytes.NewReader(edited(unfinished)), want: "interrupted"},
		"damaged": {r: bytes.NewReader(edited(func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("log")).Delete(binary.BigEndian.AppendUint64(nil, 5))
		})), want: "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "restored.db")
			wantError(t, bolt.Restore(path, test.r, test.o), path, test.want)
			if got := entries(t, dir); len(got) > 0 {
				t.Errorf("left over: %q", got)
			}
		})
	}
}

func laterVersion(tx *bbolt.Tx) error { return version(4)(tx) }

// version sets the format version of a file.
func version(n uint64) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("version"), binary.BigEndian.AppendUint64(nil, n))
	}
}

func unfinished(tx *bbolt.Tx) error {
	return tx.Bucket([]byte("meta")).Put([]byte("unfinished"), []byte{1})
}

// foreign is a bbolt file of another program.
func foreign(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "foreign.db")
	edit(t, path, func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("theirs"))
		if err != nil {
			return err
		}
		return b.Put([]byte("k"), []byte("v"))
	})
	return readFile(t, path)
}

func TestRestoreReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	b := open(t, filepath.Join(dir, "test.db"), bolt.Options{})
	content, _ := snapshot(t, b)
	file := filepath.Join(dir, "file")
	writeFile(t, file, []byte("precious"))
	for path, want := range map[string]string{
		file:                                file + ": it exists already",
		dir:                                 "it exists already",
		filepath.Join(dir, "missing", "db"): "create the directory " + filepath.Join(dir, "missing"),
		filepath.Join(file, "db"):           "not a directory",
	} {
		wantError(t, bolt.Restore(path, bytes.NewReader(content), bolt.RestoreOptions{}), want)
	}
	if got := strings.Join(entries(t, dir), " "); got != "file test.db" {
		t.Errorf("the directory holds %q", got)
	}
	if got := readFile(t, file); string(got) != "precious" {
		t.Errorf("the file holds %q", got)
	}
	// A file with the name is created while the snapshot is read.
	late := filepath.Join(dir, "late")
	r := io.MultiReader(bytes.NewReader(content), onRead(func() { writeFile(t, late, []byte("precious")) }))
	wantError(t, bolt.Restore(late, r, bolt.RestoreOptions{}), "it exists already")
	if got := readFile(t, late); string(got) != "precious" {
		t.Errorf("the file holds %q", got)
	}
}

type onRead func()

func (f onRead) Read([]byte) (int, error) { f(); return 0, io.EOF }
