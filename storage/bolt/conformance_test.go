package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Backend(t, func(t *testing.T) storage.Backend {
		return open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
	})
}

func TestDurable(t *testing.T) {
	storagetest.Durable(t, func(t *testing.T, dir string) storage.Backend {
		return open(t, filepath.Join(dir, "test.db"), bolt.Options{})
	})
}

func TestInterface(t *testing.T) {
	storagetest.Interface(t, func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
		b := open(t, filepath.Join(t.TempDir(), "test.db"), bolt.Options{})
		s, err := storage.NewStore(b, o)
		if err != nil {
			t.Fatal(err)
		}
		return s, b
	})
}
