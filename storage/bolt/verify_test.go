package bolt_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"go.etcd.io/bbolt"
)

// varied makes a store with values of all sizes, some with a TTL, deletions, compacted history and some retained history,
// cleanly closed.
func varied(t testing.TB, path string) {
	t.Helper()
	b, err := bolt.Open(path, bolt.Options{Sync: bolt.NoSync, WindowChanges: 60})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(4, 5))
	for i := range 250 {
		c := storage.Commit{Key: fmt.Sprintf("/registry/widgets/%03d", r.IntN(60)), Expect: storage.AnyRevision, Delete: i%6 == 5}
		if !c.Delete {
			c.TTL = time.Duration(i%3/2) * 1000 * time.Hour
			c.Value = []byte(fmt.Sprint(i, strings.Repeat(" value", r.IntN(30)*r.IntN(30)*r.IntN(2)+1)))
		}
		if i == 246 { // one value is stored in parts
			c.Key, c.Value = "/registry/widgets/large", bytes.Repeat([]byte("large"), 4000)
		}
		if _, err := b.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// dump returns a checksum of everything that a file shows, at each retained revision.
func dump(t testing.TB, path string) (string, error) {
	t.Helper()
	b, err := bolt.Open(path, bolt.Options{WindowChanges: 60})
	if err != nil {
		return "", err
	}
	defer b.Close()
	out := sha256.New()
	now, err := b.Range(t.Context(), storage.Range{})
	if err != nil {
		return "", err
	}
	for at := now.Revision; at > now.Revision-61; at-- {
		res, err := b.Range(t.Context(), storage.Range{At: at})
		switch {
		case errors.Is(err, storage.ErrCompacted):
			fmt.Fprintf(out, "%d is compacted\n", at)
		case err != nil:
			return "", err
		}
		fmt.Fprintln(out, res.Revision, res.Count)
		for _, kv := range res.KVs {
			fmt.Fprintf(out, "%q %q %d %v\n", kv.Key, kv.Value, kv.Revision, kv.Expiring)
		}
	}
	return fmt.Sprintf("%x", out.Sum(nil)), nil
}

func TestVerifyFindsNothingWrong(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	varied(t, path)
	before := readFile(t, path)
	if err := bolt.Verify(path); err != nil {
		t.Error(err)
	}
	unclean(t, path)
	if err := bolt.Verify(path); err != nil {
		t.Errorf("after a kill: %v", err)
	}
	writeFile(t, path, before)
	b := open(t, path, bolt.Options{})
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	wantError(t, bolt.Verify(path), path, "it is open already", "stop the other server")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(readFile(t, path), before) {
		t.Error("the file was changed")
	}
	wantError(t, bolt.Verify(dir), "it is a directory")
	wantError(t, bolt.Verify(filepath.Join(dir, "missing")), "no such file")
	writeFile(t, filepath.Join(dir, "empty"), nil)
	wantError(t, bolt.Verify(filepath.Join(dir, "empty")), "the file is empty")
}

// bbolt does not detect any of these edits.
func TestVerifyNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "source.db")
	varied(t, source)
	good := readFile(t, source)
	newest, err := bolt.FileRevision(source)
	if err != nil {
		t.Fatal(err)
	}
	bucket := func(name string, fn func(b *bbolt.Bucket) error) func(tx *bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return fn(tx.Bucket([]byte(name))) }
	}
	last := func(b *bbolt.Bucket) (k, v []byte) {
		k, v = b.Cursor().Last()
		return bytes.Clone(k), bytes.Clone(v)
	}
	first := func(b *bbolt.Bucket) (k, v []byte) {
		k, v = b.Cursor().First()
		return bytes.Clone(k), bytes.Clone(v)
	}
	for name, test := range map[string]struct {
		edit func(tx *bbolt.Tx) error
		want string
	}{
		"a change is gone": {bucket("log", func(b *bbolt.Bucket) error {
			k, _ := last(b)
			return b.Delete(k)
		}), fmt.Sprintf("the change of revision %d is missing", newest)},
		"an old value is gone": {bucket("log", func(b *bbolt.Bucket) error {
			k, _ := first(b)
			return b.Delete(k)
		}), "is missing"},
		"a version is gone": {bucket("index", func(b *bbolt.Bucket) error {
			k, _ := first(b)
			return b.Delete(k)
		}), "the index has"},
		"a value has changed": {bucket("log", func(b *bbolt.Bucket) error {
			k, v := first(b)
			v[len(v)-1] ^= 1
			return b.Put(k, v)
		}), "the checksum of the change of revision"},
		"a change under another revision": {bucket("log", func(b *bbolt.Bucket) error {
			_, v := last(b)
			return b.Put(binary.BigEndian.AppendUint64(nil, uint64(newest+1)), v)
		}), fmt.Sprintf("the checksum of the change of revision %d", newest+1)},
		"a version from nowhere": {bucket("index", func(b *bbolt.Bucket) error {
			return b.Put([]byte("key\x00\xff\xff\xff\xff\xff\xff\xff\x00"), []byte{0})
		}), `index: version 255 of key "key"`},
		"a version that is another's": {bucket("index", func(b *bbolt.Bucket) error {
			return b.Put(append([]byte("key\x00"), binary.BigEndian.AppendUint64(nil, ^uint64(newest))...), []byte{0})
		}), fmt.Sprintf(`index: version %d of key "key" is that of key`, newest)},
		"flags": {bucket("index", func(b *bbolt.Bucket) error {
			k, _ := first(b)
			return b.Put(k, []byte{2})
		}), "has flags 02"},
		"no version": {bucket("index", func(b *bbolt.Bucket) error { return b.Put([]byte("short"), nil) }), `index key "short"`},
		"a part is gone": {bucket("parts", func(b *bbolt.Bucket) error {
			k, _ := last(b)
			return b.Delete(k)
		}), "part 2 of the value of revision"},
		"a part has changed": {bucket("parts", func(b *bbolt.Bucket) error {
			k, v := first(b)
			v[7] ^= 1
			return b.Put(k, v)
		}), "the checksum of the value of revision"},
		"a part is shorter": {bucket("parts", func(b *bbolt.Bucket) error {
			k, v := first(b)
			return b.Put(k, v[1:])
		}), "has 8127 bytes, want 8128"},
		"a part of nothing": {bucket("parts", func(b *bbolt.Bucket) error {
			return b.Put([]byte("123456789012"), []byte("x"))
		}), "there are 4 parts of values, and the values in the log have 3"},
		"an expiry is gone": {bucket("expiry", func(b *bbolt.Bucket) error {
			k, _ := first(b)
			return b.Delete(k)
		}), "expiry: it does not have version"},
		"an expiry too many": {bucket("expiry", func(b *bbolt.Bucket) error {
			k, _ := first(b)
			k[15]++
			return b.Put(k, nil)
		}), "keys expire"},
		"an expiry at another time": {bucket("expiry", func(b *bbolt.Bucket) error {
			k, _ := last(b)
			if err := b.Delete(k); err != nil {
				return err
			}
			k[7]++
			return b.Put(k, nil)
		}), "expiry: it does not have version"},
		"an expiry that says more": {bucket("expiry", func(b *bbolt.Bucket) error {
			k, _ := first(b)
			return b.Put(k, []byte{1})
		}), "the file is damaged: expiry"},
		"the clock": {bucket("meta", func(b *bbolt.Bucket) error {
			v := bytes.Clone(b.Get([]byte("clock")))
			v[0] ^= 1
			return b.Put([]byte("clock"), v)
		}), "the checksum of the clock is wrong"},
		"a version that expires, and its change does not": {bucket("index", func(b *bbolt.Bucket) error {
			k, v := first(b)
			return b.Put(k, []byte{v[0] ^ 4})
		}), "in the log"},
		"no revision": {bucket("log", func(b *bbolt.Bucket) error {
			return b.Put([]byte("short"), []byte("x"))
		}), `log: "short" is no revision`},
		"meta": {bucket("meta", func(b *bbolt.Bucket) error {
			return b.Put([]byte("more"), []byte("x"))
		}), `meta has an unknown key "more"`},
		"a bucket": {func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("more"))
			return err
		}, `bucket "more" is unknown`},
		"a bucket within": {bucket("log", func(b *bbolt.Bucket) error {
			_, err := b.CreateBucket([]byte("12345678"))
			return err
		}), "flags 0x1"},
		"a change that follows another": {bolt.EditPrev(3), "says 3"},
		"revision":                      {bolt.EditState(func(s []int64) { s[0]++ }), "changes after revision"},
		"scrubbed":                      {bolt.EditState(func(s []int64) { s[2]-- }), "the sizes up to revision"},
		"total":                         {bolt.EditState(func(s []int64) { s[4]++ }), "the sizes of all changes are"},
		"behind":                        {bolt.EditState(func(s []int64) { s[0]-- }), fmt.Sprintf("revision %d lies outside", newest)},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			writeFile(t, path, good)
			edit(t, path, test.edit)
			wantError(t, bolt.Verify(path), path, "damaged", test.want, "restore it from a backup")
		})
	}
}

