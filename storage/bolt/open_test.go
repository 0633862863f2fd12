package bolt_test

import (
	"bytes"
	"encoding/binary"
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

// hold keeps the file open until the process is killed or its parent ends.
func hold(path string) error {
	b, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Println("open")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

func TestASecondProcessIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	cmd, out := child(t, "hold", path)
	if line, err := out.ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	_, err := bolt.Open(path, bolt.Options{})
	wantError(t, err, path, "it is open already, in another process or in this one", "stop the other server, or use another file")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	put(t, open(t, path, bolt.Options{}), "k", "v")
}

func TestASecondBackendInOneProcessIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	b := open(t, path, bolt.Options{})
	_, err := bolt.At(path)(t.Context())
	wantError(t, err, path, "is open already")
	put(t, b, "k", "v")
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"text", func(t *testing.T, path string) { writeFile(t, path, []byte("hello\n")) }, "not a storage file"},
		{"long text", func(t *testing.T, path string) { writeFile(t, path, bytes.Repeat([]byte("hello\n"), 1e5)) }, "not a storage file"},
		{"zeros", func(t *testing.T, path string) { writeFile(t, path, make([]byte, 1<<20)) }, "not a storage file"},
		{"another program's bbolt", func(t *testing.T, path string) {
			edit(t, path, func(tx *bbolt.Tx) error {
				_, err := tx.CreateBucket([]byte("theirs"))
				return err
			})
		}, "not a storage file"},
		{"another program's bbolt with a bucket of our name", func(t *testing.T, path string) {
			edit(t, path, func(tx *bbolt.Tx) error {
				_, err := tx.CreateBucket([]byte("meta"))
				return err
			})
		}, "not a storage file"},
		{"a later version", func(t *testing.T, path string) {
			filled(t, path)
			edit(t, path, laterVersion)
		}, "format version 4, and this release knows versions 1 to 3"},
		{"a later version without what belongs to it", func(t *testing.T, path string) {
			filled(t, path)
			edit(t, path, version(2))
		}, "a bucket is missing"},
		{"an earlier version with what came later", func(t *testing.T, path string) {
			expiringFile(t, path)
			edit(t, path, version(1))
		}, `it has a bucket "expiry" and format version 1`},
		{"a damaged clock", func(t *testing.T, path string) {
			expiringFile(t, path)
			edit(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("clock"), make([]byte, 12)) })
		}, "the checksum of the clock is wrong"},
		{"a damaged list of what expires", func(t *testing.T, path string) {
			expiringFile(t, path)
			unclean(t, path)
			edit(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("expiry")).Put([]byte{0}, nil) })
		}, `expiry "\x00"`},
		{"no version", func(t *testing.T, path string) {
			filled(t, path)
			edit(t, path, func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Delete([]byte("version")) })
		}, "damaged"},
		{"a bucket is missing", func(t *testing.T, path string) {
			filled(t, path)
			edit(t, path, func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("log")) })
		}, "damaged"},
		{"truncated", func(t *testing.T, path string) { truncate(t, path, filled(t, path)/2) }, "truncated"},
		{"truncated to two pages", func(t *testing.T, path string) {
			filled(t, path)
			truncate(t, path, int64(2*os.Getpagesize()))
		}, "truncated"},
		{"truncated to less than a page", func(t *testing.T, path string) {
			filled(t, path)
			truncate(t, path, 100)
		}, "truncated"},
		{"truncated to a few bytes", func(t *testing.T, path string) {
			filled(t, path)
			truncate(t, path, 50)
		}, "not a storage file"},
		{"sqlite", func(t *testing.T, path string) {
			writeFile(t, path, append([]byte("SQLite format 3\x00\x10\x00\x01\x01"), make([]byte, 8172)...))
		}, "not a storage file"},
		{"an unfinished copy", func(t *testing.T, path string) {
			filled(t, path)
			edit(t, path, unfinished)
		}, "a copy into it was interrupted, and its content is incomplete: delete the file and copy again"},
		{"both meta pages damaged", func(t *testing.T, path string) {
			filled(t, path)
			garble(t, path, 0, int64(2*os.Getpagesize()))
		}, "not a storage file"},
		{"a damaged state", func(t *testing.T, path string) {
			filled(t, path)
			edit(t, path, func(tx *bbolt.Tx) error {
				state := bytes.Clone(tx.Bucket([]byte("meta")).Get([]byte("state")))
				state[7]++
				return tx.Bucket([]byte("meta")).Put([]byte("state"), state)
			})
		}, "the checksum of the state is wrong"},
		{"damaged pages", func(t *testing.T, path string) {
			size := filled(t, path)
			unclean(t, path)
			garble(t, path, int64(4*os.Getpagesize()), size/2)
		}, "damaged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "test.db")
			test.make(t, path)
			before, names, changed := readFile(t, path), entries(t, dir), modified(t, path)
			b, err := bolt.Open(path, bolt.Options{})
			if err == nil {
				b.Close()
			}
			wantError(t, err, path, test.want)
			if !bytes.Equal(readFile(t, path), before) {
				t.Error("the file was changed")
			}
			if got := modified(t, path); !got.Equal(changed) {
				t.Errorf("the file was written at %v", got)
			}
			if got := entries(t, dir); strings.Join(got, " ") != strings.Join(names, " ") {
				t.Errorf("the directory holds %q now, before %q", got, names)
			}
			// A refused file is not locked.
			if _, err := bolt.Open(path, bolt.Options{}); err == nil || strings.Contains(err.Error(), "another process") {
				t.Errorf("the second time: %v", err)
			}
		})
	}
}

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// A file that lost its end is refused, wherever it was cut and whether it was closed or not.
func TestTruncatedFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(t *testing.T, path string){
		"closed": func(*testing.T, string) {}, "killed": unclean,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			filled(t, path)
			stop(t, path)
			content := readFile(t, path)
			used := usedBytes(t, content)
			page := int64(os.Getpagesize())
			var sizes []int64
			for size := page; size < used; size += page {
				sizes = append(sizes, size)
			}
			sizes = append(sizes, 100, page-1, page+1, 2*page-1, 2*page+80, 3*page+1, used-1, used-page+17)
			for _, size := range sizes {
				writeFile(t, path, content[:size])
				_, err := bolt.Open(path, bolt.Options{})
				wantError(t, err, path, "the file is truncated", "restore it from a backup")
				wantError(t, bolt.Verify(path), path, "the file is truncated")
				if t.Failed() {
					t.Fatalf("with %d of %d bytes", size, used)
				}
			}
			writeFile(t, path, content[:used]) // the rest is not in use
			put(t, open(t, path, bolt.Options{}), "k", "v")
		})
	}
}

