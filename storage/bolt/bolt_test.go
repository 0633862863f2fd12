package bolt_test

import (
	"testing"

	"github.com/keelson-dev/keelson/storage/bolt"
)

// open opens a backend that is closed with the test.
func open(t testing.TB, path string, o bolt.Options) *bolt.Backend {
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
