package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/internal/lifecycle"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const held = "example.com/held"

func TestDeletionTakesEverything(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{}, readingGroup())
	n.run()
	n.makeNamespace("a")
	n.makeNamespace("other")
	for i := range 20 {
		n.makeConfigMap("a", fmt.Sprintf("c%d", i))
		n.makeConfigMap("other", fmt.Sprintf("c%d", i))
		n.must(201, "POST", "/apis/example.com/v1/namespaces/a/gadgets", fmt.Sprintf(`{"metadata":{"name":"g%d"}}`, i))
	}
	n.must(201, "PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", `{"metadata":{"name":"l"}}`)
	n.must(200, "DELETE", "/api/v1/namespaces/a", "")
	n.waitGone("a")
	if left := n.content("a"); len(left) != 1 || left[0] != "readings/now" { // a computed kind without delete is no content
		t.Errorf("left: %v", left)
	}
	if there := n.content("other"); len(there) != 21 {
		t.Errorf("in the other namespace there are %d", len(there))
	}
	n.must(404, "POST", "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"late"}}`)
	n.makeNamespace("a")
	n.makeConfigMap("a", "again")
}

// readingGroup is a kind that can only be listed.
func readingGroup() server.Group {
	return server.Group{Name: "time.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Reading", server.KindOptions[*runtime.Resource[readingSpec, struct{}]]{Storage: readings{}}),
	}}}}
}

type readingSpec struct{}

type readings struct{}

func (readings) List(call *registry.Call, _ *metav1.ListOptions) (runtime.Object, error) {
	list := &runtime.List[runtime.Resource[readingSpec, struct{}]]{}
	item := runtime.Resource[readingSpec, struct{}]{}
	item.Name, item.Namespace = "now", call.Namespace
	list.Items = append(list.Items, item)
	return list, nil
}