// A flipped bit anywhere is found, unless it is in unused space; nothing panics, and nothing loops for ever.
func TestBitsThatFlip(t *testing.T) {
	t.Parallel()
	source := filepath.Join(t.TempDir(), "source.db")
	varied(t, source)
	closed := readFile(t, source)
	want, err := dump(t, source)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, source, closed)
	unclean(t, source)
	killed := readFile(t, source)
	wantKilled, err := dump(t, source)
	if err != nil {
		t.Fatal(err)
	}
	perPage := 5
	if testing.Short() {
		perPage = 1
	}
	for name, file := range map[string]struct {
		content []byte
		want    string
	}{"closed": {closed, want}, "killed": {killed, wantKilled}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			r := rand.New(rand.NewPCG(6, 7))
			page := os.Getpagesize()
			pages := int(usedBytes(t, file.content)) / page
			found, harmless := 0, 0
			for p := range pages {
				for i := range perPage {
					damaged := bytes.Clone(file.content)
					at := p*page + r.IntN(page)
					if i%2 == 0 { // the pages with structure
						at = p*page + r.IntN(200)
					}
					damaged[at] ^= 1 << r.IntN(8)
					if i%5 == 4 { // and some others
						for range 8 {
							damaged[p*page+r.IntN(page)] = byte(r.Uint32())
						}
					}
					writeFile(t, path, damaged)
					if err := bolt.Verify(path); err != nil {
						found++
						continue
					}
					harmless++
					if got, err := dump(t, path); err != nil || got != file.want {
						t.Errorf("byte %d of page %d has changed, which Verify did not find: %v", at%page, p, err)
					}
				}
			}
			t.Logf("%d pages: %d damages found, %d do not matter", pages, found, harmless)
		})
	}
}

