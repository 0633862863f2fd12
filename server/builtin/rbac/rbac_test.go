package rbac_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
)

// server/testdata/wire/rbac has the answers for these kinds. The tests here check their effect on other requests.

const group = "/apis/rbac.authorization.k8s.io/v1"

// start returns a server with roles, bindings and ConfigMaps.
func start(t testing.TB, o server.Options) *servertest.Server {
	t.Helper()
	o.Groups = []server.Group{mapsOnly()}
	return servertest.Start(t, o, rbac.New(rbac.Options{}))
}

type answer struct {
	code    int
	message string
	body    string
}

// ask sends a request with the credentials of client. It may be called in any goroutine.
func ask(t testing.TB, client *http.Client, method, url, body string) answer {
	t.Helper()
	kind := "application/json"
	if verb, patch, ok := strings.Cut(method, "-"); ok { // PATCH-merge
		method, kind = verb, "application/"+patch+"-patch+json"
		if patch == "apply" {
			kind = "application/apply-patch+yaml"
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return answer{}
	}
	req.Header.Set("Content-Type", kind)
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return answer{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	var status struct{ Message string }
	_ = json.Unmarshal(text, &status) // the answer of /readyz is not JSON
	return answer{resp.StatusCode, status.Message, string(text)}
}

// must is ask for a request that must succeed.
func must(t testing.TB, client *http.Client, method, url, body string) {
	t.Helper()
	if a := ask(t, client, method, url, body); a.code >= http.StatusBadRequest {
		t.Errorf("%s %s: %d %s", method, url, a.code, a.message)
	}
}

const (
	readMaps = `{"metadata":{"name":"maps"},"rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":["configmaps"]}]}`
	toAlice  = `{"metadata":{"name":"maps"},"roleRef":{"kind":"ClusterRole","name":"maps"},"subjects":[{"kind":"User","name":"alice"}]}`
)

func TestRolesDecide(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{})
	admin, alice := srv.Client(), srv.ClientOf(srv.AddUser(authn.User{Name: "alice", Groups: []string{"dev"}}))
	maps := srv.URL + "/api/v1/namespaces/ns/configmaps"
	want := func(code int, message string) {
		t.Helper()
		if got := ask(t, alice, "GET", maps, ""); got.code != code || got.message != message {
			t.Errorf("%d %q, want %d %q", got.code, got.message, code, message)
		}
	}
	const refused = `configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace "ns"`
	want(403, refused)
	must(t, admin, "POST", srv.URL+group+"/clusterrolebindings", toAlice)
	// The name of the authorizer may come before its reason.
	if got := ask(t, alice, "GET", maps, ""); got.code != 403 || !strings.HasSuffix(got.message, `RBAC: clusterrole.rbac.authorization.k8s.io "maps" not found`) {
		t.Errorf("%d %q", got.code, got.message)
	}
	must(t, admin, "POST", srv.URL+group+"/clusterroles", readMaps)
	want(200, "")
	must(t, admin, "DELETE", srv.URL+group+"/clusterrolebindings/maps", "")
	want(403, refused)
	must(t, admin, "POST", srv.URL+group+"/namespaces/ns/rolebindings", strings.Replace(toAlice, `"User","name":"alice"`, `"Group","name":"dev"`, 1))
	want(200, "")
	if got := ask(t, alice, "GET", srv.URL+"/api/v1/namespaces/other/configmaps", ""); got.code != 403 {
		t.Errorf("in another namespace: %d", got.code)
	}
	if got := ask(t, alice, "GET", srv.URL+group+"/clusterroles", ""); got.code != 403 {
		t.Errorf("whom no role lets read roles: %d", got.code)
	}
	// The requests that the server itself allows are still allowed.
	for _, path := range []string{"/healthz", "/apis"} {
		if got := ask(t, alice, "GET", srv.URL+path, ""); got.code != 200 {
			t.Errorf("%s: %d", path, got.code)
		}
	}
}

// Every request that begins after the answer to a DELETE is decided without the deleted object, while other clients write.
func TestDeletedRolesDecideNothing(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			name := fmt.Sprint("user-", i)
			admin, user := srv.Client(), srv.ClientOf(srv.AddUser(authn.User{Name: name}))
			rename := strings.NewReplacer(`"maps"`, `"`+name+`"`, "alice", name)
			must(t, admin, "POST", srv.URL+group+"/clusterrolebindings", rename.Replace(toAlice))
			for n := range 15 {
				must(t, admin, "POST", srv.URL+group+"/clusterroles", rename.Replace(readMaps))
				if got := ask(t, user, "GET", srv.URL+"/api/v1/configmaps", ""); got.code != 200 {
					t.Errorf("%s, %d: %d %s after the role was made", name, n, got.code, got.message)
				}
				must(t, admin, "DELETE", srv.URL+group+"/clusterroles/"+name, "")
				if got := ask(t, user, "GET", srv.URL+"/api/v1/configmaps", ""); got.code != 403 {
					t.Errorf("%s, %d: %d after the role was deleted", name, n, got.code)
				}
			}
		})
	}
	all.Wait()
}

