package rbac_test

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/server/servertest/policychange"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// These tests change the policy while other clients send requests all the time.

// epochs are the states of a policy that a writer changes. An epoch is even while a change is in progress. Every second one of
// the other epochs allows the requests.
type epochs struct {
	t    *testing.T
	now  atomic.Int64
	seen chan int64 // epochs in which a request began and ended
}

func (e *epochs) allows(epoch int64) bool { return epoch%4 == 1 }

// ask sends requests of a user until done is closed. Each must be decided by the epoch in which it is sent.
func (e *epochs) ask(client *http.Client, url string, done <-chan struct{}) {
	for {
		before := e.now.Load()
		got := ask(e.t, client, "GET", url, "")
		if e.now.Load() == before && before%2 == 1 {
			want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[e.allows(before)]
			if got.code != want {
				e.t.Errorf("epoch %d: %d %s, want %d", before, got.code, got.message, want)
			}
			select {
			case e.seen <- before:
			case <-done:
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// change starts the next epoch, and waits until some requests were decided in it.
func (e *epochs) change(write func()) {
	e.now.Add(1)
	write()
	epoch := e.now.Add(1)
	for n := 0; n < 2*policychange.Clients; {
		if <-e.seen == epoch {
			n++
		}
	}
}

// openBolt opens a file, which the server closes.
func openBolt(path string) storage.Opener {
	return func(context.Context) (storage.Backend, error) {
		return bolt.Open(path, bolt.Options{Sync: bolt.SyncInterval})
	}
}

// mapsOnly returns the kinds that start serves besides roles and bindings.
func mapsOnly() server.Group {
	return server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.ConfigMap()}}}}
}

// A deleted role or binding has no effect after the answer to the DELETE. The file has the policy when it is opened again.
func TestRevocationOnAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	srv := start(t, server.Options{Storage: openBolt(path)})
	maps := srv.URL + "/api/v1/namespaces/ns/configmaps"

	e := &epochs{t: t, seen: make(chan int64)}
	e.now.Store(-1) // no epoch allows requests
	user := srv.AddUser(authn.User{Name: "u"})
	done := make(chan struct{})
	var all sync.WaitGroup
	for range policychange.Clients {
		all.Go(func() { e.ask(srv.ClientOf(user), maps, done) })
	}
	admin := srv.Client()
	for i := range 16 {
		g := policychange.GrantTo("u", fmt.Sprint("g-", i), i%2 == 0, "configmaps")
		e.change(func() {
			must(t, admin, "POST", srv.URL+g.BindingPath, g.Binding)
			must(t, admin, "POST", srv.URL+g.RolePath, g.Role)
		})
		e.change(func() {
			if i%4 < 2 {
				must(t, admin, "DELETE", fmt.Sprint(srv.URL, g.RolePath, "/g-", i), "")
			} else {
				must(t, admin, "DELETE", fmt.Sprint(srv.URL, g.BindingPath, "/g-", i), "")
			}
		})
	}
	close(done)
	all.Wait()

	for _, namespaced := range []bool{false, true} {
		for _, what := range []string{"kept", "role", "binding"} {
			name := fmt.Sprint(what, "-", namespaced)
			g := policychange.GrantTo(name, name, namespaced, "configmaps")
			must(t, admin, "POST", srv.URL+g.BindingPath, g.Binding)
			must(t, admin, "POST", srv.URL+g.RolePath, g.Role)
			switch what {
			case "role":
				must(t, admin, "DELETE", srv.URL+g.RolePath+"/"+name, "")
			case "binding":
				must(t, admin, "DELETE", srv.URL+g.BindingPath+"/"+name, "")
			}
		}
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}

	again := start(t, server.Options{Storage: openBolt(path)})
	var first sync.WaitGroup
	begin := make(chan struct{})
	for _, namespaced := range []bool{false, true} {
		for what, want := range map[string]int{"kept": 200, "role": 403, "binding": 403} {
			name := fmt.Sprint(what, "-", namespaced)
			client := again.ClientOf(again.AddUser(authn.User{Name: name}))
			first.Go(func() {
				<-begin
				if got := ask(t, client, "GET", maps, ""); got.code != want {
					t.Errorf("the first request of %s after the restart: %d %s, want %d", name, got.code, got.message, want)
				}
			})
		}
	}
	close(begin)
	first.Wait()
}

