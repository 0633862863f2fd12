package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
)

// values yields n values of the given size in key order, with revisions in random order.
func values(n, size int) (kvs iter.Seq2[storage.KV, error], last int64) {
	value := []byte(strings.Repeat("v", size))
	order := rand.New(rand.NewPCG(8, 9)).Perm(n)
	return func(yield func(storage.KV, error) bool) {
		for i, r := range order {
			if !yield(storage.KV{Key: fmt.Sprintf("/registry/widgets/%07d", i), Value: value, Revision: int64(3*r + 7)}, nil) {
				return
			}
		}
	}, int64(3*n + 10)
}

func TestLoadKeepsRevisions(t *testing.T) {
	t.Parallel()
	everyMode(t, func(t *testing.T, o bolt.Options) {
		path := filepath.Join(t.TempDir(), "test.db")
		b := open(t, path, o)
		kvs, last := values(10_000, 900) // several transactions
		if err := b.Load(t.Context(), last, kvs); err != nil {
			t.Fatal(err)
		}
		var want storage.RangeResult
		for kv := range kvs {
			want.KVs = append(want.KVs, kv)
		}
		check := func() {
			t.Helper()
			wantContent(t, b, want)
			if got := revision(t, b); got != last {
				t.Errorf("the revision is %d, want %d", got, last)
			}
			if err := b.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := b.Get(t.Context(), "k", last-1); !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Get below: %v, want ErrCompacted", err)
			}
			if _, err := b.Watch(t.Context(), storage.WatchRange{From: last - 1}); !errors.Is(err, storage.ErrCompacted) {
				t.Errorf("Watch from below: %v, want ErrCompacted", err)
			}
		}
		check()
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := bolt.Verify(path); err != nil {
			t.Error(err)
		}
		b = open(t, path, o)
		check()
		feed := watch(t, b, storage.WatchRange{From: last, Prev: true})
		first := want.KVs[0]
		res, err := b.Commit(t.Context(), storage.Commit{Key: first.Key, Expect: first.Revision, Value: []byte("new")})
		if err != nil || res.Revision != last+1 {
			t.Errorf("Commit = %+v, %v, want revision %d", res, err, last+1)
		}
		wantChanges(t, feed, fmt.Sprintf("%s=new@%d was %s@%d", first.Key, last+1, first.Value, first.Revision))
		if err := b.Load(t.Context(), last+10, kvs); !errors.Is(err, storage.ErrNotEmpty) {
			t.Errorf("Load: %v, want ErrNotEmpty", err)
		}
		put(t, b, "k", "v")
	})
}

func TestLoadOfNothing(t *testing.T) {
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
	if err := b.Load(t.Context(), 500, func(func(storage.KV, error) bool) {}); err != nil {
		t.Fatal(err)
	}
	if got := put(t, b, "k", "v"); got != 501 {
		t.Errorf("revision %d, want 501", got)
	}
}

func TestLoadNeedsAStoreThatWasNeverWritten(t *testing.T) {
	everyMode(t, func(t *testing.T, o bolt.Options) {
		b := open(t, filepath.Join(t.TempDir(), "test.db"), o)
		put(t, b, "k", "v")
		now := del(t, b, "k")
		kvs, last := values(10, 10)
		if err := b.Load(t.Context(), last, kvs); !errors.Is(err, storage.ErrNotEmpty) {
			t.Errorf("Load: %v, want ErrNotEmpty", err)
		}
		if got := put(t, b, "k", "v"); got != now+1 {
			t.Errorf("revision %d after %d: Load has changed something", got, now)
		}
	})
}

func TestLoadsThatFail(t *testing.T) {
	source := errors.New("the source is gone")
	kv := func(key string, revision int64) storage.KV {
		return storage.KV{Key: key, Revision: revision, Value: []byte("v")}
	}
	canceled, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, test := range map[string]struct {
		kvs  []storage.KV
		err  error // after them
		want string
	}{
		"order":         {kvs: []storage.KV{kv("b", 2), kv("a", 3)}, want: `key "a" comes after "b"`},
		"twice":         {kvs: []storage.KV{kv("a", 2), kv("a", 3)}, want: `key "a" comes after "a"`},
		"empty key":     {kvs: []storage.KV{kv("", 2)}, want: "the key is empty"},
		"NUL":           {kvs: []storage.KV{kv("a\x00", 2)}, want: "NUL"},
		"too new":       {kvs: []storage.KV{kv("a", 100)}, want: "from 1 to the store's, 99"},
		"no revision":   {kvs: []storage.KV{kv("a", 0)}, want: "from 1 to the store's, 99"},
		"one revision":  {kvs: []storage.KV{kv("a", 5), kv("b", 4), kv("c", 5)}, want: `keys "a" and "c" are both at revision 5`},
		"TTL":           {kvs: []storage.KV{{Key: "a", Revision: 2, Expiring: true}}, want: `key "a" has a TTL`},
		"source":        {kvs: []storage.KV{kv("a", 2)}, err: source, want: source.Error()},
		"context ended": {kvs: []storage.KV{kv("a", 2), kv("b", 3)}, want: context.Canceled.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			b, err := bolt.Open(path, bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if name == "context ended" {
				ctx = canceled
			}
			err = b.Load(ctx, 99, func(yield func(storage.KV, error) bool) {
				for _, kv := range test.kvs {
					if name == "context ended" {
						cancel()
					}
					if !yield(kv, nil) {
						return
					}
				}
				if test.err != nil {
					yield(storage.KV{}, test.err)
				}
			})
			wantError(t, err, path, test.want, "delete the file and copy again")
			_, err = b.Commit(t.Context(), create("k", "v"))
			wantError(t, err, "the content is incomplete")
			wantError(t, b.Health(t.Context()), "the content is incomplete")
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			_, err = bolt.Open(path, bolt.Options{})
			wantError(t, err, path, "a copy into it was interrupted", "delete the file and copy again")
		})
	}
	b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
	wantError(t, b.Load(t.Context(), 0, nil), "revision 0 is below 1")
	wantError(t, b.Load(t.Context(), 1<<62+1, nil), "revision 4611686018427387905 is above 4611686018427387904")
	put(t, b, "k", "v")
}
