package bolt_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// fullLimit is the maximum size of the file of a "full" child; "" is the size of the disk.
const fullLimit = "KEELSON_BOLT_LIMIT"

// A full disk can be emptied from within. Deletions, compaction and updates that do not make their value larger continue,
// even if the process is killed at any time, and then there is room again. Nothing that was acknowledged is lost.
func TestAFullDiskIsLeft(t *testing.T) {
	t.Parallel()
	for _, mode := range []bolt.Sync{bolt.SyncAlways, bolt.SyncInterval, bolt.NoSync} {
		t.Run(fmt.Sprint("limit/", int(mode)), func(t *testing.T) {
			t.Parallel()
			leaveFullDisk(t, t.TempDir(), mode, strconv.Itoa(6<<20))
		})
		t.Run(fmt.Sprint("disk/", int(mode)), func(t *testing.T) {
			t.Parallel()
			leaveFullDisk(t, smallDisk(t, "16m"), mode, "")
		})
	}
}

// smallDisk mounts a disk of a size.
func smallDisk(t *testing.T, size string) string {
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no disk of %s can be mounted: %v", size, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func leaveFullDisk(t *testing.T, dir string, mode bolt.Sync, limit string) {
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	path := filepath.Join(dir, "test.db")
	model := map[string]string{} // the expected value of each key, from the child's output
	for round := range rounds {
		kills := mode != bolt.SyncInterval && round < rounds-1
		cmd, out := child(t, "full", path, childSync+"="+strconv.Itoa(int(mode)), fullLimit+"="+limit)
		pending := ""
		for lines := rand.IntN(3000); ; lines-- {
			line, err := out.ReadString('\n')
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			pending = applyLine(model, pending, strings.TrimSuffix(line, "\n"))
			if lines == 0 && kills {
				_ = cmd.Process.Kill()
			}
		}
		if err := cmd.Wait(); err != nil && !kills {
			t.Fatalf("round %d: the child: %v", round, err)
		} else if err != nil && !strings.Contains(err.Error(), "killed") {
			t.Fatalf("round %d: the child: %v", round, err)
		}
		if err := bolt.Verify(path); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		wantModel(t, path, model, pending)
	}
}

// applyLine updates the model from a line of the child: an action, and later its result. It returns the action in progress.
func applyLine(model map[string]string, pending, line string) string {
	key, state, _ := strings.Cut(pending, " ")
	switch line {
	case "ok":
		if model[key] = state; state == "" {
			delete(model, key)
		}
		return ""
	case "full":
		return ""
	}
	return line
}