// usedBytes returns how much of a file is in use, according to its newer meta page.
func usedBytes(t *testing.T, content []byte) int64 {
	t.Helper()
	pages, txid := uint64(0), uint64(0)
	for i := range 2 {
		meta := content[i*os.Getpagesize()+16:]
		if id := binary.NativeEndian.Uint64(meta[48:]); id >= txid {
			pages, txid = binary.NativeEndian.Uint64(meta[40:]), id
		}
	}
	return int64(pages) * int64(os.Getpagesize())
}

func TestPlacesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	writeFile(t, file, []byte("x"))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), link); err != nil {
		t.Skip(err)
	}
	for path, want := range map[string]string{
		dir:                                   "it is a directory",
		filepath.Join(dir, "missing", "a.db"): "create the directory " + filepath.Join(dir, "missing"),
		filepath.Join(file, "a.db"):           "not a directory",
		link:                                  "symbolic link to a file that does not exist",
	} {
		_, err := bolt.Open(path, bolt.Options{})
		wantError(t, err, path, want)
	}
	if _, err := bolt.Open(filepath.Join(dir, "a.db"), bolt.Options{Window: -1}); err == nil {
		t.Error("a negative window is accepted")
	}
	if got := strings.Join(entries(t, dir), " "); got != "file link" {
		t.Errorf("the directory holds %q now", got)
	}
}

func TestPlacesWithoutPermission(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("everything is permitted to root")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	filled(t, path)
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	_, err := bolt.Open(path, bolt.Options{})
	wantError(t, err, path, "permission denied", "must be readable and writable")
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	_, err = bolt.Open(filepath.Join(dir, "b.db"), bolt.Options{})
	wantError(t, err, filepath.Join(dir, "b.db"), "permission denied", dir+" must be readable and writable")
}

func TestAnEmptyFileIsANewStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	writeFile(t, path, nil)
	put(t, open(t, path, bolt.Options{}), "k", "v")
}

func TestAHalfMadeFileIsMadeAnew(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	writeFile(t, path+".keelson-new", []byte("half"))
	put(t, open(t, path, bolt.Options{}), "k", "v")
	if got := strings.Join(entries(t, dir), " "); got != "test.db" {
		t.Errorf("the directory holds %q", got)
	}
}

func TestOnlyOneOfManyCreators(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	var all sync.WaitGroup
	opened := make(chan *bolt.Backend, 8)
	for range 8 {
		all.Go(func() {
			b, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				wantError(t, err, path, "another process")
				return
			}
			opened <- b
		})
	}
	all.Wait()
	close(opened)
	n := 0
	for b := range opened {
		n++
		put(t, b, "k", "v")
		b.Close()
	}
	if n != 1 {
		t.Errorf("%d have opened the file, want 1", n)
	}
	res, err := open(t, path, bolt.Options{}).Get(t.Context(), "k", 0)
	if err != nil || !res.Found {
		t.Errorf("Get = %+v, %v", res, err)
	}
}

// filled makes a store with some content, cleanly closed, and returns its size.
func filled(t *testing.T, path string) int64 {
	t.Helper()
	_ = os.Remove(path)
	b, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		put(t, b, fmt.Sprint("k", i), strings.Repeat("v", 30_000))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return int64(len(readFile(t, path)))
}

// unclean makes a store look as if it had not been closed.
func unclean(t *testing.T, path string) {
	t.Helper()
	b, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	put(t, b, "k", "v")
	content := readFile(t, path)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, content)
}

func edit(t *testing.T, path string, fn func(*bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(fn); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func garble(t *testing.T, path string, from, to int64) {
	t.Helper()
	content := readFile(t, path)
	for i := from; i < min(to, int64(len(content))); i++ {
		content[i] ^= byte(i*31 + 7)
	}
	writeFile(t, path, content)
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %q", texts)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not contain %q", err, text)
		}
	}
}

var _ storage.Opener = bolt.At("") // the type the server's options have
