//go:build unix

package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

func TestAFullDisk(t *testing.T)         { fullDisk(t, "fill") }
func TestAFullDiskJournal(t *testing.T)  { fullDisk(t, "fillJournal") }
func TestAFullDiskInterval(t *testing.T) { fullDisk(t, "fillInterval") }

func fullDisk(t *testing.T, role string) {
	path := filepath.Join(t.TempDir(), "test.db")
	cmd, out := child(t, role, path)
	line, err := out.ReadString('\n')
	if err := cmd.Wait(); err != nil {
		t.Fatalf("the child: %v", err)
	}
	var written int
	if _, scan := fmt.Sscanf(line, "%d", &written); err != nil || scan != nil {
		t.Fatalf("the child says %q, %v", line, err)
	}
	b := open(t, path, bolt.Options{})
	res, err := b.Range(t.Context(), storage.Range{CountOnly: true})
	if err != nil || res.Count != int64(written) {
		t.Errorf("%d keys, %v; want %d", res.Count, err, written)
	}
}

// fill writes until the file has reached a size limit, which looks like a full disk to the program, has the limit removed,
// and returns how many keys there are in the end.
func fill(path string) error {
	ctx := context.Background()
	b, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	defer b.Close()
	lift, err := limitFiles(2 << 20)
	if err != nil {
		return err
	}
	large := []byte(strings.Repeat("v", 10_000))
	n := 0
	for ; ; n++ {
		_, err = b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", n), Value: large})
		if err != nil {
			break
		}
		if n > 1000 {
			return errors.New("the limit was not met")
		}
	}
	if !errors.Is(err, storage.ErrNoSpace) || !strings.Contains(err.Error(), path) {
		return fmt.Errorf("Commit: %w, want ErrNoSpace naming the file", err)
	}
	if err := whileFull(ctx, b, n, large); err != nil {
		return err
	}
	return withRoomAgain(ctx, b, lift, n, large)
}

// withRoomAgain removes the limit, checks that everything works again, and returns how many keys there are then.
func withRoomAgain(ctx context.Context, b *bolt.Backend, lift func() error, n int, large []byte) error {
	if err := lift(); err != nil {
		return err
	}
	if err := errors.Join(b.Health(ctx), b.Ready(ctx)); err != nil {
		return fmt.Errorf("Health and Ready with room again: %w", err)
	}
	for end := n + 20; n < end; n++ {
		if _, err := b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", n), Value: large}); err != nil {
			return fmt.Errorf("with room again: %w", err)
		}
	}
	fmt.Println(n)
	return nil
}

// whileFull checks that reads work, and that many writers get ErrNoSpace, or ErrConflict where the condition is not met.
func whileFull(ctx context.Context, b *bolt.Backend, n int, large []byte) error {
	res, err := b.Range(ctx, storage.Range{})
	if err != nil || res.Count != int64(n) {
		return fmt.Errorf("Range while full: %d keys, %w; want %d", res.Count, err, n)
	}
	for _, kv := range res.KVs {
		if string(kv.Value) != string(large) {
			return fmt.Errorf("%s has another value", kv.Key)
		}
	}
	done := make(chan error, 20)
	for i := range 20 {
		go func() {
			c, want := storage.Commit{Key: fmt.Sprint("new", i), Value: large}, storage.ErrNoSpace
			if i%2 == 0 {
				c.Key, want = "k0", storage.ErrConflict
			}
			_, err := b.Commit(ctx, c)
			if errors.Is(err, want) {
				err = nil
			}
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			return fmt.Errorf("while full: %w", err)
		}
	}
	return nil
}

// limitFiles limits the size of this process's files. A file that grows beyond size seems to be on a full disk.
func limitFiles(size uint64) (lift func() error, err error) {
	signal.Ignore(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return nil, err
	}
	limit := old
	setLimit(&limit.Cur, size)
	return func() error { return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old) },
		syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
}

// setLimit sets a field of a Rlimit, whose type differs between systems.
func setLimit[T int64 | uint64](to *T, size uint64) { *to = T(size) }

