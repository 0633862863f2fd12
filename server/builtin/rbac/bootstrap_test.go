package rbac_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz/rbac/bootstrap"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/rbac"
	"github.com/keelson-dev/keelson/server/builtin/reviews"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stored has what is stored of an object, without what differs from server to server.
type stored struct {
	metav1.ObjectMeta `json:"metadata"`
	Rules             []rbacv1.PolicyRule
	Subjects          []rbacv1.Subject
	RoleRef           rbacv1.RoleRef
	AggregationRule   *rbacv1.AggregationRule
}

// list returns the objects of a resource.
func list(t *testing.T, srv *servertest.Server, resource string) []stored {
	t.Helper()
	a := ask(t, srv.Client(), "GET", srv.URL+group+"/"+resource, "")
	var got struct{ Items []stored }
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.code != http.StatusOK {
		t.Fatalf("%s: %d %v", resource, a.code, err)
	}
	return got.Items
}

func resources() []string {
	return []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"}
}

// count returns the number of roles and bindings.
func count(t *testing.T, srv *servertest.Server) (n int) {
	for _, resource := range resources() {
		n += len(list(t, srv, resource))
	}
	return n
}

// commits counts the writes to a storage.
type commits struct {
	storage.Backend
	n    atomic.Int64
	fail atomic.Int64 // number of commits that fail
}

func (c *commits) Close() error { return nil }

func (c *commits) Commit(ctx context.Context, o storage.Commit) (storage.CommitResult, error) {
	if strings.Contains(o.Key, "role") {
		if c.fail.Add(-1) >= 0 {
			return storage.CommitResult{}, errors.New("the storage is not there")
		}
		c.n.Add(1)
	}
	return c.Backend.Commit(ctx, o)
}

func newCommits() *commits { return &commits{Backend: memory.New(memory.Options{})} }

// system installs what the roles of Kubernetes need.
func system(t testing.TB, o server.Options, r rbac.Options) *servertest.Server {
	t.Helper()
	return servertest.Start(t, o, builtin.New(builtin.Options{}), reviews.New(reviews.Options{}), rbac.New(r))
}

// A server makes the roles and bindings at its first start, with a manager of fields. It writes nothing at the next start.
func TestBootstrap(t *testing.T) {
	t.Parallel()
	backend := newCommits()
	srv := system(t, server.Options{Storage: storage.Opened(backend)}, rbac.Options{NoControllers: true})
	for resource, want := range map[string]int{"clusterroles": 73, "clusterrolebindings": 54, "roles": 7, "rolebindings": 7} {
		if got := len(list(t, srv, resource)); got != want {
			t.Errorf("%d %s, want %d", got, resource, want)
		}
	}
	for _, b := range list(t, srv, "rolebindings") {
		m := b.ManagedFields
		if len(m) != 1 || m[0].Manager != "kube-apiserver" || m[0].Operation != "Update" || b.Labels[bootstrap.Label] != bootstrap.LabelValue {
			t.Errorf("%s: %v %v", b.Name, b.Labels, m)
		}
	}
	if got := ask(t, srv.Client(), "GET", srv.URL+"/readyz?verbose", ""); !strings.Contains(got.body, "[+]poststarthook/rbac/bootstrap-roles ok") {
		t.Errorf("%d\n%s", got.code, got.body)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	before := backend.n.Load()
	if before != 141 {
		t.Errorf("%d writes, want one for each object", before)
	}
	for range 2 {
		again := system(t, server.Options{Storage: storage.Opened(backend)}, rbac.Options{NoControllers: true})
		if got := count(t, again); got != 141 {
			t.Errorf("%d objects", got)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := backend.n.Load() - before; n != 0 {
		t.Errorf("%d writes although nothing was missing", n)
	}
}

// Servers that start at the same time make each object once. A storage that fails is tried again.
func TestBootstrapOfReplicas(t *testing.T) {
	t.Parallel()
	backend := newCommits()
	backend.fail.Store(3)
	var all sync.WaitGroup
	for range 4 {
		srv := servertest.Start(t, server.Options{Storage: storage.Opened(backend)})
		all.Go(func() {
			for _, e := range []server.Extension{builtin.New(builtin.Options{}), rbac.New(rbac.Options{})} {
				if err := srv.Install(e); err != nil {
					t.Error(err)
				}
			}
			within(t, "the hook ends", func() bool {
				return strings.Contains(ask(t, srv.Client(), "GET", srv.URL+"/readyz?verbose", "").body, "[+]poststarthook/rbac/bootstrap-roles ok")
			})
			if got := count(t, srv); got != 141 {
				t.Errorf("%d objects", got)
			}
		})
	}
	all.Wait()
}

// within waits until a condition holds, for at most a minute.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) || t.Context().Err() != nil {
			t.Errorf("%s: not within a minute", what)
			return
		}
	}
}

