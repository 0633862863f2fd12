// Package etcdtest starts an etcd for tests of programs that store their objects in one.
package etcdtest

import (
	"testing"

	"github.com/keelson-dev/keelson/storage/etcd/embedded"
)

// Start returns the endpoint of an etcd that ends with the test.
func Start(t *testing.T) string {
	t.Helper()
	member, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := member.Close(); err != nil {
			t.Error(err)
		}
	})
	return member.Endpoints()[0]
}
