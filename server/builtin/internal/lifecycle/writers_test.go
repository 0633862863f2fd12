package lifecycle_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/builtin/internal/lifecycle"
	"github.com/keelson-dev/keelson/storage"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writer creates objects in the current namespace, in every possible way, until stop is closed. It counts the created and the
// refused objects.
func (n *node) writer(seed uint64, current func() string, stop <-chan struct{}, made, refused *atomic.Int64) {
	r := rand.New(rand.NewPCG(seed, 0))
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		ns, name := current(), fmt.Sprintf("w%d-%d", seed, i)
		var code int
		var text string
		var err error
		switch r.IntN(5) {
		case 0:
			code, text, err = n.ask("POST", "/api/v1/namespaces/"+ns+"/configmaps", "application/json", `{"metadata":{"name":"`+name+`"}}`)
		case 1:
			code, text, err = n.ask("POST", "/apis/example.com/v1/namespaces/"+ns+"/gadgets", "application/json", `{"metadata":{"generateName":"`+name+`-"}}`)
		case 2:
			code, text, err = n.ask("PATCH", "/api/v1/namespaces/"+ns+"/configmaps/"+name+"?fieldManager=w", "application/apply-patch+yaml",
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`"},"data":{"k":"v"}}`)
		case 3:
			code, text, err = n.ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/"+ns+"/leases/"+name, "application/json", `{"metadata":{"name":"`+name+`"}}`)
		case 4:
			_, err := n.configMaps.Create(context.Background(), ns, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
			switch {
			case err == nil:
				made.Add(1)
			case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause), apierrors.IsNotFound(err):
				refused.Add(1)
			default:
				n.t.Errorf("create: %v", err)
			}
			continue
		}
		switch {
		case err != nil:
			n.t.Errorf("%v", err)
		case code == 201:
			made.Add(1)
		case code == 404 || code == 403 && strings.Contains(text, "NamespaceTerminating"):
			refused.Add(1)
		default:
			n.t.Errorf("%d %s", code, text)
		}
	}
}

