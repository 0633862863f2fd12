package embedded_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Data that a kube-apiserver has stored is read unchanged.
func TestDataOfKubernetes(t *testing.T) {
	s := start(t, embedded.Options{})
	c := rawOf(t, s)
	const resource = "/registry/test.example.com/gadgets/"
	object := func(ns, name, color string) string {
		return fmt.Sprintf(`{"apiVersion":"test.example.com/v1","kind":"Gadget","metadata":{"name":%q,"namespace":%q,`+
			`"uid":"6b3a54e2-93a6-4e22-8d2b-7d0a0e7c2a10","creationTimestamp":"2026-01-02T03:04:05Z","generation":1},"spec":{"color":%q,"size":3}}`, name, ns, color) + "\n"
	}
	revisions := map[string]int64{}
	for key, value := range map[string]string{
		"default/one": object("default", "one", "red"), "kube-system/two": object("kube-system", "two", "blue"),
	} {
		revisions[key] = mustPut(t, c, resource+key, value)
	}
	mustPut(t, c, "/registry/test.example.com/gadgets2/x/y", "a neighbour")
	mustPut(t, c, "compact_rev_key", "1")
	mustPut(t, c, "/registry/pods/default/p", "k8s\x00\n\tv1\x12\x03Pod")

	for name, prefix := range map[string]string{"without prefix": "", "with prefix": "/registry"} {
		t.Run(name, func(t *testing.T) {
			b := open(t, etcd.Options{Endpoints: s.Endpoints(), Prefix: prefix})
			o, err := storagetest.GadgetOptions()
			if err != nil {
				t.Fatal(err)
			}
			o.Prefix = strings.TrimPrefix(o.Prefix, prefix)
			store, err := storage.NewStore(b, o)
			if err != nil {
				t.Fatal(err)
			}
			p, err := store.List(bounded(t), storage.ListOptions{})
			if err != nil || p.Count != 2 {
				t.Fatalf("List: %+v, %v", p, err)
			}
			for r := range p.Records {
				obj, err := store.Decode(r)
				if err != nil {
					t.Fatal(err)
				}
				if g := obj.(*storagetest.Gadget); g.Spec.Size != 3 || g.ResourceVersion != fmt.Sprint(revisions[r.Key]) || g.UID == "" {
					t.Errorf("%s is %+v", r.Key, g)
				}
			}
			all, err := b.Range(bounded(t), storage.Range{})
			if err != nil || all.Count != 4 || len(all.KVs) != 4 {
				t.Errorf("Range: %d keys, count %d, %v; want those under /registry alone", len(all.KVs), all.Count, err)
			}
			if got, err := b.Get(bounded(t), "compact_rev_key", 0); prefix == "" && (err == nil || got.Found) {
				t.Errorf("Get of compact_rev_key: %+v, %v", got, err)
			}
		})
	}
	t.Run("unreadable", func(t *testing.T) {
		b := open(t, etcd.Options{Endpoints: s.Endpoints()})
		o, err := storagetest.GadgetOptions()
		if err != nil {
			t.Fatal(err)
		}
		store, err := storage.NewStore(b, o)
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, c, resource+"default/three", "k8s\x00 is no gadget")
		_, err = store.List(bounded(t), storage.ListOptions{})
		var u *storage.UnreadableError
		if !errors.As(err, &u) || u.Key != "default/three" {
			t.Errorf("List: %v, want the key named", err)
		}
		if _, err := store.Get(bounded(t), "default/one", storage.Read{}); err != nil {
			t.Errorf("Get of a readable object: %v", err)
		}
	})
}

// compactions counts the calls of hooks.
type compactions struct {
	mu        sync.Mutex // guards revisions
	revisions []int64
	turns     atomic.Int64 // requests for the state of the turns
}

func (c *compactions) hooks(t *testing.T) etcd.Hooks {
	return etcd.Hooks{
		Compacted: func(revision int64, err error) {
			if err != nil {
				t.Errorf("compacting at %d: %v", revision, err)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.revisions = append(c.revisions, revision)
		},
		Requested: func(operation string, _ time.Duration, _ error) {
			if operation == "commit" {
				c.turns.Add(1)
			}
		},
	}
}

func (c *compactions) all() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.revisions)
}

