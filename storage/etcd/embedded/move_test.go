package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// stores has the stores that storagetest.Kill kills: an etcd in the killed process, with its disk.
func stores() map[string]storagetest.Killed {
	return map[string]storagetest.Killed{"etcd": {Open: func(dir string) (storage.Backend, error) {
		ctx, cancel := context.WithTimeout(context.Background(), waitTime)
		defer cancel()
		s, err := embedded.Start(ctx, embedded.Options{Dir: dir})
		if err != nil {
			return nil, err
		}
		b, err := etcd.Open(ctx, etcd.Options{Endpoints: s.Endpoints()})
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return &alone{b, s}, nil
	}}}
}

func TestKill(t *testing.T) {
	t.Parallel()
	storagetest.Kill(t, stores(), "etcd")
}

// A program moves from every backend to etcd, and back.
func TestCopy(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) storage.Backend{
		"memory": func(*testing.T) storage.Backend { return memory.New(memory.Options{}) },
		"bolt": func(t *testing.T) storage.Backend {
			b, err := bolt.Open(filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, embedded.Options{})
			there := tenants(s.Endpoints())
			src, dst, back := closing(t, open(t)), there(t), closing(t, open(t))
			for i := range 300 {
				mustCommit(t, src, storage.Commit{Key: fmt.Sprintf("k%03d", i%250), Expect: storage.AnyRevision, Value: fmt.Append(nil, i)})
			}
			old := revision(t, src)
			if _, err := storage.Copy(bounded(t), dst, src, storage.CopyOptions{MaxEmptyCommits: 10}); !asRaise(err) {
				t.Errorf("with too few empty commits: %v, want a RaiseError", err)
			}
			done, err := storage.Copy(bounded(t), dst, src, storage.CopyOptions{})
			if err != nil || done.Values != 250 || done.Revision != old {
				t.Fatalf("to etcd: %+v, %v", done, err)
			}
			if now := revision(t, dst); now <= old {
				t.Errorf("etcd is at revision %d, the source was at %d", now, old)
			}
			for _, at := range []int64{1, old} {
				if _, err := dst.Get(bounded(t), "k001", at); !errors.Is(err, storage.ErrCompacted) {
					t.Errorf("Get at revision %d of the source: %v, want ErrCompacted", at, err)
				}
			}
			sameValues(t, dst, src)
			mustCommit(t, dst, expiring("event", time.Hour))
			done, err = storage.Copy(bounded(t), back, dst, storage.CopyOptions{})
			if err != nil || done.Values != 250 || done.Expiring != 1 || done.Revision != revision(t, dst) {
				t.Fatalf("from etcd: %+v, %v", done, err)
			}
			sameValues(t, back, src)
			if got, want := get(t, back, "k001"), get(t, dst, "k001"); got.Revision != want.Revision {
				t.Errorf("the value has revision %d, in etcd %d", got.Revision, want.Revision)
			}
			if _, err := storage.Copy(bounded(t), dst, src, storage.CopyOptions{}); !errors.Is(err, storage.ErrNotEmpty) {
				t.Errorf("into one that is in use: %v, want ErrNotEmpty", err)
			}
		})
	}
}

func closing(t *testing.T, b storage.Backend) storage.Backend {
	t.Helper()
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

func asRaise(err error) bool {
	var r *storage.RaiseError
	return errors.As(err, &r) && r.Needed > r.Limit && r.Limit == 10
}

func get(t *testing.T, b storage.Backend, key string) storage.KV {
	t.Helper()
	got, err := b.Get(bounded(t), key, 0)
	if err != nil || !got.Found {
		t.Fatalf("Get(%q): %+v, %v", key, got, err)
	}
	return got.KV
}

func sameValues(t *testing.T, a, b storage.Backend) {
	t.Helper()
	x, err := a.Range(bounded(t), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.Range(bounded(t), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if len(x.KVs) != len(y.KVs) {
		t.Fatalf("%d values and %d", len(x.KVs), len(y.KVs))
	}
	for i, kv := range x.KVs {
		if kv.Key != y.KVs[i].Key || string(kv.Value) != string(y.KVs[i].Value) {
			t.Errorf("%q is %q and %q is %q", kv.Key, kv.Value, y.KVs[i].Key, y.KVs[i].Value)
		}
	}
}
