// Package policychange holds the decisions of servers against a policy that changes: no request is to be decided by half of a
// change of roles and bindings. It is for tests.
//
// [Run] takes two servers of one store, which may be one server: it writes at one of them while many clients ask both. The
// servers serve ConfigMaps and the kinds of rbac.authorization.k8s.io/v1, and decide by these alone.
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
	// Clients is how many clients send requests at the same time.
	Clients = 16

	fewest     = 10               // requests of each user at each server: fewer show nothing
	maxChanges = 10_000           // of a grant, until there are so many requests
	maxTries   = 10_000           // of a request until a server has heard of a grant
	pause      = time.Millisecond // between two of these

	group     = "/apis/rbac.authorization.k8s.io/v1"
	maps      = "/api/v1/namespaces/ns/configmaps"
	theirs    = "configmaps" // what the clients ask for
	different = "secrets"
)

// Grant is a role and a binding of it, with the paths of their collections.
type Grant struct{ RolePath, Role, BindingPath, Binding string }

// GrantTo returns a ClusterRole and its ClusterRoleBinding, or a Role and its RoleBinding in the namespace ns, that let a user
// get and list one resource of the core group. Both have the name.
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

// roleOf is a role for one resource.
func roleOf(name, resource string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":[%q]}]}`, name, resource)
}

// Options refines Run. The zero Options is fine.
type Options struct {
	// Changes is how often each of two grants is changed at least, with four writes; 0 is 60. In short mode it is a third.
	Changes int
}

// Run changes roles and bindings at writer, one object after the other, while half of the Clients ask writer and half ask
// other. At every revision of the store alice may list ConfigMaps, and mallory may not: a request that is decided otherwise
// has met a part of the changes without those of before. Run does so with cluster roles, and then with roles of a namespace.
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

// scene is a Run with roles of one kind.
type scene struct {
	t              *testing.T
	writer, other  *servertest.Server
	namespaced     bool
	changes        int    // of each grant
	alice, mallory string // users
	pair           string // the name of mallory's role and of its binding

	asked [4]atomic.Int64 // requests of each user at each server
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

// goesOn reports whether a grant is changed once more after n changes.
func (s *scene) goesOn(n int) bool {
	return n < s.changes || n < maxChanges && !s.enough() && !s.t.Failed()
}

// way is one of the grants to alice.
func (s *scene) way(i int) Grant { return GrantTo(s.alice, s.wayName(i), s.namespaced, theirs) }

func (s *scene) wayName(i int) string { return fmt.Sprint("way-", s.namespaced, "-", i%3) }

// malloryTo is mallory's grant of a resource.
func (s *scene) malloryTo(resource string) Grant {
	return GrantTo(s.mallory, s.pair, s.namespaced, resource)
}

// moveGrant moves alice's grant from one pair of objects to another: the new pair is complete before the old one goes.
func (s *scene) moveGrant() {
	for i := 0; s.goesOn(i); i++ {
		s.create(s.way(i + 1))
		old := s.way(i)
		s.must(http.MethodDelete, old.BindingPath+"/"+s.wayName(i), "")
		s.must(http.MethodDelete, old.RolePath+"/"+s.wayName(i), "")
	}
}

// changeRole gives mallory's role the ConfigMaps while it is not bound, and other resources while it is.
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

// must sends a request of the administrator to writer, and says if it fails.
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
