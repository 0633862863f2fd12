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

// A map without keys counts as no map, because clients that send protobuf cannot distinguish them.
func TestImmutableDataMayBeEmptyOrAbsent(t *testing.T) {
	t.Parallel()
	for _, was := range []map[string][]byte{nil, {}} {
		for _, is := range []map[string][]byte{nil, {}} {
			s, old := &corev1.Secret{Immutable: new(true), Data: is}, &corev1.Secret{Immutable: new(true), Data: was}
			if errs := validateSecretUpdate(registry.NewCall(t.Context(), authn.System(), ""), s, old); len(errs) > 0 {
				t.Errorf("secret: %v after %v: %v", is, was, errs)
			}
			m, oldMap := &corev1.ConfigMap{Immutable: new(true), BinaryData: is}, &corev1.ConfigMap{Immutable: new(true), BinaryData: was}
			if errs := validateConfigMapUpdate(registry.NewCall(t.Context(), authn.System(), ""), m, oldMap); len(errs) > 0 {
				t.Errorf("config map: %v after %v: %v", is, was, errs)
			}
		}
	}
	s, old := &corev1.Secret{Immutable: new(true), Data: map[string][]byte{"a": {}}}, &corev1.Secret{Immutable: new(true)}
	if errs := validateSecretUpdate(registry.NewCall(t.Context(), authn.System(), ""), s, old); len(errs) != 1 {
		t.Errorf("a key more: %v", errs)
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
