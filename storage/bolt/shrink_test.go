package bolt_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// hollow fills a file and deletes most of it, without a history.
func hollow(b *bolt.Backend, round int) error {
	ctx := context.Background()
	last := int64(0)
	for i := range 300 {
		c := storage.Commit{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision, Value: []byte(strings.Repeat(fmt.Sprint(round, " "), 5000))}
		if _, err := b.Commit(ctx, c); err != nil {
			return err
		}
	}
	for i := range 290 {
		res, err := b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision, Delete: true})
		if err != nil {
			return err
		}
		last = res.Revision
	}
	return b.Compact(ctx, last)
}

// hollowed makes a closed file of which most is free.
func hollowed(t *testing.T, path string) {
	t.Helper()
	tidied := make(chan int64, 1000)
	b, err := bolt.Open(path, bolt.Options{Sync: bolt.NoSync, Hooks: bolt.Hooks{Compacted: func(r int64, _ int) { tidied <- r }}})
	if err != nil {
		t.Fatal(err)
	}
	if err := hollow(b, 1); err != nil {
		t.Fatal(err)
	}
	for now := revision(t, b); <-tidied < now; {
	}
	put(t, b, "last", "v")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestShrink(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(t *testing.T, path string){"closed": func(*testing.T, string) {}, "killed": unclean} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "test.db")
			hollowed(t, path)
			stop(t, path)
			if err := os.Chmod(path, 0o640); err != nil {
				t.Fatal(err)
			}
			writeFile(t, path+".keelson-shrink", []byte("left over"))
			link := filepath.Join(dir, "link.db")
			if err := os.Symlink(path, link); err != nil {
				t.Fatal(err)
			}
			b := open(t, path, bolt.Options{}) // without the option only leftovers are removed
			want, err := b.Range(t.Context(), storage.Range{})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			was := int64(len(readFile(t, path)))
			var before, after int64
			o := bolt.Options{Shrink: true, Hooks: bolt.Hooks{Shrunk: func(b, a int64, err error) {
				if before, after = b, a; err != nil {
					t.Error(err)
				}
			}}}
			b = open(t, link, o)
			if before != was || after >= before/5 {
				t.Errorf("the hook says %d bytes before and %d after, want %d and less than a fifth", before, after, was)
			}
			wantContent(t, b, want)
			if err := b.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			next := put(t, b, "more", "v")
			if next != want.Revision+1 {
				t.Errorf("revision %d after %d", next, want.Revision)
			}
			wantGet(t, b, "more", want.Revision+1, "v", next)
			if _, err := bolt.Open(path, bolt.Options{}); err == nil {
				t.Error("the shrunk file is not locked")
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := bolt.Verify(path); err != nil {
				t.Error(err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Size() >= before/4 || info.Mode().Perm() != 0o640 {
				t.Errorf("%v, %v", info, err)
			}
			if got := strings.Join(entries(t, dir), " "); got != "link.db test.db" {
				t.Errorf("the directory holds %q", got)
			}
			if to, err := os.Readlink(link); err != nil || to != path {
				t.Errorf("the link leads to %q, %v", to, err)
			}
			before = 0
			put(t, open(t, path, o), "k", "v")
			if before != 0 {
				t.Error("a small file was shrunk again")
			}
		})
	}
}

// The copy keeps the reservation of SyncInterval.
func TestShrinkKeepsTheGap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	hollowed(t, path)
	b, crash := opened(t, path, bolt.Options{Sync: bolt.SyncInterval, Interval: time.Hour})
	put(t, b, "a", "1")
	flush(t, b)
	lost := put(t, b, "a", "2")
	left := crash()
	shrunk := false
	again := open(t, left, bolt.Options{Shrink: true, Hooks: bolt.Hooks{Shrunk: func(_, _ int64, err error) { shrunk = err == nil }}})
	if got := revision(t, again); !shrunk || got <= lost {
		t.Errorf("opened at revision %d (shrunk: %v), %d was shown", got, shrunk, lost)
	}
}