// slowly delays every tenth create on its way to the storage, so that namespaces are marked meanwhile.
func slowly(b backend) {
	var n atomic.Int64
	before := func(c storage.Commit) {
		if !c.Delete && !strings.HasPrefix(c.Key, "/registry/namespaces/") && n.Add(1)%10 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	b.before.Store(&before)
}

// From the moment at which a namespace is gone, it has no objects, whatever clients write.
func TestWritersAgainstTheDeletion(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	slowly(b)
	n := start(t, b, lifecycle.Options{})
	n.run()
	var name atomic.Value
	name.Store("r0")
	n.makeNamespace("r0")
	stop := make(chan struct{})
	var writers sync.WaitGroup
	finish := sync.OnceFunc(func() { close(stop); writers.Wait() })
	defer finish()
	var made, refused atomic.Int64
	for seed := range uint64(6) {
		writers.Go(func() { n.writer(seed, func() string { return name.Load().(string) }, stop, &made, &refused) })
	}
	const rounds = 25
	for i := range rounds {
		ns := fmt.Sprint("r", i)
		before := made.Load()
		n.wait("objects are made", func() bool { return made.Load() > before+10 })
		n.deleteNamespace(ns)
		n.waitGone(ns)
		if left := n.content(ns); left != nil {
			t.Errorf("%s is gone, and there is %v", ns, left)
		}
		next := fmt.Sprint("r", i+1)
		n.makeNamespace(next)
		name.Store(next)
	}
	finish()
	for i := range rounds {
		if left := n.content(fmt.Sprint("r", i)); left != nil {
			t.Errorf("r%d was gone, and now there is %v", i, left)
		}
	}
	if refused.Load() == 0 {
		t.Error("nothing was refused: the writers do not race with the deletion")
	}
}

// With several servers with late caches, objects that their creates leave are deleted soon.
func TestWritersOnSeveralServers(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	slowly(b)
	nodes := []*node{start(t, b, lifecycle.Options{})}
	for _, lag := range []time.Duration{3 * time.Millisecond, 20 * time.Millisecond} {
		late := b
		late.lag = lag
		nodes = append(nodes, start(t, late, lifecycle.Options{}))
	}
	nodes[0].run()
	nodes[1].run() // two servers run the deletion at once
	var name atomic.Value
	name.Store("r0")
	n := nodes[0]
	n.makeNamespace("r0")
	stop := make(chan struct{})
	var writers sync.WaitGroup
	finish := sync.OnceFunc(func() { close(stop); writers.Wait() })
	defer finish()
	var made, refused atomic.Int64
	for i, node := range nodes {
		for seed := range uint64(2) {
			writers.Go(func() {
				node.writer(10*uint64(i)+seed, func() string { return name.Load().(string) }, stop, &made, &refused)
			})
		}
	}
	const rounds = 20
	for i := range rounds {
		ns := fmt.Sprint("r", i)
		before := made.Load()
		n.wait("objects are made", func() bool { return made.Load() > before+10 })
		nodes[rand.IntN(len(nodes))].deleteNamespace(ns)
		n.waitGone(ns)
		next := fmt.Sprint("r", i+1)
		n.makeNamespace(next)
		name.Store(next)
	}
	finish()
	for i := range rounds {
		ns := fmt.Sprint("r", i)
		n.wait("nothing is left in "+ns, func() bool { return n.content(ns) == nil })
	}
	if refused.Load() == 0 {
		t.Error("nothing was refused: the writers do not race with the deletion")
	}
}

// A namespace that was lost without a deletion is not swept: its objects stay.
func TestALostNamespaceIsNotSwept(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	n := start(t, b, lifecycle.Options{})
	n.run()
	n.makeNamespace("lost")
	n.makeConfigMap("lost", "c")
	res, err := b.Get(t.Context(), "/registry/namespaces/lost", 0)
	if err != nil || !res.Found {
		t.Fatal(res, err)
	}
	if _, err := b.Commit(t.Context(), storage.Commit{Key: "/registry/namespaces/lost", Expect: res.KV.Revision, Delete: true}); err != nil {
		t.Fatal(err)
	}
	n.makeNamespace("after")
	n.deleteNamespace("after")
	n.waitGone("after") // so that earlier deletions have been observed and handled
	n.stays("its object is there", func() bool { return len(n.content("lost")) == 1 })
}

// An object that a create of another server stores after the end of its namespace is deleted when the create has ended.
func TestACreateOfAnotherServerComesLate(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	n, other := start(t, b, lifecycle.Options{}), start(t, b, lifecycle.Options{})
	n.run()
	n.makeNamespace("a")
	n.makeNamespace("b")
	land := other.createLate(b)
	n.deleteNamespace("a")
	n.waitGone("a")
	other.deleteNamespace("b")
	other.waitGone("b") // so that the other server has observed the end of a
	land()
	n.wait("what came late is deleted", func() bool { return n.content("a") == nil })
}

// createLate starts a create of a ConfigMap in the namespace a and holds it in front of the storage b. land lets it continue and
// waits until the object is stored.
func (n *node) createLate(b backend) (land func()) {
	n.t.Helper()
	arrived, goOn := make(chan struct{}), make(chan struct{})
	before := func(c storage.Commit) {
		if strings.HasSuffix(c.Key, "/a/late") && !c.Delete {
			close(arrived)
			<-goOn
		}
	}
	b.before.Store(&before)
	made := make(chan error, 1)
	go func() {
		_, err := n.configMaps.Create(context.Background(), "a", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}})
		made <- err
	}()
	<-arrived
	return func() {
		n.t.Helper()
		close(goOn)
		if err := <-made; err != nil {
			n.t.Fatal(err)
		}
	}
}
