// Package policychange tests the decisions of servers while roles and bindings change. A server that has seen one change must
// also have seen all changes before it: no request may be decided by a later change without the earlier ones.
//
// [Run] takes two servers with one storage, which may be the same server. It writes at one of them while many clients send
// requests to both. The servers must serve ConfigMaps and the kinds of rbac.authorization.k8s.io/v1, and must authorize only by
// these.
package policychange

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/servertest"
)

const (
	// Clients is the number of concurrent clients.
	Clients = 16

	fewest     = 10               // minimum number of requests of each user at each server
	maxChanges = 10_000           // maximum number of changes of a grant before there are so many requests
	maxTries   = 10_000           // maximum number of tries of a request until a server uses a grant
	pause      = time.Millisecond // between two of these tries

	group     = "/apis/rbac.authorization.k8s.io/v1"
	maps      = "/api/v1/namespaces/ns/configmaps"
	theirs    = "configmaps" // the resource that the clients read
	different = "secrets"
)

// Grant is a role and a binding of it, as JSON, with the paths of their collections.
type Grant struct{ RolePath, Role, BindingPath, Binding string }

// GrantTo returns a ClusterRole and its ClusterRoleBinding, or a Role and its RoleBinding in the namespace ns, that let a user
// get and list one resource of the core group. name is the name of both objects.
func GrantTo(user, name string, namespaced bool, resource string) Grant {
	g := Grant{
		group + "/clusterroles", roleOf(name, resource),
		group + "/clusterrolebindings", `{"metadata":{"name":"NAME"},"roleRef":{"kind":"ClusterRole","name":"NAME"},"subjects":[{"kind":"User","name":"USER"}]}`,
	}
	if namespaced {
		g.RolePath, g.BindingPath = group+"/namespaces/ns/roles", group+"/namespaces/ns/rolebindings"
		g.Binding = strings.Replace(g.Binding, `"ClusterRole"`, `"Role"`, 1)
	}
	g.Binding = strings.NewReplacer("NAME", name, "USER", user).Replace(g.Binding)
	return g
}

// roleOf returns a role for one resource.
func roleOf(name, resource string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":[%q]}]}`, name, resource)
}

// Options are the options of Run. The zero Options is valid.
type Options struct {
	// Changes is the minimum number of changes of each of two grants; each change is four writes. 0 means 60. With the flag
	// -short of go test it is a third.
	Changes int
}

// Run changes roles and bindings at writer, one object after the other, while half of the Clients send requests to writer and the
// other half to other. At every revision of the storage alice may list ConfigMaps, and mallory may not. If a request is decided
// otherwise, the server has used a change without the changes before it. Run does this first with cluster roles, and then with
// roles of a namespace.
func Run(t *testing.T, writer, other *servertest.Server, o Options) {
	if o.Changes <= 0 {
		o.Changes = 60
	}
	if testing.Short() {
		o.Changes = (o.Changes + 2) / 3
	}
	for _, namespaced := range []bool{false, true} {
		t.Run(fmt.Sprint("namespaced=", namespaced), func(t *testing.T) {
			s := &scene{t: t, writer: writer, other: other, namespaced: namespaced, changes: o.Changes}
			s.alice, s.mallory = fmt.Sprint("alice-", namespaced), fmt.Sprint("mallory-", namespaced)
			s.pair = fmt.Sprint("pair-", namespaced)
			s.run()
		})
	}
}

// scene is one part of Run, with roles of one kind.
type scene struct {
	t              *testing.T
	writer, other  *servertest.Server
	namespaced     bool
	changes        int    // minimum for each grant
	alice, mallory string // user names
	pair           string // the name of mallory's role and of its binding

	asked [4]atomic.Int64 // number of requests of each user at each server
}