// The conditions of a namespace describe the remaining content, only as long as there is some.
func TestContentWithFinalizersKeepsTheNamespace(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{})
	n.run()
	n.makeNamespace("a")
	n.makeConfigMap("a", "one", held)
	n.makeConfigMap("a", "two", held, "example.com/more")
	n.makeConfigMap("a", "three")
	n.deleteNamespace("a")
	conditions := func() string {
		ns, err := n.namespaces.Get(t.Context(), "", "a")
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, c := range ns.Status.Conditions {
			if c.Status == corev1.ConditionTrue {
				lines = append(lines, string(c.Type)+" "+c.Reason+": "+c.Message)
			}
		}
		return strings.Join(lines, "\n")
	}
	want := `NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: configmaps. has 2 resource instances
NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/held in 2 resource instances, example.com/more in 1 resource instances`
	n.wait("two objects are told", func() bool { return conditions() == want })
	release := func(name string) {
		t.Helper()
		if _, err := n.configMaps.Change(t.Context(), "a", name, func(c *corev1.ConfigMap) error { c.Finalizers = nil; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	release("two")
	want = `NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances
NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/held in 1 resource instances`
	n.wait("one object is told", func() bool { return conditions() == want })
	n.makeNamespace("other") // its deletion does not wait for the first one
	n.makeConfigMap("other", "c")
	n.deleteNamespace("other")
	n.waitGone("other")
	release("one")
	n.waitGone("a")
}

// An empty namespace is held by other finalizers in spec.finalizers, and by those in its metadata.
func TestFinalizersOfTheNamespaceStay(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{})
	n.run()
	n.must(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"a","finalizers":["example.com/held"]},"spec":{"finalizers":["example.com/own","kubernetes"]}}`)
	n.makeConfigMap("a", "c")
	n.deleteNamespace("a")
	n.wait("kubernetes is not among the finalizers", func() bool {
		ns, err := n.namespaces.Get(t.Context(), "", "a")
		if err != nil {
			t.Fatal(err)
		}
		return cmp.Equal(ns.Spec.Finalizers, []corev1.FinalizerName{"example.com/own"}) && cmp.Equal(ns.Finalizers, []string{held})
	})
	if left := n.content("a"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	n.must(200, "PUT", "/api/v1/namespaces/a/finalize", `{"metadata":{"name":"a"}}`)
	n.waitGone("a")
}

// A watch of namespaces has the events of kube-apiserver: marked, with conditions, deleted.
func TestDeletionAsWatched(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{})
	ns := n.makeNamespace("a")
	n.makeConfigMap("a", "c")
	r, err := n.host.Registry(namespacesResource())
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.WatchRecords(registry.NewCall(t.Context(), authn.System(), ""), storage.WatchOptions{Selection: storage.Selection{Name: "a"}, From: revisionOf(t, ns)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	n.run()
	n.deleteNamespace("a")
	var seen []string
	for last := watch.Modified; last != watch.Deleted; {
		events, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			obj, err := r.Decode(e.Record)
			if err != nil {
				t.Fatal(err)
			}
			ns := obj.(*corev1.Namespace)
			last = e.Type
			seen = append(seen, fmt.Sprintf("%s %s %d %d", e.Type, ns.Status.Phase, len(ns.Spec.Finalizers), len(ns.Status.Conditions)))
		}
	}
	want := []string{"MODIFIED Terminating 1 0", "MODIFIED Terminating 1 5", "DELETED Terminating 1 5"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestDeletionGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	n := start(t, b, lifecycle.Options{})
	stop := n.run()
	n.makeNamespace("marked")
	n.makeNamespace("begun")
	n.makeConfigMap("begun", "held", held)
	n.deleteNamespace("begun")
	n.wait("the deletion has begun", func() bool {
		ns, err := n.namespaces.Get(t.Context(), "", "begun")
		return err == nil && len(ns.Status.Conditions) > 0
	})
	stop()
	n.makeConfigMap("marked", "c")
	n.deleteNamespace("marked")
	_ = n.srv.Close()

	n = start(t, b, lifecycle.Options{})
	if n.content("marked") == nil {
		t.Error("content goes without Run")
	}
	n.run()
	n.waitGone("marked")
	if left := n.content("marked"); left != nil {
		t.Errorf("left: %v", left)
	}
	if _, err := n.configMaps.Change(t.Context(), "begun", "held", func(c *corev1.ConfigMap) error { c.Finalizers = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	n.waitGone("begun")
}

// A kind that is served later, while a namespace waits, is emptied too.
func TestKindsThatAppearLater(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	toys := server.Group{Name: "toys.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Toy", server.KindOptions[*runtime.Resource[toySpec, struct{}]]{Plural: "toys"}),
	}}}}
	before := start(t, b, lifecycle.Options{}, toys)
	before.makeNamespace("a")
	before.must(201, "POST", "/apis/toys.example.com/v1/namespaces/a/toys", `{"metadata":{"name":"t"}}`)
	before.makeConfigMap("a", "held", held)
	_ = before.srv.Close()

	n := start(t, b, lifecycle.Options{})
	n.run()
	n.deleteNamespace("a")
	n.wait("the deletion waits", func() bool {
		ns, err := n.namespaces.Get(t.Context(), "", "a")
		return err == nil && len(ns.Status.Conditions) > 0
	})
	if err := n.host.Serve(toys); err != nil {
		t.Fatal(err)
	}
	n.wait("the toy is deleted", func() bool { return cmp.Equal(n.content("a"), []string{"configmaps/held"}) })
	if _, err := n.configMaps.Change(t.Context(), "a", "held", func(c *corev1.ConfigMap) error { c.Finalizers = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	n.waitGone("a")
}

type toySpec struct{}

// While a kind cannot be read, or an object cannot be deleted, the namespace stays, because it may not be empty.
func TestABrokenStorageKeepsTheNamespace(t *testing.T) {
	t.Parallel()
	for what, broken := range map[string]func(key string) bool{
		"nothing can be read":    func(string) bool { return true },
		"one kind cannot be":     func(key string) bool { return strings.HasPrefix(key, "/registry/configmaps") },
		"every second is broken": func() func(string) bool { var n atomic.Int64; return func(string) bool { return n.Add(1)%2 == 0 } }(),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := newBackend(t)
			n := start(t, b, lifecycle.Options{})
			n.makeNamespace("a")
			for i := range 5 {
				n.makeConfigMap("a", fmt.Sprint("c", i))
			}
			n.makeConfigMap("a", "held", held)
			n.deleteNamespace("a")
			var asked atomic.Int64
			fail := func(key string) error {
				if !broken(key) {
					return nil
				}
				asked.Add(1)
				return fmt.Errorf("%w: a test broke it", storage.ErrUnavailable)
			}
			b.broken.Store(&fail)
			n.run()
			n.wait("it was tried", func() bool { return asked.Load() > 3 })
			b.broken.Store(nil)
			ns, err := n.namespaces.Get(t.Context(), "", "a")
			if err != nil || len(ns.Spec.Finalizers) != 1 {
				t.Fatalf("the namespace was let go: %v, %v", ns, err)
			}
			if _, err := n.configMaps.Change(t.Context(), "a", "held", func(c *corev1.ConfigMap) error { c.Finalizers = nil; return nil }); err != nil {
				t.Fatal(err)
			}
			n.waitGone("a")
			if left := n.content("a"); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// The deletion waits for creates that were admitted before the namespace was marked, however long they take.
func TestDeletionWaitsForCreatesUnderWay(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	n := start(t, b, lifecycle.Options{})
	n.run()
	n.makeNamespace("a")
	arrived, goOn := make(chan struct{}), make(chan struct{})
	before := func(c storage.Commit) {
		if strings.HasSuffix(c.Key, "/a/slow") && !c.Delete {
			close(arrived)
			<-goOn
		}
	}
	b.before.Store(&before)
	made := make(chan error, 1)
	go func() {
		// The context outlives the create, as in a controller in the process.
		_, err := n.configMaps.Create(context.Background(), "a", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "slow"}})
		made <- err
	}()
	<-arrived
	n.deleteNamespace("a")
	n.makeNamespace("b") // the deletion of another namespace does not wait
	n.deleteNamespace("b")
	n.waitGone("b")
	if _, err := n.namespaces.Get(t.Context(), "", "a"); err != nil {
		t.Fatalf("the namespace went while a create was under way: %v", err)
	}
	close(goOn)
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	n.waitGone("a")
	if left := n.content("a"); left != nil {
		t.Errorf("left: %v", left)
	}
}

// If admission refuses the deletion of an object, the namespace stays, and its conditions have the reason.
func TestRefusedDeletesAreReported(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{})
	var refuse atomic.Bool
	refuse.Store(true)
	plugin := refuseDeletes(&refuse)[0]
	plugin.Name = "refuse-deletes"
	if err := n.host.Admit(plugin); err != nil {
		t.Fatal(err)
	}
	n.run()
	n.makeNamespace("a")
	n.makeConfigMap("a", "c")
	n.deleteNamespace("a")
	want := `Failed to delete all resource types, 1 remaining: delete configmaps c: configmaps "c" is forbidden: not now`
	n.wait("the refusal is told", func() bool {
		ns, err := n.namespaces.Get(t.Context(), "", "a")
		return err == nil && len(ns.Status.Conditions) == 5 && ns.Status.Conditions[2].Message == want
	})
	refuse.Store(false)
	n.waitGone("a")
}

// A kind whose code panics does not end the server, and the namespace stays.
func TestAPanicKeepsTheNamespace(t *testing.T) {
	t.Parallel()
	p := &panicking{}
	p.on.Store(true)
	n := start(t, newBackend(t), lifecycle.Options{}, server.Group{Name: "panic.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Panic", server.KindOptions[*runtime.Resource[toySpec, struct{}]]{Storage: p}),
	}}}})
	n.run()
	n.makeNamespace("a")
	n.deleteNamespace("a")
	n.wait("it was tried again", func() bool { return p.asked.Load() > 3 })
	if _, err := n.namespaces.Get(t.Context(), "", "a"); err != nil {
		t.Fatal(err)
	}
	p.on.Store(false)
	n.waitGone("a")
}

type panicking struct {
	on    atomic.Bool
	asked atomic.Int64
}

func (p *panicking) List(*registry.Call, *metav1.ListOptions) (runtime.Object, error) {
	p.asked.Add(1)
	if p.on.Load() {
		panic("a mistake")
	}
	return &runtime.List[runtime.Resource[toySpec, struct{}]]{}, nil
}

func (p *panicking) Delete(*registry.Call, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return nil, false, errors.New("nothing is here")
}

// If a Storage of the program lists objects of other namespaces, these are not deleted.
func TestOtherNamespacesObjectsStay(t *testing.T) {
	t.Parallel()
	var o boastful
	n := start(t, newBackend(t), lifecycle.Options{}, server.Group{Name: "odd.example.com", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
		server.Kind("Odd", server.KindOptions[*runtime.Resource[toySpec, struct{}]]{Storage: &o}),
	}}}})
	n.run()
	n.makeNamespace("a")
	n.deleteNamespace("a")
	n.waitGone("a")
	if o.asked.Load() > 0 {
		t.Error("an object of another namespace was to be deleted")
	}
}

// boastful lists the same object for every namespace.
type boastful struct{ asked atomic.Int64 }

func (*boastful) List(*registry.Call, *metav1.ListOptions) (runtime.Object, error) {
	list := &runtime.List[runtime.Resource[toySpec, struct{}]]{}
	item := runtime.Resource[toySpec, struct{}]{}
	item.Name, item.Namespace = "one", "elsewhere"
	list.Items = append(list.Items, item)
	return list, nil
}

func (o *boastful) Delete(*registry.Call, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	o.asked.Add(1)
	return nil, true, nil
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{})
	n.makeNamespace("a")
	n.makeConfigMap("a", "held", held)
	n.deleteNamespace("a")
	for range 5 {
		stop := n.run()
		stop()
	}
	if _, err := n.namespaces.Get(t.Context(), "", "a"); apierrors.IsNotFound(err) {
		t.Error("the namespace is gone")
	}
}

// With a garbage collector the first DELETE of a namespace may leave a finalizer of the collector on it, and later ones change
// nothing.
func TestPoliciesOfTheDeleteOfANamespace(t *testing.T) {
	t.Parallel()
	n := start(t, newBackend(t), lifecycle.Options{})
	if err := n.host.CollectGarbage(); err != nil {
		t.Fatal(err)
	}
	for query, finalizer := range map[string]string{
		"propagationPolicy=Orphan": "orphan", "orphanDependents=true": "orphan", "propagationPolicy=Foreground": "foregroundDeletion", "propagationPolicy=Background": "",
	} {
		n.makeNamespace("a")
		first := n.must(200, "DELETE", "/api/v1/namespaces/a?"+query, "")
		if got := strings.Contains(first, `"orphan"`); got != (finalizer == "orphan") {
			t.Errorf("%s: %s", query, first)
		}
		if got := strings.Contains(first, `"foregroundDeletion"`); got != (finalizer == "foregroundDeletion") {
			t.Errorf("%s: %s", query, first)
		}
		if second := n.must(200, "DELETE", "/api/v1/namespaces/a?propagationPolicy=Foreground", ""); second != first {
			t.Errorf("%s: %s, then %s", query, first, second)
		}
		n.must(200, "PUT", "/api/v1/namespaces/a/finalize", `{"metadata":{"name":"a"}}`)
		n.must(404, "GET", "/api/v1/namespaces/a", "")
	}
}
