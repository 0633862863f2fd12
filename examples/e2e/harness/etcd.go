package harness

import (
	"os"
	"testing"

	"github.com/keelson-dev/keelson/storage/etcd/embedded"
)

// StorageVariable is the environment variable for the storage of a hello whose Options do not specify one: "etcd" means an etcd
// for each test; "" and "file" mean the data file.
const StorageVariable = "KEELSON_E2E_STORAGE"

// StartEtcd starts an etcd with one member and returns its endpoint, with http://. The etcd ends with the test.
func StartEtcd(t testing.TB) string {
	t.Helper()
	srv, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Errorf("closing etcd: %v", err)
		}
	})
	return srv.Endpoints()[0]
}

// storage adds the storage of the environment variable to the options.
func (o Options) storage(t testing.TB) Options {
	t.Helper()
	switch where := os.Getenv(StorageVariable); {
	case where == "etcd" && o.Etcd == "" && o.Data == "":
		o.Etcd = StartEtcd(t)
	case where != "" && where != "etcd" && where != "file":
		t.Fatalf("%s is %q, want etcd or file", StorageVariable, where)
	}
	return o
}
