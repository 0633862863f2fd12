package harness

import (
	"os"
	"testing"

	"github.com/keelson-dev/keelson/storage/etcd/embedded"
)

// StorageVariable names the environment variable that says where Start keeps the objects of a hello for which a test
// does not say it: "etcd" is an etcd for each test, "" or "file" the data file.
const StorageVariable = "KEELSON_E2E_STORAGE"

// StartEtcd starts an etcd of one member, which ends with the test, and returns its endpoint, with http://.
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

// storage adds to the options what the environment says.
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