// fillInterval is fill with SyncInterval: everything acknowledged stays readable, and is in the file in the end.
func fillInterval(path string) error {
	ctx := context.Background()
	b, err := bolt.Open(path, bolt.Options{Sync: bolt.SyncInterval, Interval: time.Millisecond})
	if err != nil {
		return err
	}
	lift, err := limitFiles(2 << 20)
	if err != nil {
		return err
	}
	large := []byte(strings.Repeat("v", 10_000))
	n := 0
	for ; err == nil; n++ {
		if n > 3000 {
			return errors.New("the limit was not met")
		}
		_, err = b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", n), Value: large})
	}
	n--
	if !errors.Is(err, storage.ErrNoSpace) || !strings.Contains(err.Error(), path) {
		return fmt.Errorf("Commit: %w, want ErrNoSpace naming the file", err)
	}
	if err := b.Ready(ctx); !errors.Is(err, storage.ErrNoSpace) {
		return fmt.Errorf("Ready: %w, want ErrNoSpace", err)
	}
	if err := whileFull(ctx, b, n, large); err != nil {
		return err
	}
	if err := withRoomAgain(ctx, b, lift, n, large); err != nil {
		return err
	}
	return b.Close()
}

func TestCopiesOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, out := child(t, "fillCopies", filepath.Join(dir, "test.db"))
	line, _ := out.ReadString('\n')
	if err := cmd.Wait(); err != nil || line != "done\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	if got := strings.Join(entries(t, dir), " "); got != "load.db snapshot test.db" {
		t.Errorf("the directory holds %q", got)
	}
	if err := bolt.Verify(filepath.Join(dir, "test.db")); err != nil {
		t.Error(err)
	}
	_, err := bolt.Open(filepath.Join(dir, "load.db"), bolt.Options{})
	wantError(t, err, "a copy into it was interrupted")
}

// fillCopies has no room for a snapshot, a restored file, a shrunk file and a loaded one.
func fillCopies(path string) error {
	ctx := context.Background()
	dir := filepath.Dir(path)
	b, err := bolt.Open(path, bolt.Options{Sync: bolt.NoSync, WindowChanges: 10})
	if err != nil {
		return err
	}
	value := []byte(strings.Repeat("v", 20_000))
	for i := range 600 { // of 12 MB, 2 MB stay
		c := storage.Commit{Key: fmt.Sprint("k", i%500), Expect: storage.AnyRevision, Value: value, Delete: i >= 500}
		if i >= 500 {
			c.Key = fmt.Sprint("k", i-500)
		}
		if _, err := b.Commit(ctx, c); err != nil {
			return err
		}
	}
	for i := 100; i < 400; i++ {
		if _, err := b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision, Delete: true}); err != nil {
			return err
		}
	}
	var content bytes.Buffer
	if _, err := b.Snapshot(ctx, &content); err != nil {
		return err
	}
	lift, err := limitFiles(1 << 20)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, "snapshot"))
	if err != nil {
		return err
	}
	if _, err := b.Snapshot(ctx, out); !errors.Is(err, storage.ErrNoSpace) {
		return fmt.Errorf("Snapshot: %w, want ErrNoSpace", err)
	}
	restored := filepath.Join(dir, "restored")
	if err := bolt.Restore(restored, &content, bolt.RestoreOptions{}); !errors.Is(err, storage.ErrNoSpace) || !strings.Contains(err.Error(), restored) {
		return fmt.Errorf("Restore: %w, want ErrNoSpace", err)
	}
	if err := lift(); err != nil {
		return err
	}
	if err := b.Close(); err != nil {
		return err
	}
	if lift, err = limitFiles(1 << 20); err != nil {
		return err
	}
	var shrunk error
	o := bolt.Options{Shrink: true, Hooks: bolt.Hooks{Shrunk: func(_, _ int64, err error) { shrunk = err }}}
	if b, err = bolt.Open(path, o); err != nil {
		return fmt.Errorf("Open that cannot shrink: %w", err)
	}
	if !errors.Is(shrunk, storage.ErrNoSpace) || !strings.Contains(shrunk.Error(), path) {
		return fmt.Errorf("Shrunk: %w, want ErrNoSpace", shrunk)
	}
	if res, err := b.Range(ctx, storage.Range{CountOnly: true}); err != nil || res.Count != 100 {
		return fmt.Errorf("%d keys, %w; want 100", res.Count, err)
	}
	loaded, err := bolt.Open(filepath.Join(dir, "load.db"), bolt.Options{})
	if err != nil {
		return err
	}
	err = loaded.Load(ctx, 1<<40, func(yield func(storage.KV, error) bool) {
		for i := 0; yield(storage.KV{Key: fmt.Sprintf("%09d", i), Value: value, Revision: int64(i + 2)}, nil); i++ {
		}
	})
	if !errors.Is(err, storage.ErrNoSpace) {
		return fmt.Errorf("Load: %w, want ErrNoSpace", err)
	}
	fmt.Println("done")
	return errors.Join(loaded.Close(), lift(), b.Close())
}

