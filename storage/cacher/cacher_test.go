package cacher_test

import (
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/keelson-dev/keelson/storage/memory"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

func TestInterface(t *testing.T) {
	for name, opts := range map[string]cacher.Options{
		"plain":   {Namespaced: true},
		"indexed": {Namespaced: true, IndexFields: []string{"spec.color"}, IndexLabels: []string{"app", "on"}},
	} {
		t.Run(name, func(t *testing.T) {
			storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
				b := memory.New(memory.Options{})
				t.Cleanup(func() { b.Close() })
				s, err := storage.NewStore(b, o)
				if err != nil {
					t.Fatal(err)
				}
				opts.ReadWait = o.ReadWait
				c, err := cacher.New(s, opts)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(c.Close)
				return c, b
			})
		})
	}
}
