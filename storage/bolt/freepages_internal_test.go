package bolt

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
)

// pagesAt is a file with a few pages at given places.
type pagesAt map[int64][]byte

func (p pagesAt) ReadAt(b []byte, at int64) (int, error) {
	for from, content := range p {
		if at >= from && at < from+int64(len(content)) {
			return copy(b, content[at-from:]), nil
		}
	}
	return 0, io.EOF
}

func TestFreePagesAreListed(t *testing.T) {
	const size = 4096
	for name, test := range map[string]struct {
		pages, used uint64
		every       uint64 // every so many pages one more is in use
	}{
		"none":        {pages: 6, used: 6},
		"one":         {pages: 6, used: 5},
		"few":         {pages: 1000, used: 10, every: 3},
		"no run":      {pages: 2000, used: 10, every: 2},
		"many":        {pages: 100_000, used: 10},
		"just few":    {pages: manyFree + 10 + 127, used: 10},
		"just many":   {pages: manyFree + 10 + 129, used: 10},
		"many a time": {pages: 400_000, used: 10, every: 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := &pageWalk{meta: pageMeta{pageSize: size, root: 3, freelist: noFreelist, pages: test.pages, txid: 7}}
			w.seen = make([]uint64, test.pages/64+1)
			for id := uint64(2); id < test.pages; id++ {
				if id < test.used || test.every > 0 && id%test.every == 0 {
					w.seen[id/64] |= 1 << (id % 64)
				}
			}
			raw := pageMeta{pageSize: size, root: 3, txid: 7}.encode(rawMeta(size, 3))
			list, m := w.freePages()
			again, err := parseMeta(m.encode(raw))
			if err != nil || again != m || m.txid != 8 || m.root != 3 {
				t.Fatalf("the meta page says %+v, %v, want %+v", again, err, m)
			}
			if m.pages > test.pages+uint64(len(list)/size) || len(list)%size != 0 {
				t.Errorf("%d pages became %d for a list of %d bytes", test.pages, m.pages, len(list))
			}
			w.seen = append(w.seen, make([]uint64, m.pages/64+1)...)
			w.meta, w.r = m, pagesAt{int64(m.freelist) * size: list}
			w.report = func(err error) error { return err }
			if err := w.freelist(); err != nil {
				t.Error(err)
			}
		})
	}
}

// rawMeta returns a meta page in which only the fields that encode keeps are set.
func rawMeta(size int, root uint64) []byte {
	b := make([]byte, pageHeader+metaSize)
	put := func(at int, n uint64, bytes int) {
		for i := range bytes {
			b[pageHeader+at+i] = byte(n >> (8 * i))
		}
	}
	put(0, bboltMagic, 4)
	put(4, bboltVersion, 4)
	put(8, uint64(size), 4)
	put(16, root, 8)
	return b
}

// counting counts the bytes that are read.
type counting struct {
	io.ReaderAt
	n atomic.Int64
}

func (c *counting) ReadAt(b []byte, at int64) (int, error) {
	c.n.Add(int64(len(b)))
	return c.ReaderAt.ReadAt(b, at)
}

// A file that was not closed gets a list of its free pages before bbolt opens it, without a read of the values in it.
func TestOpenReadsNoValues(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	b, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		c := storage.Commit{Key: fmt.Sprint("k", i%150), Expect: storage.AnyRevision, Value: make([]byte, 12_000)}
		if _, err := b.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(path)
	if err == nil {
		err = b.Close()
	}
	if err == nil {
		err = os.WriteFile(path, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := openDB(path, openOptions{readOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	w, read := &pageWalk{report: damaged, keys: true, helpers: make(chan struct{}, walkers)}, &counting{ReaderAt: f.file}
	err = f.View(func(tx *bbolt.Tx) error {
		if err := f.walk(tx, w); err != nil {
			return err
		}
		w.r = read
		w.helpers = make(chan struct{}, walkers)
		return w.walk()
	})
	if err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if n := read.n.Load(); n > int64(len(content))/2 || w.meta.freelist != noFreelist {
		t.Errorf("%d of %d bytes are read, and the list of free pages is at %d", n, len(content), w.meta.freelist)
	}
	journaled, err := check(path)
	if err != nil || !journaled {
		t.Fatal(journaled, err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m, damage, err := readMetas(file)
	if err != nil || damage != nil || m.freelist == noFreelist || m.root != w.meta.root || m.txid != w.meta.txid+1 {
		t.Errorf("the meta page says %+v (%v, %v), and said %+v", m, damage, err, w.meta)
	}
	if err := Verify(path); err != nil {
		t.Error(err)
	}
}
