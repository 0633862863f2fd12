package builtin

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dataGroups are the groups that serve ConfigMaps, Secrets and Leases.
func dataGroups() []server.Group {
	return []server.Group{
		{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{ConfigMap(), Secret()}}}},
		{Name: "coordination.k8s.io", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{Lease()}}}},
	}
}

// server/testdata/wire/builtin has the answers for these kinds. The tests here cover the rest.

// An immutable object whose data is empty is stored without it, and a client that sends what it has read changes nothing.
func TestImmutableEmptyData(t *testing.T) {
	t.Parallel()
	call := registry.NewCall(t.Context(), authn.System(), "")
	for _, c := range []struct {
		is   map[string][]byte
		errs int
	}{{nil, 0}, {map[string][]byte{}, 1}, {map[string][]byte{"a": {}}, 1}} {
		for _, stored := range []map[string][]byte{nil, {}} {
			s, old := &corev1.Secret{Immutable: new(true), Data: c.is}, &corev1.Secret{Immutable: new(true), Data: stored}
			if errs := validateSecretUpdate(call, s, old); len(errs) != c.errs {
				t.Errorf("secret: %v after %v: %v", c.is, stored, errs)
			}
			m, oldMap := &corev1.ConfigMap{Immutable: new(true), BinaryData: c.is}, &corev1.ConfigMap{Immutable: new(true), BinaryData: stored}
			if errs := validateConfigMapUpdate(call, m, oldMap); len(errs) != c.errs {
				t.Errorf("config map: %v after %v: %v", c.is, stored, errs)
			}
		}
	}
}

func TestSecretDefaultsOnce(t *testing.T) {
	t.Parallel()
	s := &corev1.Secret{Data: map[string][]byte{"a": []byte("1"), "b": []byte("2")}, StringData: map[string]string{"b": "3", "c": ""}}
	want := &corev1.Secret{Data: map[string][]byte{"a": []byte("1"), "b": []byte("3"), "c": {}}, Type: corev1.SecretTypeOpaque}
	for range 2 {
		if defaultSecret(s); !reflect.DeepEqual(s, want) {
			t.Errorf("%+v", s)
		}
	}
}

// Errors about several keys are always in the order of the keys.
func TestDataErrorsAreInOrder(t *testing.T) {
	t.Parallel()
	m := &corev1.ConfigMap{Data: map[string]string{}, BinaryData: map[string][]byte{}}
	for _, key := range strings.Fields("d/ b/ a/ c/") {
		m.Data[key], m.BinaryData[key] = "", nil
	}
	var paths []string
	for _, err := range validateConfigMap(m) {
		paths = append(paths, err.Field)
	}
	const want = "data[a/] data[a/] data[b/] data[b/] data[c/] data[c/] data[d/] data[d/] binaryData[a/] binaryData[b/] binaryData[c/] binaryData[d/]"
	if got := strings.Join(paths, " "); got != want {
		t.Errorf("%s", got)
	}
}

// Objects have the storage keys of kube-apiserver.
func TestDataIsStoredWhereKubernetesHasIt(t *testing.T) {
	t.Parallel()
	backend := memory.New(memory.Options{})
	srv := servertest.Start(t, server.Options{Groups: dataGroups(), Storage: storage.Opened(backend)})
	for path, key := range map[string]string{
		"/api/v1/namespaces/ns/configmaps":                  "/registry/configmaps/ns/a",
		"/api/v1/namespaces/ns/secrets":                     "/registry/secrets/ns/a",
		"/apis/coordination.k8s.io/v1/namespaces/ns/leases": "/registry/leases/ns/a",
	} {
		resp, err := srv.Client().Post(srv.URL+path, "application/json", strings.NewReader(`{"metadata":{"name":"a"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %d %v", path, resp.StatusCode, err)
		}
		if got, err := backend.Get(t.Context(), key, 0); err != nil || !got.Found {
			t.Errorf("%s: %+v, %v", key, got, err)
		}
	}
}

// No body causes an internal error.
func FuzzData(f *testing.F) {
	srv := servertest.Start(f, server.Options{Groups: dataGroups()})
	client := srv.Client()
	paths := []string{"/api/v1/namespaces/ns/configmaps", "/api/v1/namespaces/ns/secrets", "/apis/coordination.k8s.io/v1/namespaces/ns/leases"}
	for _, body := range []string{
		`{"metadata":{"name":"a"},"data":{"k":"YQ=="},"stringData":{"k":"v"},"type":"kubernetes.io/tls","immutable":true}`,
		`{"metadata":{"name":"a"},"data":{".dockercfg":"e30="},"type":"kubernetes.io/dockercfg"}`,
		`{"metadata":{"generateName":"a"},"spec":{"holderIdentity":"x","leaseDurationSeconds":1,"renewTime":"2026-01-02T03:04:05.000006Z","strategy":"a/b"}}`,
		`{"metadata":{"name":"a"},"binaryData":{"k":null},"data":{"a/b":""}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range paths {
			resp, err := client.Post(srv.URL+path+"?dryRun=All", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			var answer struct{ metav1.TypeMeta }
			err = json.NewDecoder(resp.Body).Decode(&answer)
			if resp.Body.Close(); err != nil || resp.StatusCode >= http.StatusInternalServerError {
				t.Errorf("%s %q: %d %v", path, body, resp.StatusCode, err)
			}
		}
	})
}
