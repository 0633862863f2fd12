package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/etcd"
	"github.com/keelson-dev/keelson/storage/etcd/embedded"
)

// onEtcd starts a hello that stores its objects in etcd.
func onEtcd(t *testing.T, endpoints string) *harness.Server {
	t.Helper()
	return harness.Start(t, harness.Options{Etcd: endpoints})
}

// stored returns the keys in an etcd.
func stored(t *testing.T, endpoints string) []string {
	t.Helper()
	b, err := etcd.At(strings.Split(endpoints, ",")...)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	res, err := b.Range(t.Context(), storage.Range{})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, kv := range res.KVs {
		keys = append(keys, kv.Key)
	}
	return keys
}

// TestHelloEtcd checks that with -etcd the objects are only in etcd, as JSON at the keys of kube-apiserver, and that -data only
// determines where the keys and certificates are.
func TestHelloEtcd(t *testing.T) {
	t.Parallel()
	endpoint := harness.StartEtcd(t)
	hello := onEtcd(t, endpoint)
	create(t, hello, "alpha", "beta")
	hello.Kubectl("patch", "widget", "alpha", "--type=merge", "-p", `{"spec":{"size":2}}`).OK()
	hello.Kubectl("delete", "widget", "beta").OK()
	before := hello.Kubectl("get", "widget", "alpha", "-o", "json").OK().Stdout

	if got := strings.Join(stored(t, endpoint), " "); got != "/registry/example.com/widgets/default/alpha" {
		t.Errorf("etcd has %q", got)
	}
	b, err := etcd.At(endpoint)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	res, err := b.Get(t.Context(), "/registry/example.com/widgets/default/alpha", 0)
	if err != nil || !json.Valid(res.KV.Value) || !strings.HasPrefix(string(res.KV.Value), `{"kind":"Widget","apiVersion":"example.com/v1",`) {
		t.Errorf("stored is %s, %v", res.KV.Value, err)
	}
	if _, err := os.Stat(filepath.Join(hello.Dir, "hello.db")); err == nil {
		t.Error("there is a data file")
	}
	if _, err := os.Stat(filepath.Join(hello.Dir, "hello.db.pki")); err != nil {
		t.Error(err)
	}

	hello.Stop()
	again := harness.Start(t, harness.Options{Dir: hello.Dir, Etcd: endpoint})
	if after := again.Kubectl("get", "widget", "alpha", "-o", "json").OK().Stdout; after != before {
		t.Errorf("after the restart alpha is\n%s\nbefore it was\n%s", after, before)
	}
	again.Kubectl("get", "--raw", "/readyz/storage").Want("ok", "")
}

// TestHelloEtcdEndpoints tests the forms of endpoints.
func TestHelloEtcdEndpoints(t *testing.T) {
	t.Parallel()
	endpoint := harness.StartEtcd(t)
	address := strings.TrimPrefix(endpoint, "http://")
	if address == endpoint {
		t.Fatalf("the endpoint is %q", endpoint)
	}
	for i, endpoints := range []string{endpoint, address, address + "," + endpoint, " " + endpoint + " , " + address, "127.0.0.1:1," + endpoint} {
		hello := onEtcd(t, endpoints)
		create(t, hello, []string{"a", "b", "c", "d", "e"}[i])
		hello.Stop()
	}
	if got := stored(t, endpoint); len(got) != 5 {
		t.Errorf("stored are %q", got)
	}
}

// TestHelloEtcdTwoServers checks that two servers on one etcd are one API.
func TestHelloEtcdTwoServers(t *testing.T) {
	t.Parallel()
	endpoint := harness.StartEtcd(t)
	one, two := onEtcd(t, endpoint), onEtcd(t, endpoint)
	create(t, one, "alpha")
	w := watchFrom(t, typed(t, two.Config()), field(one, "alpha", ".metadata.resourceVersion"))
	one.Kubectl("label", "widget", "alpha", "a=b").OK()
	create(t, two, "beta")
	one.Kubectl("delete", "widget", "beta").OK()
	wantEvents(t, w, "MODIFIED alpha", "ADDED beta", "DELETED beta")
	if a, b := field(one, "alpha", ".metadata.resourceVersion"), field(two, "alpha", ".metadata.resourceVersion"); a != b {
		t.Errorf("one says %s, the other %s", a, b)
	}
}