// The stored roles replace the default rules of the server and of other extensions. A start brings back what is missing, except in an
// object that says otherwise.
func TestRolesReplaceDefaults(t *testing.T) {
	t.Parallel()
	backend := newCommits()
	start := func() (*servertest.Server, func(what, method, path, body string, want int)) {
		srv := system(t, server.Options{Storage: storage.Opened(backend)}, rbac.Options{})
		clients := map[string]*http.Client{"admin": srv.Client(), "alice": srv.ClientOf(srv.AddUser(authn.User{Name: "alice"})), "nobody": srv.Anonymous()}
		return srv, func(who, method, path, body string, want int) {
			t.Helper()
			if got := ask(t, clients[who], method, srv.URL+path, body); got.code != want {
				t.Errorf("%s %s %s: %d %s, want %d", who, method, path, got.code, got.message, want)
			}
		}
	}
	const who = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
	bindings := group + "/clusterrolebindings/"
	srv, want := start()
	want("alice", "GET", "/apis", "", 200)
	want("alice", "GET", "/healthz", "", 200)
	want("alice", "POST", who, "{}", 201)
	want("nobody", "GET", "/readyz", "", 200)
	want("nobody", "GET", "/apis", "", 403)
	want("alice", "GET", "/readyz/ping", "", 403)
	for _, name := range []string{"system:discovery", "system:basic-user", "system:public-info-viewer"} {
		want("admin", "DELETE", bindings+name, "", 200)
	}
	want("alice", "GET", "/apis", "", 403)
	want("alice", "POST", who, "{}", 403)
	want("nobody", "GET", "/readyz", "", 403)
	want("admin", "GET", "/readyz", "", 200)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}

	srv, want = start()
	want("alice", "GET", "/apis", "", 200)
	want("nobody", "GET", "/readyz", "", 200)
	none := fmt.Sprintf(`{"metadata":{"name":"system:discovery","annotations":{%q:"false"}},"roleRef":{"kind":"ClusterRole","name":"system:discovery"}}`, rbacv1.AutoUpdateAnnotationKey)
	want("admin", "PUT", bindings+"system:discovery", none, 200)
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	_, want = start()
	want("alice", "GET", "/apis", "", 403)
	want("alice", "POST", who, "{}", 201)
}