// fillJournal is fill with a journal. First the disk is full at once, so that a record cannot be written. Then it fills up
// while the journal has changes that the trees do not have: there is room for deletions, and for a process that opens the
// file of this one.
func fillJournal(path string) error {
	ctx := context.Background()
	b, err := bolt.Open(path, bolt.Options{}.WithJournal(128<<10, 0))
	if err != nil {
		return err
	}
	defer b.Close()
	small := []byte("v")
	for i := range 10 {
		if _, err := b.Commit(ctx, storage.Commit{Key: fmt.Sprint("small", i), Value: small}); err != nil {
			return err
		}
	}
	lift, err := limitFiles(8 << 10)
	if err != nil {
		return err
	}
	if b.Unflushed() == 0 {
		return errors.New("the commits are not in the journal")
	}
	for range 3 {
		if _, err := b.Commit(ctx, storage.Commit{Key: "none", Value: small}); !errors.Is(err, storage.ErrNoSpace) {
			return fmt.Errorf("a commit that cannot be written: %w, want ErrNoSpace", err)
		}
	}
	if err := lift(); err != nil {
		return err
	}
	for i := range 10 {
		if _, err := b.Commit(ctx, storage.Commit{Key: fmt.Sprint("small", i), Expect: storage.AnyRevision, Delete: true}); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		// A record that could not be written may be in the journal, and must not come back.
		left := path + ".left"
		if err := b.AtRest(func() error { return copyFile(left, path) }); err != nil {
			return err
		}
		if _, from, to, err := bolt.Journal(left); err != nil || from != to {
			return fmt.Errorf("after a failed write there is a journal from %d to %d, %w", from, to, err)
		}
	}
	if err := b.Close(); err != nil {
		return err
	}
	b, err = bolt.Open(path, bolt.Options{}.WithJournal(128<<10, 0))
	if err != nil {
		return err
	}
	defer b.Close()
	if lift, err = limitFiles(2 << 20); err != nil {
		return err
	}
	large, n, most := []byte(strings.Repeat("v", 10_000)), 0, 0
	for left := path + ".left"; err == nil; n++ {
		if _, err = b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", n), Value: large}); n > 1000 {
			return errors.New("the limit was not met")
		}
		if got := b.Unflushed(); err == nil && got > most || err != nil {
			most = max(most, got)
			if err := b.AtRest(func() error { return copyFile(left, path) }); err != nil {
				return err
			}
			if err := opensWith(ctx, left, n); err != nil {
				return fmt.Errorf("after %d commits, of which %d are in the journal: %w", n, got, err)
			}
		}
	}
	n--
	if !errors.Is(err, storage.ErrNoSpace) || !strings.Contains(err.Error(), path) {
		return fmt.Errorf("Commit: %w, want ErrNoSpace naming the file", err)
	}
	for misses := 0; misses < 10; { // the room that was kept for the journal is available now
		if _, err := b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", n), Value: large}); err == nil {
			n++
		} else {
			misses++
		}
	}
	if most < 5 {
		return fmt.Errorf("at most %d commits were in the journal alone", most)
	}
	if err := whileFull(ctx, b, n, large); err != nil {
		return err
	}
	if err := lift(); err != nil {
		return err
	}
	if _, err := b.Commit(ctx, storage.Commit{Key: "k1", Expect: storage.AnyRevision, Delete: true}); err != nil {
		return fmt.Errorf("a deletion with room again: %w", err)
	}
	if _, err := b.Commit(ctx, storage.Commit{Key: "k1", Value: large}); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	return withRoomAgain(ctx, b, lift, n, large)
}

// opensWith checks that a copy of a file that was not closed opens, with at least n keys.
func opensWith(ctx context.Context, path string, n int) error {
	defer os.Remove(path)
	b, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	res, err := b.Range(ctx, storage.Range{CountOnly: true})
	if err == nil && res.Count < int64(n) {
		err = fmt.Errorf("%d keys, want %d", res.Count, n)
	}
	return errors.Join(err, b.Close())
}
