package embedded_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
	"github.com/keelson-dev/keelson/storage/storagetest"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// open opens a backend that is closed with the test.
func open(t testing.TB, o etcd.Options) *etcd.Backend {
	t.Helper()
	b, err := etcd.Open(bounded(t), o)
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

// tenants opens backends in one etcd, each with its own prefix: to each of them the store is empty.
func tenants(endpoints []string) func(t *testing.T) storage.Backend {
	var n atomic.Int64
	return func(t *testing.T) storage.Backend {
		return open(t, etcd.Options{Endpoints: endpoints, Prefix: fmt.Sprintf("/tenant%d", n.Add(1))})
	}
}

func interfaceOf(backend func(t *testing.T) storage.Backend) storagetest.OpenInterface {
	return func(t *testing.T, o storage.StoreOptions) (storage.Interface, storage.Backend) {
		b := backend(t)
		s, err := storage.NewStore(b, o)
		if err != nil {
			t.Fatal(err)
		}
		return s, b
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{})
	storagetest.Backend(t, tenants(s.Endpoints()))
}

func TestInterface(t *testing.T) {
	t.Parallel()
	s := start(t, embedded.Options{})
	storagetest.Interface(t, interfaceOf(tenants(s.Endpoints())))
}

func TestDurable(t *testing.T) {
	t.Parallel()
	storagetest.Durable(t, func(t *testing.T, dir string) storage.Backend {
		s := start(t, embedded.Options{Dir: dir, UnsafeNoFsync: true})
		return &alone{open(t, etcd.Options{Endpoints: s.Endpoints()}), s}
	})
}

// alone is a backend with its own etcd, which it closes.
type alone struct {
	*etcd.Backend
	server *embedded.Server
}

func (a *alone) Close() error {
	if err := a.Backend.Close(); err != nil {
		return err
	}
	return a.server.Close()
}

// smaller leaves out the subtests that take long and check nothing that TestConformance does not check.
func smaller(t *testing.T) {
	t.Helper()
	for _, topic := range []string{"/Concurrent/", "/History/", "/TTL/", "a_large_backlog"} {
		if strings.Contains(t.Name(), topic) {
			t.Skip("as in TestConformance")
		}
	}
}

// Without a prefix the backend has all keys of the etcd, so they have to be removed before each subtest.
func TestConformanceWithoutPrefix(t *testing.T) {
	if testing.Short() {
		t.Skip("as in TestConformance")
	}
	t.Parallel()
	s := start(t, embedded.Options{})
	c := rawOf(t, s)
	storagetest.Backend(t, func(t *testing.T) storage.Backend {
		smaller(t)
		if _, err := c.Delete(bounded(t), "\x00", clientv3.WithFromKey()); err != nil {
			t.Fatal(err)
		}
		return open(t, etcd.Options{Endpoints: s.Endpoints()})
	})
}
