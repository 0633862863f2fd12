//go:build unix

package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

func TestAFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	cmd, out := child(t, "fill", path)
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

// fill meets a limit of the file's size, which to a program is a full disk, has it lifted, and says how many keys
// there are in the end.
func fill(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	b, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	defer b.Close()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	limit := old
	limit.Cur = 2 << 20
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
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
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := b.Health(ctx); err != nil {
		return fmt.Errorf("Health with room again: %w", err)
	}
	for end := n + 20; n < end; n++ {
		if _, err := b.Commit(ctx, storage.Commit{Key: fmt.Sprint("k", n), Value: large}); err != nil {
			return fmt.Errorf("with room again: %w", err)
		}
	}
	fmt.Println(n)
	return nil
}

// whileFull checks that reads go on, and that many writers get ErrNoSpace, or ErrConflict where that is the answer.
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