// wantModel checks that the file has everything acknowledged, and that an action without a result has happened as a whole or
// not at all. It updates the model with what has happened.
func wantModel(t *testing.T, path string, model map[string]string, pending string) {
	t.Helper()
	b := open(t, path, bolt.Options{})
	res, err := b.Range(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if key, state, _ := strings.Cut(pending, " "); key != "" {
		if got, err := b.Get(t.Context(), key, 0); err != nil {
			t.Fatal(err)
		} else if got.Found && stateOf(got.KV.Value) == state {
			model[key] = state
		} else if !got.Found && state == "" {
			delete(model, key)
		}
	}
	for _, kv := range res.KVs {
		if state := model[kv.Key]; state != stateOf(kv.Value) {
			t.Fatalf("%s is %q, want %q", kv.Key, stateOf(kv.Value), state)
		}
	}
	if len(res.KVs) != len(model) {
		t.Fatalf("%d keys, want %d", len(res.KVs), len(model))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// stateful returns a value of a size that contains its number.
func stateful(n, size int) []byte {
	word := strconv.Itoa(n) + "."
	return []byte(strings.Repeat(word, size/len(word)+1))
}

// stateOf returns the number and the length of a stateful value, if it is one.
func stateOf(value []byte) string {
	word, _, _ := strings.Cut(string(value), ".")
	if n, err := strconv.Atoi(word); err != nil || string(stateful(n, len(value)-len(word)-1)) != string(value) {
		return "damaged"
	}
	return word + " " + strconv.Itoa(len(value))
}

// filler is the child of TestAFullDiskIsLeft.
type filler struct {
	b    *bolt.Backend
	r    *rand.Rand
	out  *bufio.Writer
	live map[string]int // size of the value
	n    int
}

// fillAndLeave fills the disk, empties the file, and fills it again, and prints what it does.
func fillAndLeave(path string) error {
	mode, err := strconv.Atoi(os.Getenv(childSync))
	if err != nil {
		return err
	}
	if text := os.Getenv(fullLimit); text != "" {
		limit, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return err
		}
		if _, err := limitFiles(limit); err != nil {
			return err
		}
	}
	o := bolt.Options{Sync: bolt.Sync(mode)}
	if o.Sync == bolt.SyncInterval {
		o.Interval = 10 * time.Millisecond
	}
	if os.Getenv(fullLimit) != "" {
		o = o.WithJournal(256<<10, 3)
	}
	b, err := bolt.Open(path, o)
	if err != nil {
		return err
	}
	f := &filler{
		b: b, r: rand.New(rand.NewPCG(rand.Uint64(), 1)), out: bufio.NewWriter(os.Stdout), live: map[string]int{},
		n: int(time.Now().UnixNano() >> 20), // values differ from those of the previous child
	}
	res, err := b.Range(context.Background(), storage.Range{})
	if err != nil {
		return err
	}
	for _, kv := range res.KVs {
		f.live[kv.Key] = len(kv.Value)
	}
	return errors.Join(f.run(), b.Close())
}

func (f *filler) run() error {
	first, err := f.fill()
	if err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	if err := f.keep(); err != nil {
		return fmt.Errorf("full, an update that does not grow: %w", err)
	}
	if err := f.empty(); err != nil {
		return fmt.Errorf("full, a deletion: %w", err)
	}
	end := time.Now().Add(5 * time.Minute)
	for again := 0; again < first/2; { // compaction makes room when history has become old
		if again, err = f.fill(); err != nil {
			return fmt.Errorf("fill again: %w", err)
		}
		if err := f.empty(); err != nil {
			return fmt.Errorf("empty again: %w", err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("an empty file takes %d bytes, and took %d before", again, first)
		}
	}
	for err := f.b.Ready(context.Background()); err != nil; err = f.b.Ready(context.Background()) {
		if time.Now().After(end) {
			return fmt.Errorf("Ready when empty: %w", err)
		}
	}
	return nil
}

// commit prints the action before it and the result after it.
func (f *filler) commit(key string, value []byte) error {
	c := storage.Commit{Key: key, Expect: storage.AnyRevision, Value: value, Delete: value == nil}
	intent := key
	if value != nil {
		intent += " " + stateOf(value)
	}
	fmt.Fprintln(f.out, intent)
	_ = f.out.Flush()
	_, err := f.b.Commit(context.Background(), c)
	switch {
	case errors.Is(err, storage.ErrNoSpace):
		fmt.Fprintln(f.out, "full")
	case err == nil:
		if f.live[key] = len(value); value == nil {
			delete(f.live, key)
		}
		fmt.Fprintln(f.out, "ok")
	}
	_ = f.out.Flush()
	return err
}

// fill writes until there was no room for ten values in a row, and returns the bytes of all values.
func (f *filler) fill() (size int, err error) {
	for misses := 0; misses < 10; f.n++ {
		n := 50 + f.r.IntN(2000)
		switch f.r.IntN(10) {
		case 0:
			n = f.r.IntN(300_000)
		case 1, 2, 3:
			n = f.r.IntN(16 << 10)
		}
		err := f.commit(fmt.Sprintf("/registry/widgets/default/%x", f.r.IntN(4000)), stateful(f.n, n))
		if misses++; err == nil {
			misses = 0
		} else if !errors.Is(err, storage.ErrNoSpace) {
			return 0, err
		}
	}
	for _, n := range f.live {
		size += n
	}
	return size, nil
}

// keep updates some values without making them larger.
func (f *filler) keep() error {
	left := 30
	for key, size := range f.live {
		if size > 2000 || size < 50 {
			continue
		}
		if left--; left < 0 {
			return nil
		}
		value := stateful(f.n, size)[:size]
		value = value[:strings.LastIndexByte(string(value), '.')+1]
		if err := f.commit(key, value); err != nil {
			return err
		}
		f.n++
	}
	return nil
}

// empty deletes everything and compacts the history.
func (f *filler) empty() error {
	for key := range f.live {
		if err := f.commit(key, nil); err != nil {
			return err
		}
	}
	now, _ := f.b.Known()
	if err := f.b.Compact(context.Background(), now); err != nil && !errors.Is(err, storage.ErrCompacted) {
		return fmt.Errorf("Compact: %w", err)
	}
	return nil
}

// A quota below the size of the disk bounds the file in every mode, and only Ready reports it.
func TestQuota(t *testing.T) {
	t.Parallel()
	for _, mode := range []bolt.Sync{bolt.SyncAlways, bolt.SyncInterval, bolt.NoSync} {
		t.Run(strconv.Itoa(int(mode)), func(t *testing.T) {
			t.Parallel()
			const quota = 4 << 20
			path := filepath.Join(t.TempDir(), "test.db")
			b := open(t, path, bolt.Options{Sync: mode, Quota: quota}.WithJournal(128<<10, 3))
			ctx, value, n, err := t.Context(), make([]byte, 10_000), 0, error(nil)
			for ; err == nil && n < 1000; n++ {
				_, err = b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", n), Value: value})
			}
			if n--; !errors.Is(err, storage.ErrNoSpace) {
				t.Fatalf("%d commits, %v", n, err)
			}
			update := storage.Commit{Key: "k1", Expect: storage.AnyRevision, Value: make([]byte, 10_001)}
			if _, err := b.Commit(ctx, update); !errors.Is(err, storage.ErrNoSpace) {
				t.Errorf("an update that grows: %v", err)
			}
			if update.Value = update.Value[1:]; err != nil {
				_, err = b.Commit(ctx, update)
			}
			if err != nil {
				t.Errorf("an update that does not grow: %v", err)
			}
			if err := b.Health(ctx); err != nil {
				t.Errorf("Health: %v", err)
			}
			if err := b.Ready(ctx); !errors.Is(err, storage.ErrNoSpace) || !strings.Contains(err.Error(), path) {
				t.Errorf("Ready: %v", err)
			}
			last := int64(0)
			for i := range n {
				res, err := b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", i), Expect: storage.AnyRevision, Delete: true})
				if last = res.Revision; err != nil {
					t.Fatalf("deletion %d of %d: %v", i, n, err)
				}
			}
			if err := b.Compact(ctx, last); err != nil && !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Compact: %v", err)
			}
			for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if err := b.Ready(ctx); err == nil {
					break
				} else if time.Now().After(end) {
					t.Fatal(err)
				}
			}
			put(t, b, "more", string(value))
			info, err := os.Stat(path)
			if err != nil || info.Size() > quota+1<<20 { // the file is longer than the part in use
				t.Errorf("the file has %d bytes, %v", info.Size(), err)
			}
			closed(t, b, path)
		})
	}
}

// The content of a journal can be written to the trees in steps of any size, and a process may be killed after each step.
func TestTheJournalIsSettledInSteps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, full, left := filepath.Join(dir, "test.db"), filepath.Join(dir, "full.db"), filepath.Join(dir, "left.db")
	b := open(t, path, bolt.Options{}.WithJournal(128<<10, 0))
	put(t, b, "a", "0")
	unflushed := 0
	for unflushed < 5 { // changes that came before a flush are not only in the journal
		putConcurrently(t, b, 20)
		err := b.AtRest(func() error {
			unflushed = b.Unflushed()
			return copyFile(full, path)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want, err := b.Range(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	for limit := 1; limit <= unflushed; limit++ {
		if err := copyFile(left, full); err != nil {
			t.Fatal(err)
		}
		if n, err := bolt.SettleSome(left, limit); err != nil || n != unflushed-limit {
			t.Fatalf("of %d changes in the journal %d were written, and %d are left, %v", unflushed, limit, n, err)
		}
		again := open(t, left, bolt.Options{})
		wantContent(t, again, want)
		closed(t, again, left)
	}
}

// putConcurrently makes n commits at once.
func putConcurrently(t *testing.T, b *bolt.Backend, n int) {
	t.Helper()
	done := make(chan error, n)
	for i := range n {
		go func() {
			value := []byte(strings.Repeat("v", i*100))
			_, err := b.Commit(t.Context(), storage.Commit{Key: fmt.Sprint("together", i), Expect: storage.AnyRevision, Value: value})
			done <- err
		}()
	}
	for range n {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}