// A process that waits for the lock of a file that is replaced meanwhile does not use the old file.
func TestShrinkLocksOthersOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	hollowed(t, path)
	opened := make(chan *bolt.Backend, 8)
	for range cap(opened) {
		go func() {
			b, err := bolt.Open(path, bolt.Options{Shrink: true})
			if err != nil {
				wantError(t, err, path, "another process")
			}
			opened <- b
		}()
	}
	n := 0
	for range cap(opened) {
		if b := <-opened; b != nil {
			n++
			put(t, b, "mine", "v")
			defer b.Close()
		}
	}
	if n != 1 {
		t.Fatalf("%d have the file open, want 1", n)
	}
}

// shrinkForEver makes a file hollow and shrinks it, again and again, and prints which round is complete.
func shrinkForEver(path string) error {
	for round := 0; ; round++ {
		tidied := make(chan struct{}, 1000)
		b, err := bolt.Open(path, bolt.Options{Sync: bolt.NoSync, Shrink: true, Hooks: bolt.Hooks{
			Compacted: func(int64, int) { tidied <- struct{}{} },
			Shrunk: func(_, _ int64, err error) {
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
			},
		}})
		if err != nil {
			return err
		}
		c := storage.Commit{Key: "round", Expect: storage.AnyRevision, Value: []byte(fmt.Sprint(round))}
		if _, err := b.Commit(context.Background(), c); err != nil {
			return err
		}
		if err := hollow(b, round); err != nil {
			return err
		}
		<-tidied
		if err := b.Close(); err != nil {
			return err
		}
		fmt.Println(round)
	}
}

func TestKillDuringShrink(t *testing.T) {
	t.Parallel()
	rounds := 15
	if testing.Short() {
		rounds = 4
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	last := int64(0)
	for range rounds {
		cmd, out := child(t, "shrink", path)
		if _, err := out.ReadString('\n'); err != nil {
			t.Fatal("the child has not finished a round")
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		if err := bolt.Verify(path); err != nil {
			t.Fatal(err)
		}
		b := open(t, path, bolt.Options{Sync: bolt.NoSync})
		now := revision(t, b)
		if now <= last {
			t.Errorf("the revision is %d, and was %d", now, last)
		}
		last = put(t, b, "k", "v")
		if res := mustGet(t, b, "round", 0); !res.Found {
			t.Error("the content is lost")
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(entries(t, dir), " "); got != "test.db" {
			t.Fatalf("the directory holds %q", got)
		}
	}
}

func TestLoadIsInterruptedByAKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	cmd, out := child(t, "load", path)
	if line, err := out.ReadString('\n'); err != nil || line != "loading\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	before := readFile(t, path)
	_, err := bolt.Open(path, bolt.Options{})
	wantError(t, err, path, "a copy into it was interrupted", "delete the file and copy again")
	wantError(t, bolt.Verify(path), path, "a copy into it was interrupted")
	if !bytes.Equal(readFile(t, path), before) {
		t.Error("the file was changed")
	}
	if got := strings.Join(entries(t, dir), " "); got != "test.db" {
		t.Errorf("the directory holds %q", got)
	}
}

// loadForEver loads values and never comes to an end.
func loadForEver(path string) error {
	b, err := bolt.Open(path, bolt.Options{Sync: bolt.NoSync})
	if err != nil {
		return err
	}
	return b.Load(context.Background(), 1<<40, func(yield func(storage.KV, error) bool) {
		for i := 0; ; i++ {
			if i == 100_000 {
				fmt.Println("loading")
			}
			if !yield(storage.KV{Key: fmt.Sprintf("k%010d", i), Value: []byte("v"), Revision: int64(i%1000*1_000_000 + i + 2)}, nil) {
				return
			}
		}
	})
}