// version returns how often compact_rev_key was raised, and its value.
func version(t *testing.T, c *clientv3.Client) (int64, string) {
	t.Helper()
	r, err := c.Get(bounded(t), "compact_rev_key")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Kvs) == 0 {
		return 0, ""
	}
	return r.Kvs[0].Version, string(r.Kvs[0].Value)
}

// until waits for a condition.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for ctx := bounded(t); !done(); time.Sleep(5 * time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func TestOneServerCompacts(t *testing.T) {
	t.Parallel()
	const interval = 100 * time.Millisecond
	s := start(t, embedded.Options{})
	c := rawOf(t, s)
	begun := time.Now()
	var done compactions
	var servers []*etcd.Backend
	for range 3 {
		servers = append(servers, open(t, etcd.Options{Endpoints: s.Endpoints(), CompactionInterval: interval, Hooks: done.hooks(t)}))
	}
	until(t, "there were 8 compactions", func() bool {
		mustPut(t, c, "k", "v")
		return len(done.all()) >= 8
	})
	for _, b := range servers {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	all, most := done.all(), int64(time.Since(begun)/interval)
	raised, value := version(t, c)
	if raised > most {
		t.Errorf("compact_rev_key was raised %d times in %d intervals", raised, most)
	}
	if n := int64(len(all)); n > raised || n < raised-int64(len(servers)) {
		t.Errorf("%d compactions, compact_rev_key was raised %d times", n, raised)
	}
	for i := 1; i < len(all); i++ {
		if all[i] <= all[i-1] {
			t.Errorf("compacted at %d after %d", all[i], all[i-1])
		}
	}
	// A server that is being closed may have raised the key, but not compacted yet.
	at, err := strconv.ParseInt(value, 10, 64)
	if last := all[len(all)-1]; err != nil || at < last || at != last && int64(len(all)) == raised {
		t.Errorf("compact_rev_key is %q, the last compaction was at %d", value, all[len(all)-1])
	}
	b := open(t, etcd.Options{Endpoints: s.Endpoints()})
	if _, err := b.Get(bounded(t), "k", all[len(all)-1]-1); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("Get below the last compaction: %v, want ErrCompacted", err)
	}
	if _, err := b.Get(bounded(t), "k", all[len(all)-1]); err != nil {
		t.Errorf("Get at the last compaction: %v", err)
	}
}

// A kube-apiserver on the same etcd takes turns with the same key.
func TestKubernetesCompacts(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{})
	c := rawOf(t, s)
	// foreign takes its turn: it raises the version if that is still the expected one, and returns the present one.
	foreign := func(seen int64) (now int64, raised bool) {
		r, err := c.Txn(bounded(t)).
			If(clientv3.Compare(clientv3.Version("compact_rev_key"), "=", seen)).
			Then(clientv3.OpPut("compact_rev_key", "1")).
			Else(clientv3.OpGet("compact_rev_key")).Commit()
		if err != nil {
			t.Fatal(err)
		}
		if r.Succeeded {
			return seen + 1, true
		}
		return r.Responses[0].GetResponseRange().Kvs[0].Version, false
	}
	var done compactions
	seen, _ := foreign(0)
	open(t, etcd.Options{Endpoints: s.Endpoints(), CompactionInterval: 300 * time.Millisecond, Hooks: done.hooks(t)})
	until(t, "the backend has had some turns", func() bool {
		seen, _ = foreign(seen)
		return done.turns.Load() >= 5
	})
	if n := len(done.all()); n > 0 {
		t.Errorf("%d compactions by the backend, although the other server was always first", n)
	}
	// When the other server stops, the backend continues.
	until(t, "the backend compacts", func() bool { return len(done.all()) > 0 })
	// When the other server is back, it finds that it was overtaken.
	if now, raised := foreign(seen); raised || now <= seen {
		t.Errorf("the version is %d, raised %v; the other server had seen %d", now, raised, seen)
	}
}