func TestReadyzNamesIt(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{})
	if got := ask(t, srv.Client(), "GET", srv.URL+"/readyz?verbose", ""); got.code != 200 || !strings.Contains(got.body, "[+]authorizer-rbac ok") {
		t.Errorf("%d\n%s", got.code, got.body)
	}
}

func TestInstallTwice(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{})
	if err := srv.Install(rbac.New(rbac.Options{})); err == nil || !strings.Contains(err.Error(), "install the extension once") {
		t.Errorf("error %v", err)
	}
}

// Objects have the storage keys of kube-apiserver.
func TestStoredWhereKubernetesHasThem(t *testing.T) {
	t.Parallel()
	backend := memory.New(memory.Options{})
	srv := start(t, server.Options{Storage: storage.Opened(backend)})
	for path, key := range map[string]string{
		"/clusterroles": "/registry/clusterroles/a:b", "/namespaces/ns/roles": "/registry/roles/ns/a:b",
	} {
		must(t, srv.Client(), "POST", srv.URL+group+path, `{"metadata":{"name":"a:b"}}`)
		if got, err := backend.Get(t.Context(), key, 0); err != nil || !got.Found {
			t.Errorf("%s: %+v, %v", key, got, err)
		}
	}
	for path, key := range map[string]string{
		"/clusterrolebindings": "/registry/clusterrolebindings/maps", "/namespaces/ns/rolebindings": "/registry/rolebindings/ns/maps",
	} {
		must(t, srv.Client(), "POST", srv.URL+group+path, toAlice)
		if got, err := backend.Get(t.Context(), key, 0); err != nil || !got.Found {
			t.Errorf("%s: %+v, %v", key, got, err)
		}
	}
}

// No body causes an internal error.
func FuzzObjects(f *testing.F) {
	srv := start(f, server.Options{})
	paths := []string{"/clusterroles", "/clusterrolebindings", "/namespaces/ns/roles", "/namespaces/ns/rolebindings"}
	for _, body := range []string{
		readMaps, toAlice,
		`{"metadata":{"generateName":"a%"},"rules":[{"nonResourceURLs":["*"]},null],"aggregationRule":{"clusterRoleSelectors":[{"matchExpressions":[{"key":"a","operator":"In"}]},null]}}`,
		`{"metadata":{"name":"a"},"subjects":[null,{"kind":"ServiceAccount"}],"roleRef":null}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range paths {
			if got := ask(t, srv.Client(), "POST", srv.URL+group+path+"?dryRun=All", body); got.code >= http.StatusInternalServerError {
				t.Errorf("%s %q: %d %s", path, body, got.code, got.message)
			}
		}
	})
}