// A program chooses the roles. Without any the default rules stay.
func TestOwnBootstrap(t *testing.T) {
	t.Parallel()
	own := append(bootstrap.Minimal(),
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "maps", Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-view": "true"}}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "viewers"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "alice"}}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "view"}},
	)
	for name, c := range map[string]struct {
		objects       []runtime.Object
		n, maps, apis int
	}{
		"minimal and own": {own, 18, 200, 200},
		"none":            {[]runtime.Object{}, 0, 403, 200},
		"only own":        {own[len(own)-2:], 2, 403, 403},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := servertest.Start(t, server.Options{}, mapsOnly(), rbac.New(rbac.Options{Bootstrap: c.objects}))
			alice := srv.ClientOf(srv.AddUser(authn.User{Name: "alice"}))
			if n := count(t, srv); n != c.n {
				t.Errorf("%d objects, want %d", n, c.n)
			}
			if got := ask(t, alice, "GET", srv.URL+"/api/v1/configmaps", ""); got.code != c.maps {
				t.Errorf("alice reads ConfigMaps: %d %s, want %d", got.code, got.message, c.maps)
			}
			if got := ask(t, alice, "GET", srv.URL+"/apis", ""); got.code != c.apis {
				t.Errorf("alice reads discovery: %d %s, want %d", got.code, got.message, c.apis)
			}
		})
	}
	srv := servertest.Start(t, server.Options{}, mapsOnly())
	for _, bad := range [][]runtime.Object{{nil}, {own[0], own[0]}, {&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}} {
		if err := srv.Install(rbac.New(rbac.Options{Bootstrap: bad})); err == nil || !strings.Contains(err.Error(), "Options.Bootstrap") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// An aggregated role has the rules of the roles that it selects, soon after each change. Nothing is written when nothing changes.
func TestAggregation(t *testing.T) {
	t.Parallel()
	backend := newCommits()
	srv := servertest.Start(t, server.Options{Storage: storage.Opened(backend)}, mapsOnly(), rbac.New(rbac.Options{Bootstrap: []runtime.Object{}}))
	admin, roles := srv.Client(), srv.URL+group+"/clusterroles"
	get := func(name string) stored {
		var r stored
		if err := json.Unmarshal([]byte(ask(t, admin, "GET", roles+"/"+name, "").body), &r); err != nil {
			t.Error(err)
		}
		return r
	}
	part := func(name, label, rules string) {
		must(t, admin, "PUT", roles+"/"+name, fmt.Sprintf(`{"metadata":{"name":%q,"labels":{%q:"yes"}},"rules":[%s]}`, name, label, rules))
	}
	rule := func(resource string) string {
		return fmt.Sprintf(`{"verbs":["get"],"apiGroups":[""],"resources":[%q]}`, resource)
	}
	want := func(name string, resources ...string) {
		t.Helper()
		var got []string
		within(t, fmt.Sprint(name, " has ", resources), func() bool {
			got = nil
			for _, r := range get(name).Rules {
				got = append(got, r.Resources...)
			}
			return cmp.Equal(got, resources)
		})
		if t.Failed() {
			t.Fatalf("%s has %q, want %q", name, got, resources)
		}
	}
	part("z", "one", rule("a")+","+rule("b"))
	part("b", "two", rule("c")+","+rule("b"))
	selector := `{"matchLabels":{%q:"yes"}}`
	all := fmt.Sprintf("%s,%s", selector, selector)
	must(t, admin, "POST", roles, fmt.Sprintf(`{"metadata":{"name":"all","labels":{"one":"yes"}},"rules":[%s],"aggregationRule":{"clusterRoleSelectors":[`+all+`]}}`, rule("own"), "one", "two"))
	want("all", "a", "b", "c")
	part("a", "two", rule("d"))
	want("all", "a", "b", "d", "c")
	part("b", "three", rule("c"))
	want("all", "a", "b", "d")
	must(t, admin, "DELETE", roles+"/z", "")
	want("all", "d")
	must(t, admin, "PATCH-merge", roles+"/all", `{"rules":[`+rule("mine")+`]}`)
	want("all", "d")
	must(t, admin, "POST", roles, fmt.Sprintf(`{"metadata":{"name":"outer"},"aggregationRule":{"clusterRoleSelectors":[`+selector+`]}}`, "one"))
	want("outer", "d") // by way of all
	managers := map[string]string{}
	for _, m := range get("outer").ManagedFields {
		managers[m.Manager+" "+string(m.Operation)] = m.FieldsV1.GetRawString()
	}
	if got := managers["clusterrole-aggregation-controller Apply"]; len(managers) != 2 || got != `{"f:rules":{}}` {
		t.Errorf("managers %v", managers)
	}
	must(t, admin, "DELETE", roles+"/a", "")
	want("all")
	want("outer")
	quiet := backend.n.Load()
	must(t, admin, "PATCH-merge", roles+"/b", `{"metadata":{"annotations":{"x":"y"}}}`)
	must(t, admin, "DELETE", roles+"/all", "")
	must(t, admin, "PATCH-merge", roles+"/b", `{"metadata":{"annotations":{"x":"z"}}}`)
	part("c", "one", rule("e"))
	want("outer", "e")
	if n := backend.n.Load() - quiet; n != 5 {
		t.Errorf("%d writes, want those of the client and one of the controller", n)
	}
	if got := ask(t, admin, "GET", roles+"/all", ""); got.code != http.StatusNotFound {
		t.Errorf("a deleted role is there again: %d", got.code)
	}
}
