package cacher_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// objectBytes is the size of the JSON of each object of the benchmarks: 1.8 KiB.
const objectBytes = 1843

// crowd has the objects of a benchmark: n of them in ten namespaces, each with one of 100 label sets, or with a label set of
// its own.
type crowd struct {
	n         int
	ownLabels bool
	colors    int // number of values of spec.color; 0: 100
}

func (c crowd) key(i int) string { return fmt.Sprintf("ns%d/k%06d", i*10/c.n, i) }

// gadget makes the i-th object.
func (c crowd) gadget(i int) *storagetest.Gadget {
	namespace, name, _ := strings.Cut(c.key(i), "/")
	colors := c.colors
	if colors == 0 {
		colors = 100
	}
	g := &storagetest.Gadget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels:      map[string]string{"app": fmt.Sprintf("app%02d", i%100), "tier": "web"},
			Annotations: map[string]string{"text": ""},
		},
		Spec: storagetest.GadgetSpec{Size: 1, Color: fmt.Sprintf("color%05d", i%colors)},
	}
	const rest = 215 // bytes of an object without own labels and without the text
	text := objectBytes - rest
	if c.ownLabels {
		index := fmt.Sprintf("%06d", i)
		g.Labels["index"] = index
		text -= len(`"index":"",`) + len(index)
	}
	g.Annotations["text"] = strings.Repeat("x", text)
	return g
}

var benchBackends = []string{"memory", "bolt"}

// openBackend opens an empty backend, or bolt's file in dir if there is one. bolt does not wait for the disk.
func openBackend(t testing.TB, name, dir string) storage.Backend {
	t.Helper()
	if name == "memory" {
		return memory.New(memory.Options{})
	}
	b, err := bolt.Open(filepath.Join(dir, "test.db"), bolt.Options{Sync: bolt.NoSync})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func benchStore(t testing.TB, b storage.Backend) *storage.Store {
	t.Helper()
	o, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.NewStore(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// loadInto fills an empty backend without using a store.
func (c crowd) loadInto(t testing.TB, b storage.Backend) {
	t.Helper()
	o, err := storagetest.GadgetOptions()
	if err != nil {
		t.Fatal(err)
	}
	err = b.(storage.Loader).Load(t.Context(), int64(c.n+2), func(yield func(storage.KV, error) bool) {
		for i := range c.n {
			body, err := o.Codec.Encode(c.gadget(i))
			kv := storage.KV{Key: o.Prefix + "/" + c.key(i), Value: body.Bytes(), Revision: int64(i + 2)}
			if !yield(kv, err) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// createIn creates the objects, several concurrently.
func (c crowd) createIn(t testing.TB, s storage.Interface) {
	t.Helper()
	const writers = 16
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := w; i < c.n; i += writers {
				if _, err := s.Create(t.Context(), c.key(i), c.gadget(i), storage.WriteOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// newCache returns a filled cache.
func newCache(t testing.TB, below storage.Interface, o cacher.Options) *cacher.Cacher {
	t.Helper()
	o.Namespaced, o.ReadWait = true, time.Minute
	c, err := cacher.New(below, o)
	if err != nil {
		t.Fatal(err)
	}
	fillCache(t, c)
	return c
}

// fillCache returns when the cache has everything that is stored.
func fillCache(t testing.TB, c *cacher.Cacher) {
	t.Helper()
	if _, err := c.List(t.Context(), storage.ListOptions{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	if !c.Stats().Filled {
		t.Fatalf("the cache is not filled: %v", c.Ready(t.Context()))
	}
}

// crowded calls run for each backend with a store that has the objects.
func crowded(b *testing.B, c crowd, run func(b *testing.B, s *storage.Store)) {
	for _, name := range benchBackends {
		b.Run(name, func(b *testing.B) {
			backend := openBackend(b, name, b.TempDir())
			b.Cleanup(func() { backend.Close() })
			c.loadInto(b, backend)
			run(b, benchStore(b, backend))
		})
	}
}

// resize changes the size of an object and nothing else.
func resize(ctx context.Context, s storage.Interface, key string) (storage.Record, error) {
	return s.Update(ctx, key, storage.WriteOptions{}, func(_ context.Context, obj runtime.Object, _ storage.Record) (storage.Outcome, error) {
		g := obj.(*storagetest.Gadget)
		g.Spec.Size = g.Spec.Size%9 + 1
		return storage.Outcome{Object: obj}, nil
	})
}
