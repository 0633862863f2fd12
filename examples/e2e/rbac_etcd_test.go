package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/examples/e2e/harness"
	apiserver "github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/policychange"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/etcd"
)

const rbacGroup = "/apis/rbac.authorization.k8s.io/v1"

// replica starts a server with roles and ConfigMaps on an etcd.
func replica(t *testing.T, endpoint string) *servertest.Server {
	t.Helper()
	return replicaOf(t, endpoint, rbac.New(rbac.Options{}))
}

// replicaOf is replica with another extension for roles.
func replicaOf(t *testing.T, endpoint string, roles apiserver.Extension) *servertest.Server {
	t.Helper()
	return servertest.Start(t, apiserver.Options{
		Storage: func(ctx context.Context) (storage.Backend, error) {
			return etcd.Open(ctx, etcd.Options{Endpoints: []string{endpoint}})
		},
		Groups: []apiserver.Group{{Versions: []apiserver.Version{{Name: "v1", Resources: []apiserver.Resource{builtin.ConfigMap()}}}}},
	}, roles)
}

// send sends a request, and returns the code and the body of the answer. It may be called in any goroutine.
func send(t *testing.T, client *http.Client, method, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// watchDeletions starts to watch a kind, and returns a function that waits until the object with a name is deleted.
func watchDeletions(t *testing.T, srv *servertest.Server, path string) (deleted func(name string)) {
	t.Helper()
	_, text := send(t, srv.Client(), "GET", srv.URL+path, "")
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	url := srv.URL + path + "?watch=1&resourceVersion=" + list.Metadata.ResourceVersion
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	events := bufio.NewReader(resp.Body)
	return func(name string) {
		t.Helper()
		for {
			line, err := events.ReadBytes('\n')
			if err != nil {
				t.Fatalf("waiting for the deletion of %s: %v", name, err)
			}
			var event struct {
				Type   string
				Object struct{ Metadata struct{ Name string } }
			}
			if err := json.Unmarshal(line, &event); err != nil {
				t.Fatal(err)
			}
			if event.Type == "DELETED" && event.Object.Metadata.Name == name {
				return
			}
		}
	}
}

// A role or binding that is deleted through one server has no effect there after the answer. It has no effect at another server
// of the same etcd once a watch there has shown the deletion.
func TestRevocationByAnotherServer(t *testing.T) {
	t.Parallel()
	endpoint := harness.StartEtcd(t)
	here, there := replica(t, endpoint), replica(t, endpoint)
	const maps = "/api/v1/namespaces/ns/configmaps"
	user := authn.User{Name: "u"}
	atHere, atThere := here.ClientOf(here.AddUser(user)), there.ClientOf(there.AddUser(user))
	many := func(what string, srv *servertest.Server, client *http.Client) {
		t.Helper()
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				if code, text := send(t, client, "GET", srv.URL+maps, ""); code != http.StatusForbidden {
					t.Errorf("%s: %d %s", what, code, text)
				}
			})
		}
		all.Wait()
	}
	for i, c := range []struct{ roles, bindings, kind string }{
		{"/clusterroles", "/clusterrolebindings", "ClusterRole"},
		{"/namespaces/ns/roles", "/namespaces/ns/rolebindings", "Role"},
		{"/clusterroles", "/namespaces/ns/rolebindings", "ClusterRole"},
	} {
		for _, gone := range []string{c.roles, c.bindings} {
			deleted := watchDeletions(t, there, rbacGroup+gone)
			for n := range 5 {
				name := fmt.Sprint("g-", i, "-", n)
				for path, body := range map[string]string{
					c.roles:    `{"metadata":{"name":"NAME"},"rules":[{"verbs":["list"],"apiGroups":[""],"resources":["configmaps"]}]}`,
					c.bindings: `{"metadata":{"name":"NAME"},"roleRef":{"kind":"` + c.kind + `","name":"NAME"},"subjects":[{"kind":"User","name":"u"}]}`,
				} {
					code, text := send(t, here.Client(), "POST", here.URL+rbacGroup+path, strings.ReplaceAll(body, "NAME", name))
					if code != http.StatusCreated {
						t.Fatalf("%s: %d %s", path, code, text)
					}
				}
				if code, text := send(t, atHere, "GET", here.URL+maps, ""); code != http.StatusOK {
					t.Fatalf("after the grant here: %d %s", code, text)
				}
				for { // until the events have arrived
					if code, _ := send(t, atThere, "GET", there.URL+maps, ""); code == http.StatusOK {
						break
					}
				}
				if code, text := send(t, here.Client(), "DELETE", here.URL+rbacGroup+gone+"/"+name, ""); code != http.StatusOK {
					t.Fatalf("deletion: %d %s", code, text)
				}
				many("after the answer here", here, atHere)
				deleted(name)
				many("after the event there", there, atThere)
				for _, path := range []string{c.roles, c.bindings} {
					if path != gone {
						send(t, here.Client(), "DELETE", here.URL+rbacGroup+path+"/"+name, "")
					}
				}
			}
		}
	}
}

// If a writer changes roles and bindings through one server of an etcd, no request sees half of a change: neither at that server,
// nor at another one, which receives the events of each kind separately.
func TestNoHalfChangesAtAnotherServer(t *testing.T) {
	t.Parallel()
	endpoint := harness.StartEtcd(t)
	slowly := policychange.Slowly(60*time.Millisecond, rbac.ClusterRole(), rbac.ClusterRoleBinding(), rbac.Role(), rbac.RoleBinding())
	policychange.Run(t, replica(t, endpoint), replicaOf(t, endpoint, slowly), policychange.Options{Changes: 15})
}