func (s *scene) run() {
	s.create(s.way(0))
	s.create(s.malloryTo(different))
	s.heard()
	done := make(chan struct{})
	var asking, writing sync.WaitGroup
	for i := range Clients {
		user, want := s.alice, http.StatusOK
		if i%2 == 1 {
			user, want = s.mallory, http.StatusForbidden
		}
		srv := s.writer
		if i%4 < 2 {
			srv = s.other
		}
		client := srv.ClientOf(srv.AddUser(authn.User{Name: user}))
		asking.Go(func() {
			for ended := false; !ended; {
				if code, message := send(s.t, client, http.MethodGet, srv.URL+maps, ""); code != want {
					s.t.Errorf("%s: %d %s, want %d", user, code, message, want)
					return
				}
				s.asked[i%4].Add(1)
				select {
				case <-done:
					ended = true
				default:
				}
			}
		})
	}
	writing.Go(s.moveGrant)
	writing.Go(s.changeRole)
	writing.Wait()
	close(done)
	asking.Wait()
	if !s.enough() && !s.t.Failed() {
		s.t.Error("there were too few requests: they show nothing")
	}
}

// enough reports whether each user has sent enough requests to each server.
func (s *scene) enough() bool {
	for i := range s.asked {
		if s.asked[i].Load() < fewest {
			return false
		}
	}
	return true
}

// goesOn reports whether a grant must be changed again after n changes.
func (s *scene) goesOn(n int) bool {
	return n < s.changes || n < maxChanges && !s.enough() && !s.t.Failed()
}

// way returns one of the grants for alice.
func (s *scene) way(i int) Grant { return GrantTo(s.alice, s.wayName(i), s.namespaced, theirs) }

func (s *scene) wayName(i int) string { return fmt.Sprint("way-", s.namespaced, "-", i%3) }

// malloryTo returns mallory's grant for a resource.
func (s *scene) malloryTo(resource string) Grant {
	return GrantTo(s.mallory, s.pair, s.namespaced, resource)
}

// moveGrant moves alice's grant from one pair of objects to another. The new pair is complete before the old one is deleted.
func (s *scene) moveGrant() {
	for i := 0; s.goesOn(i); i++ {
		s.create(s.way(i + 1))
		old := s.way(i)
		s.must(http.MethodDelete, old.BindingPath+"/"+s.wayName(i), "")
		s.must(http.MethodDelete, old.RolePath+"/"+s.wayName(i), "")
	}
}

// changeRole lets mallory's role have ConfigMaps only while it is not bound, and other resources while it is bound.
func (s *scene) changeRole() {
	with, without := s.malloryTo(theirs), s.malloryTo(different)
	for n := 0; s.goesOn(n); n++ {
		s.must(http.MethodDelete, without.BindingPath+"/"+s.pair, "")
		s.must(http.MethodPut, with.RolePath+"/"+s.pair, with.Role)
		s.must(http.MethodPut, without.RolePath+"/"+s.pair, without.Role)
		s.must(http.MethodPost, without.BindingPath, without.Binding)
	}
}

func (s *scene) create(g Grant) {
	s.must(http.MethodPost, g.RolePath, g.Role)
	s.must(http.MethodPost, g.BindingPath, g.Binding)
}

// heard waits until the other server decides by alice's grant.
func (s *scene) heard() {
	client := s.other.ClientOf(s.other.AddUser(authn.User{Name: s.alice}))
	for range maxTries {
		if code, _ := send(s.t, client, http.MethodGet, s.other.URL+maps, ""); code == http.StatusOK {
			return
		}
		time.Sleep(pause)
	}
	s.t.Fatal("the other server does not hear of the grants: do both have one store?")
}

// must sends a request of the administrator to writer, and reports a failure.
func (s *scene) must(method, path, body string) {
	if code, message := send(s.t, s.writer.Client(), method, s.writer.URL+path, body); code >= http.StatusBadRequest {
		s.t.Errorf("%s %s: %d %s", method, path, code, message)
	}
}

// send sends a request, and returns the code and the message of the answer. It may be called in any goroutine.
func send(t *testing.T, client *http.Client, method, url, body string) (code int, message string) {
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
	var status struct{ Message string }
	_ = json.Unmarshal(text, &status) // a list has no message
	return resp.StatusCode, status.Message
}
