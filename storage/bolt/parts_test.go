package bolt_test

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// Large values are stored in parts. Readers see no difference, and no part is left after the values are removed.
func TestLargeValues(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]bolt.Sync{"always": bolt.SyncAlways, "interval": bolt.SyncInterval, "never": bolt.NoSync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			b := open(t, path, bolt.Options{Sync: mode})
			r := rand.New(rand.NewPCG(1, 2))
			values := map[int64][]byte{} // by revision
			start := revision(t, b)
			last := int64(0)
			sizes := []int{0, 1, bolt.MaxInline - 1, bolt.MaxInline, bolt.MaxInline + 1, 2*bolt.PartBytes - 1, 2 * bolt.PartBytes,
				2*bolt.PartBytes + 1, 3 * bolt.PartBytes, 200_000, 3 << 20, 10}
			for _, n := range sizes {
				value := make([]byte, n)
				for i := range value {
					value[i] = byte(r.Uint32())
				}
				res, err := b.Commit(t.Context(), storage.Commit{Key: "k", Expect: last, Value: bytes.Clone(value)})
				if err != nil {
					t.Fatal(err)
				}
				last = res.Revision
				values[last] = value
			}
			wantValues := func(b *bolt.Backend) {
				t.Helper()
				for revision, value := range values {
					res, err := b.Get(t.Context(), "k", revision)
					if err != nil || !bytes.Equal(res.KV.Value, value) {
						t.Errorf("Get at %d: %d bytes, %v; want %d", revision, len(res.KV.Value), err, len(value))
					}
					list, err := b.Range(t.Context(), storage.Range{At: revision})
					if err != nil || len(list.KVs) != 1 || !bytes.Equal(list.KVs[0].Value, value) {
						t.Errorf("Range at %d: %d values, %v", revision, len(list.KVs), err)
					}
				}
				wantHistory(t, b, start, values)
				res, err := b.Commit(t.Context(), storage.Commit{Key: "k", Value: []byte("no")})
				if !bytes.Equal(res.Current.Value, values[last]) {
					t.Errorf("a conflict shows %d bytes, %v", len(res.Current.Value), err)
				}
			}
			wantValues(b)
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := bolt.Verify(path); err != nil {
				t.Error(err)
			}
			b = open(t, path, bolt.Options{Sync: mode})
			wantValues(b)

			res, err := b.Commit(t.Context(), storage.Commit{Key: "k", Expect: last, Delete: true})
			if err == nil {
				err = b.Compact(t.Context(), res.Revision)
			}
			if err != nil {
				t.Fatal(err)
			}
			for tries := 0; parts(t, b) > 0; tries++ { // compacted values are removed later
				if tries == 10_000 {
					t.Fatalf("%d parts are left", parts(t, b))
				}
				time.Sleep(time.Millisecond)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if err := bolt.Verify(path); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantHistory follows the key from a revision and compares every change and its previous value.
func wantHistory(t *testing.T, b *bolt.Backend, from int64, values map[int64][]byte) {
	t.Helper()
	f, err := b.Watch(t.Context(), storage.WatchRange{From: from, Prev: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var before []byte
	for n := 0; n < len(values); {
		got, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got.Changes {
			if !bytes.Equal(c.Value, values[c.Revision]) || n > 0 && !bytes.Equal(c.Prev.Value, before) {
				t.Errorf("the change of revision %d has %d bytes, and %d before", c.Revision, len(c.Value), len(before))
			}
			before, n = c.Value, n+1
		}
	}
}

// parts returns the number of value parts in a file.
func parts(t *testing.T, b *bolt.Backend) int {
	t.Helper()
	n, err := b.Parts()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestLargeValuesAreLoaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	b := open(t, path, bolt.Options{})
	value := func(i int) []byte { return bytes.Repeat([]byte(fmt.Sprint(i)), i*7000) }
	const n = 20
	var all iter.Seq2[storage.KV, error] = func(yield func(storage.KV, error) bool) {
		for i := range n {
			if !yield(storage.KV{Key: fmt.Sprintf("k%02d", i), Value: value(i), Revision: int64(100 - i)}, nil) {
				return
			}
		}
	}
	if err := b.Load(t.Context(), 200, all); err != nil {
		t.Fatal(err)
	}
	res, err := b.Range(t.Context(), storage.Range{})
	if err != nil || len(res.KVs) != n {
		t.Fatalf("%d values, %v", len(res.KVs), err)
	}
	for i, kv := range res.KVs {
		if !bytes.Equal(kv.Value, value(i)) || kv.Revision != int64(100-i) {
			t.Errorf("%s has %d bytes at %d", kv.Key, len(kv.Value), kv.Revision)
		}
	}
	if err := b.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}
