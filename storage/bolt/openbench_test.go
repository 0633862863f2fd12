package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// openMiB is the amount of data in the files of BenchmarkOpen, in MiB; openDir is their directory.
const (
	openMiB = "KEELSON_OPEN_MIB"
	openDir = "KEELSON_OPEN_DIR"
)

// BenchmarkOpen opens a file with 64 MiB of data, or KEELSON_OPEN_MIB. The file was closed, or its process was killed while
// it had a journal. "cold" means that no part of the file is in the system's memory (on Linux). Before each run another
// process updates objects, so that there are free pages.
func BenchmarkOpen(b *testing.B) {
	mib := 64
	if s := os.Getenv(openMiB); s != "" {
		var err error
		if mib, err = strconv.Atoi(s); err != nil {
			b.Fatalf("%s: %v", openMiB, err)
		}
	}
	for _, size := range []int{1 << 10, 10 << 10} {
		b.Run(fmt.Sprint("value=", size), func(b *testing.B) {
			dir := os.Getenv(openDir)
			if dir == "" {
				dir = b.TempDir()
			}
			path := filepath.Join(dir, fmt.Sprint("open-", mib, "-", size, ".db"))
			if _, err := os.Stat(path); err != nil {
				loadFor(b, path, mib<<20/size, size)
			}
			for _, end := range []string{"closed", "killed"} {
				for _, warmth := range []string{"warm", "cold"} {
					b.Run(end+"/"+warmth, func(b *testing.B) {
						for range b.N {
							b.StopTimer()
							leave(b, path, size, end)
							if err := warmed(path, warmth == "cold"); err != nil {
								b.Skip(err)
							}
							b.StartTimer()
							s, err := bolt.Open(path, bolt.Options{})
							if err != nil {
								b.Fatal(err)
							}
							b.StopTimer()
							if err := s.Close(); err != nil {
								b.Fatal(err)
							}
							b.StartTimer()
						}
					})
				}
			}
		})
	}
}

func loadFor(b *testing.B, path string, n, size int) {
	b.Helper()
	s, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		b.Fatal(err)
	}
	kvs, last := values(n, size)
	if err := errors.Join(s.Load(b.Context(), last, kvs), s.Close()); err != nil {
		b.Fatal(err)
	}
}

// leave makes another process update objects of a size in the file at path, and end in the given way.
func leave(b *testing.B, path string, size int, end string) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"=leave", childFile+"="+path, fmt.Sprint(childSync, "=", size), childEnd+"="+end)
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
}

// childEnd determines how a process leaves a file: closed or killed.
const childEnd = "KEELSON_BOLT_END"

func leaveFile(path string) error {
	size, err := strconv.Atoi(os.Getenv(childSync))
	if err != nil {
		return err
	}
	b, err := bolt.Open(path, bolt.Options{WindowChanges: 100})
	if err != nil {
		return err
	}
	const writers, updates = 16, 100
	errs := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for range updates {
				c := storage.Commit{
					Key: fmt.Sprintf("/registry/widgets/%07d", rand.IntN(1000)), Expect: storage.AnyRevision, Value: make([]byte, size),
				}
				if _, errs[w] = b.Commit(context.Background(), c); errs[w] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	if os.Getenv(childEnd) == "closed" {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}
