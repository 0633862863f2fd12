package cacher_test

import (
	"path/filepath"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

// over makes a cache over a storage. The cache is closed with the test, before the storage below.
func over(t testing.TB, below storage.Interface, o cacher.Options) *cacher.Cacher {
	t.Helper()
	o.Namespaced = true
	c, err := cacher.New(below, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func storeOf(t testing.TB, b storage.Backend, o storage.StoreOptions) *storage.Store {
	t.Helper()
	s, err := storage.NewStore(b, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func inMemory(t testing.TB) storage.Backend {
	t.Helper()
	b := memory.New(memory.Options{})
	t.Cleanup(func() { b.Close() })
	return b
}

func openBolt(t testing.TB, path string, o bolt.Options) *bolt.Backend {
	t.Helper()
	b, err := bolt.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return b
}

func inBolt(t testing.TB) storage.Backend {
	t.Helper()
	return openBolt(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{Sync: bolt.NoSync})
}

// indexed makes a cache with indexes for the selections of the conformance tests.
func indexed(o storage.StoreOptions) cacher.Options {
	return cacher.Options{ReadWait: o.ReadWait, IndexFields: []string{"spec.color"}, IndexLabels: []string{"app", "on"}}
}

// TestInterface checks that a cache over a store passes the tests of a store, over every backend.
func TestInterface(t *testing.T) {
	t.Parallel()
	caches := map[string]func(testing.TB, storage.Interface, storage.StoreOptions) *cacher.Cacher{
		"without indexes": func(t testing.TB, s storage.Interface, o storage.StoreOptions) *cacher.Cacher {
			return over(t, s, cacher.Options{ReadWait: o.ReadWait})
		},
		"with indexes": func(t testing.TB, s storage.Interface, o storage.StoreOptions) *cacher.Cacher {
			return over(t, s, indexed(o))
		},
		"over a cache": func(t testing.TB, s storage.Interface, o storage.StoreOptions) *cacher.Cacher {
			return over(t, over(t, s, indexed(o)), indexed(o))
		},
	}
	for backend, open := range map[string]func(testing.TB) storage.Backend{"memory": inMemory, "bolt": inBolt} {
		for name, cache := range caches {
			t.Run(name+"/"+backend, func(t *testing.T) {
				t.Parallel()
				if testing.Short() && backend == "bolt" && name != "with indexes" {
					t.Skip("as in memory")
				}
				storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
					b := open(t)
					c := cache(t, storeOf(t, b, o), o)
					if name == "over a cache" {
						return c, nil // it records nothing else of an unreadable value
					}
					return c, b
				})
			})
		}
	}
}

// TestInterfaceOfAnother does this for an Interface that is no storage.Source, first without the cache.
func TestInterfaceOfAnother(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		storagetest.Interface(t, func(_ *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
			return NewShelf(o), nil
		})
	})
	t.Run("under a cache", func(t *testing.T) {
		t.Parallel()
		storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
			return over(t, NewShelf(o), indexed(o)), nil
		})
	})
}