// TestHelloEtcdRefused checks that an etcd that cannot be used causes a clear error at once, and leaves nothing behind.
func TestHelloEtcdRefused(t *testing.T) {
	t.Parallel()
	endpoint := harness.StartEtcd(t)
	other := harness.Start(t, harness.Options{Data: filepath.Join(t.TempDir(), "other.db")}).URL // HTTP/2, but not etcd's API
	for endpoints, want := range map[string]string{
		"127.0.0.1:1": "connection refused",
		strings.Replace(endpoint, "http://", "https://", 1): "TLS",
		strings.TrimPrefix(other, "https://"):               strings.TrimPrefix(other, "https://"),
		other:                                               "certificate",
		"etcd":                                              "port",
		endpoint + ",ftp://127.0.0.1:1":                     "ftp",
		",":                                                 "empty",
	} {
		dir := t.TempDir()
		output := fails(t, harness.Options{Dir: dir, Etcd: endpoints})
		if !strings.Contains(output, want) || strings.Count(output, "\n") != 1 {
			t.Errorf("-etcd=%s: want one line about %q, got %s", endpoints, want, output)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("-etcd=%s: %v is left behind, %v", endpoints, left, err)
		}
	}
	if got := stored(t, endpoint); len(got) != 0 {
		t.Errorf("stored are %q", got)
	}
}

// TestHelloEtcdGone checks that a hello without its etcd reports that at once, and can be stopped.
func TestHelloEtcdGone(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start(t.Context(), embedded.Options{Dir: t.TempDir(), UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	hello := onEtcd(t, srv.Endpoints()[0])
	create(t, hello, "alpha")
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"get", "widgets"}, {"get", "widget", "alpha"}, {"label", "widget", "alpha", "a=b"}} {
		hello.Kubectl(args...).Fails("(ServiceUnavailable): storage is unavailable: etcd cannot be reached")
	}
	hello.Kubectl("get", "--raw", "/readyz/storage").Fails("connection refused")
}

// TestHelloMovesToEtcdAndBack copies the data of a file into etcd, and back again.
func TestHelloMovesToEtcdAndBack(t *testing.T) {
	t.Parallel()
	dir, endpoint := t.TempDir(), harness.StartEtcd(t)
	file := filepath.Join(dir, "hello.db")
	first := harness.Start(t, harness.Options{Data: file})
	create(t, first, "alpha", "beta", "gamma")
	spec := []string{"get", "widgets", "-o", "jsonpath={.items[*]['metadata.name','metadata.uid','spec']}"}
	want := first.Kubectl(spec...).OK().Stdout
	old := field(first, "alpha", ".metadata.resourceVersion")
	first.Stop()

	move(t, etcd.At(endpoint), bolt.At(file))
	second := onEtcd(t, endpoint)
	second.Kubectl(spec...).Want(want, "")
	if now := revision(t, field(second, "alpha", ".metadata.resourceVersion")); now <= revision(t, old) {
		t.Errorf("resourceVersion %d, in the file it was %s", now, old)
	}
	// Revisions of the file that clients still have are expired.
	second.Kubectl("get", "--raw", "/apis/example.com/v1/widgets?resourceVersionMatch=Exact&resourceVersion="+old).Fails("(Expired)")
	create(t, second, "delta")
	want = second.Kubectl(spec...).OK().Stdout
	alpha := second.Kubectl("get", "widget", "alpha", "-o", "yaml").OK().Stdout
	second.Stop()

	back := filepath.Join(dir, "back.db")
	move(t, bolt.At(back), etcd.At(endpoint))
	third := harness.Start(t, harness.Options{Data: back})
	third.Kubectl(spec...).Want(want, "")
	third.Kubectl("get", "widget", "alpha", "-o", "yaml").Want(alpha, "") // its resourceVersion included
	create(t, third, "epsilon")
}

func move(t *testing.T, to, from storage.Opener) {
	t.Helper()
	src, err := from(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := to(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storage.Copy(t.Context(), dst, src, storage.CopyOptions{}); err != nil {
		t.Error(err)
	}
	if err := dst.Close(); err != nil {
		t.Error(err)
	}
}
