package rbac_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/authn"
	authzrbac "github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/bolt"
	"github.com/keelson-dev/keelson/storage/memory"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a change of the policy means for requests of others that are under way all the time.

// clients is how many send requests at the same time.
const clients = 16

// grant is a role and a binding of it.
type grant struct{ rolePath, role, bindingPath, binding string }

// grantTo is a ClusterRole and its ClusterRoleBinding, or a Role and its RoleBinding, that let a user get and list one
// resource. Both have the name.
func grantTo(user, name string, namespaced bool, resource string) grant {
	g := grant{
		group + "/clusterroles", roleOf(name, resource),
		group + "/clusterrolebindings", `{"metadata":{"name":"NAME"},"roleRef":{"kind":"ClusterRole","name":"NAME"},"subjects":[{"kind":"User","name":"USER"}]}`,
	}
	if namespaced {
		g.rolePath, g.bindingPath = group+"/namespaces/ns/roles", group+"/namespaces/ns/rolebindings"
		g.binding = strings.Replace(g.binding, `"ClusterRole"`, `"Role"`, 1)
	}
	g.binding = strings.NewReplacer("NAME", name, "USER", user).Replace(g.binding)
	return g
}

// roleOf is a role for one resource.
func roleOf(name, resource string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"rules":[{"verbs":["get","list"],"apiGroups":[""],"resources":[%q]}]}`, name, resource)
}

// epochs are the states of a policy that a writer changes. An epoch is even while a change is under way; of the others each
// second one allows.
type epochs struct {
	t    *testing.T
	now  atomic.Int64
	seen chan int64 // the epochs in which a request began and ended
}

func (e *epochs) allows(epoch int64) bool { return epoch%4 == 1 }

// ask sends requests of a user until done is closed, each of which has to be decided by the epoch in which it is.
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

// change makes the next epoch, and waits until some requests were decided in it.
func (e *epochs) change(write func()) {
	e.now.Add(1)
	write()
	epoch := e.now.Add(1)
	for n := 0; n < 2*clients; {
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

// mapsOnly is what start serves besides roles and bindings.
func mapsOnly() server.Group {
	return server.Group{Versions: []server.Version{{Name: "v1", Resources: []server.Resource{builtin.ConfigMap()}}}}
}

// A role or a binding that is deleted decides nothing from the answer on, and the file has the policy when it is opened again.
func TestRevocationOnAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "db")
	srv := start(t, server.Options{Storage: openBolt(path)})
	maps := srv.URL + "/api/v1/namespaces/ns/configmaps"

	e := &epochs{t: t, seen: make(chan int64)}
	e.now.Store(-1) // nothing allows
	user := srv.AddUser(authn.User{Name: "u"})
	done := make(chan struct{})
	var all sync.WaitGroup
	for range clients {
		all.Go(func() { e.ask(srv.ClientOf(user), maps, done) })
	}
	admin := srv.Client()
	for i := range 16 {
		g := grantTo("u", fmt.Sprint("g-", i), i%2 == 0, "configmaps")
		e.change(func() {
			must(t, admin, "POST", srv.URL+g.bindingPath, g.binding)
			must(t, admin, "POST", srv.URL+g.rolePath, g.role)
		})
		e.change(func() {
			if i%4 < 2 {
				must(t, admin, "DELETE", fmt.Sprint(srv.URL, g.rolePath, "/g-", i), "")
			} else {
				must(t, admin, "DELETE", fmt.Sprint(srv.URL, g.bindingPath, "/g-", i), "")
			}
		})
	}
	close(done)
	all.Wait()

	for _, namespaced := range []bool{false, true} {
		for _, what := range []string{"kept", "role", "binding"} {
			name := fmt.Sprint(what, "-", namespaced)
			g := grantTo(name, name, namespaced, "configmaps")
			must(t, admin, "POST", srv.URL+g.bindingPath, g.binding)
			must(t, admin, "POST", srv.URL+g.rolePath, g.role)
			switch what {
			case "role":
				must(t, admin, "DELETE", srv.URL+g.rolePath+"/"+name, "")
			case "binding":
				must(t, admin, "DELETE", srv.URL+g.bindingPath+"/"+name, "")
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

// The first request after the extension was installed is decided by the stored policy, though nothing is loaded by then.
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

// slowly is the extension of this package, with an authorizer that takes its time between the kinds: most readings meet writes.
type slowly struct{}

// Install implements server.Extension.
func (slowly) Install(h *server.Host) error {
	a, err := authzrbac.New(slowReaders{h.Readers()}, authzrbac.Options{})
	if err != nil {
		return err
	}
	kinds := []server.Resource{rbac.ClusterRole(), rbac.ClusterRoleBinding(), rbac.Role(), rbac.RoleBinding()}
	err = h.Serve(server.Group{Name: rbacv1.GroupName, Versions: []server.Version{{Name: "v1", Resources: kinds}}})
	return errors.Join(err, h.Authorize(rbac.Name, a))
}

type slowReaders struct{ runtime.Readers }

func (r slowReaders) Reader(kind schema.GroupVersionKind) runtime.Reader[runtime.Object] {
	return slowReader{r.Readers.Reader(kind)}
}

type slowReader struct {
	runtime.Reader[runtime.Object]
}

func (r slowReader) Changes(ctx context.Context, since int64, at runtime.Freshness) (runtime.Changes[runtime.Object], error) {
	time.Sleep(rand.N(2 * time.Millisecond))
	return r.Reader.Changes(ctx, since, at)
}

// shared is a storage of two servers, which neither closes.
type shared struct{ storage.Backend }

func (shared) Close() error { return nil }

// A writer that changes roles and bindings one after the other never makes a request see a part of its changes without those
// of before: alice may list ConfigMaps at every revision, and mallory at none. Half of the requests go to another server than
// the writer's: that one answers a write only when it has read the policy of before, so that none comes while it reads.
func TestNoHalfChanges(t *testing.T) {
	t.Parallel()
	backend := memory.New(memory.Options{})
	t.Cleanup(func() { backend.Close() })
	srv := start(t, server.Options{Storage: storage.Opened(shared{backend})})
	other := servertest.Start(t, server.Options{Storage: storage.Opened(shared{backend})}, mapsOnly(), slowly{})
	admin := srv.Client()
	for _, namespaced := range []bool{false, true} {
		t.Run(fmt.Sprint("namespaced=", namespaced), func(t *testing.T) {
			alice, mallory := fmt.Sprint("alice-", namespaced), fmt.Sprint("mallory-", namespaced)
			// alice's grant moves from one pair of objects to another: the new pair is complete before the old one goes.
			way := func(i int) (string, grant) {
				name := fmt.Sprint("way-", namespaced, "-", i%3)
				return name, grantTo(alice, name, namespaced, "configmaps")
			}
			_, g := way(0)
			must(t, admin, "POST", srv.URL+g.rolePath, g.role)
			must(t, admin, "POST", srv.URL+g.bindingPath, g.binding)
			// mallory's role has other resources while it is bound, and has ConfigMaps while it is not.
			trap := fmt.Sprint("trap-", namespaced)
			m := grantTo(mallory, trap, namespaced, "secrets")
			must(t, admin, "POST", srv.URL+m.rolePath, m.role)
			must(t, admin, "POST", srv.URL+m.bindingPath, m.binding)

			// The other server has heard of them when its clients begin.
			early := other.ClientOf(other.AddUser(authn.User{Name: alice}))
			for ask(t, early, "GET", other.URL+"/api/v1/namespaces/ns/configmaps", "").code != http.StatusOK {
				continue
			}

			done := make(chan struct{})
			var asking, writing sync.WaitGroup
			var asked [4]atomic.Int64
			for i := range clients {
				name, want := alice, 200
				if i%2 == 1 {
					name, want = mallory, 403
				}
				at := srv
				if i%4 < 2 {
					at = other
				}
				client := at.ClientOf(at.AddUser(authn.User{Name: name}))
				asking.Go(func() {
					for {
						if got := ask(t, client, "GET", at.URL+"/api/v1/namespaces/ns/configmaps", ""); got.code != want {
							t.Errorf("%s: %d %s, want %d", name, got.code, got.message, want)
						}
						asked[i%4].Add(1)
						select {
						case <-done:
							return
						default:
						}
					}
				})
			}
			writing.Go(func() {
				for i := range 60 {
					old, before := way(i)
					_, next := way(i + 1)
					must(t, admin, "POST", srv.URL+next.rolePath, next.role)
					must(t, admin, "POST", srv.URL+next.bindingPath, next.binding)
					must(t, admin, "DELETE", srv.URL+before.bindingPath+"/"+old, "")
					must(t, admin, "DELETE", srv.URL+before.rolePath+"/"+old, "")
				}
			})
			writing.Go(func() {
				for range 60 {
					must(t, admin, "DELETE", srv.URL+m.bindingPath+"/"+trap, "")
					must(t, admin, "PUT", srv.URL+m.rolePath+"/"+trap, roleOf(trap, "configmaps"))
					must(t, admin, "PUT", srv.URL+m.rolePath+"/"+trap, roleOf(trap, "secrets"))
					must(t, admin, "POST", srv.URL+m.bindingPath, m.binding)
				}
			})
			writing.Wait()
			close(done)
			asking.Wait()
			for i := range asked {
				if asked[i].Load() < 10 {
					t.Errorf("there were only %d requests of a kind: it shows nothing", asked[i].Load())
				}
			}
		})
	}
}

// A stored role that cannot be decoded is reported and allows nothing, and changes of others have effect.
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