// The first request after the installation of the extension is decided by the stored policy, although it is not loaded yet.
func TestFirstRequestWaitsForThePolicy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	srv := start(t, server.Options{Storage: openBolt(path)})
	must(t, srv.Client(), "POST", srv.URL+group+"/clusterrolebindings", toAlice)
	must(t, srv.Client(), "POST", srv.URL+group+"/clusterroles", readMaps)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again := servertest.Start(t, server.Options{Storage: openBolt(path)}, mapsOnly())
		alice := again.ClientOf(again.AddUser(authn.User{Name: "alice"}))
		bob := again.ClientOf(again.AddUser(authn.User{Name: "bob"}))
		if err := again.Install(rbac.New(rbac.Options{})); err != nil {
			t.Fatal(err)
		}
		if got := ask(t, alice, "GET", again.URL+"/api/v1/configmaps", ""); got.code != 200 {
			t.Errorf("alice: %d %s", got.code, got.message)
		}
		if got := ask(t, bob, "GET", again.URL+"/api/v1/configmaps", ""); got.code != 403 {
			t.Errorf("bob: %d %s", got.code, got.message)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A name that the storage cannot hold is refused, and is not found.
func TestNamesThatAreTooLong(t *testing.T) {
	t.Parallel()
	srv := start(t, server.Options{Storage: openBolt(filepath.Join(t.TempDir(), "db"))})
	name := strings.Repeat("x", 40_000)
	body := fmt.Sprintf(`{"metadata":{"name":%q}}`, name)
	for _, path := range []string{"/clusterroles", "/namespaces/ns/roles"} {
		for request, want := range map[string]int{"POST ": 422, "PUT /" + name: 422, "GET /" + name: 404, "DELETE /" + name: 404} {
			method, rest, _ := strings.Cut(request, " ")
			if got := ask(t, srv.Client(), method, srv.URL+group+path+rest, body); got.code != want {
				t.Errorf("%s %s: %d %.200s, want %d", method, path, got.code, got.message, want)
			}
		}
	}
}

// kinds returns the kinds of the extension.
func kinds() []server.Resource {
	return []server.Resource{rbac.ClusterRole(), rbac.ClusterRoleBinding(), rbac.Role(), rbac.RoleBinding()}
}

// shared is a storage that two servers use; neither closes it.
type shared struct{ storage.Backend }

func (shared) Close() error { return nil }

// If a writer changes roles and bindings one after the other, no request sees a change without the changes before it. Half of the
// requests go to another server than the writer's. That server answers a write only after it has read the policy before the
// write, so that no write happens during a read.
func TestNoHalfChanges(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]storage.Opener{
		"memory": storage.Opened(memory.New(memory.Options{})),
		"bolt":   openBolt(filepath.Join(t.TempDir(), "db")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend, err := open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { backend.Close() })
			srv := start(t, server.Options{Storage: storage.Opened(shared{backend})})
			other := servertest.Start(t, server.Options{Storage: storage.Opened(shared{backend})}, mapsOnly(), policychange.Slowly(2*time.Millisecond, kinds()...))
			policychange.Run(t, srv, other, policychange.Options{})
		})
	}
}

// A stored role that cannot be decoded is reported and allows nothing. Changes of other roles still have effect.
func TestUnreadableRole(t *testing.T) {
	t.Parallel()
	backend := memory.New(memory.Options{})
	core, logged := observer.New(zap.ErrorLevel)
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(backend)}, mapsOnly(), rbac.New(rbac.Options{Logger: zap.New(core)}))
	admin, alice := srv.Client(), srv.ClientOf(srv.AddUser(authn.User{Name: "alice"}))
	want := func(code int) {
		t.Helper()
		if got := ask(t, alice, "GET", srv.URL+"/api/v1/configmaps", ""); got.code != code {
			t.Errorf("%d %s, want %d", got.code, got.message, code)
		}
	}
	for _, value := range []string{"{", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"bad"},"rules":"all"}`} {
		must(t, admin, "POST", srv.URL+group+"/clusterrolebindings", toAlice)
		must(t, admin, "POST", srv.URL+group+"/clusterroles", readMaps)
		want(200)
		before := logged.Len()
		spoil := storage.Commit{Key: "/registry/clusterroles/bad", Expect: storage.AnyRevision, Value: []byte(value)}
		if _, err := backend.Commit(t.Context(), spoil); err != nil {
			t.Fatal(err)
		}
		must(t, admin, "DELETE", srv.URL+group+"/clusterrolebindings/maps", "")
		want(403)
		must(t, admin, "POST", srv.URL+group+"/clusterrolebindings", toAlice)
		want(200)
		must(t, admin, "DELETE", srv.URL+group+"/clusterroles/maps", "")
		want(403)
		must(t, admin, "DELETE", srv.URL+group+"/clusterrolebindings/maps", "")
		if lines := logged.All()[before:]; len(lines) != 1 || !strings.Contains(fmt.Sprint(lines[0].ContextMap()), "bad") {
			t.Errorf("logged: %v, want one line about bad", lines)
		}
	}
	if got := ask(t, admin, "GET", srv.URL+"/readyz", ""); got.code != 200 {
		t.Errorf("/readyz: %d %s", got.code, got.body)
	}
}