// FuzzVerify gives damaged files to every function that reads files.
func FuzzVerify(f *testing.F) {
	source := filepath.Join(f.TempDir(), "source.db")
	varied(f, source)
	good, err := os.ReadFile(source)
	if err != nil {
		f.Fatal(err)
	}
	want, err := dump(f, source)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 6 {
		f.Add(uint32(i*4096+8), uint64(1<<(8*i)), uint32(i*5000), byte(i))
	}
	f.Fuzz(func(t *testing.T, at uint32, bits uint64, other uint32, value byte) {
		damaged := bytes.Clone(good)
		for i := range 8 {
			damaged[(int(at)+i)%len(damaged)] ^= byte(bits >> (8 * i))
		}
		damaged[int(other)%len(damaged)] = value
		path := filepath.Join(t.TempDir(), "test.db")
		writeFile(t, path, damaged)
		if err := bolt.Verify(path); err != nil {
			return
		}
		if got, err := dump(t, path); err != nil || got != want {
			t.Errorf("Verify finds nothing, and the content differs: %v", err)
		}
	})
}

func TestVerifyOnline(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		o.WindowChanges = 200
		b := open(t, filepath.Join(t.TempDir(), "test.db"), o)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20 {
				putAll(t, b, 100, strings.Repeat("v", 3000))
			}
		}()
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
			}
			if err := b.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
