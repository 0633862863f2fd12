package garbage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/builtin/internal/garbage"
	"github.com/keelson-dev/keelson/server/catalogue"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/memory"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const group = "example.com"

type (
	Set = runtime.Resource[struct {
		Size int32 `json:"size,omitempty"`
	}, struct{}]
	OldSet = runtime.Resource[struct {
		Count int32 `json:"count,omitempty"`
	}, struct{}]
	Pod = runtime.Resource[struct {
		Image string `json:"image,omitempty"`
	}, struct{}]
	Node = runtime.Resource[struct {
		Zone string `json:"zone,omitempty"`
	}, struct{}]
	Late = runtime.Resource[struct {
		Hour int32 `json:"hour,omitempty"`
	}, struct{}]
)

func kinds() server.Group {
	return server.Group{
		Name: group,
		Versions: []server.Version{
			{Name: "v1", Resources: []server.Resource{
				server.Kind("Set", server.KindOptions[*Set]{}),
				server.Kind("Pod", server.KindOptions[*Pod]{}),
				server.Kind("Node", server.KindOptions[*Node]{ClusterScoped: true}),
			}},
			{Name: "v1beta1", Resources: []server.Resource{server.Kind("Set", server.KindOptions[*OldSet]{})}},
		},
		Conversions: []server.Conversion{server.Convert(
			func(in *OldSet, out *Set) error {
				out.ObjectMeta, out.Spec.Size = in.ObjectMeta, in.Spec.Count
				return nil
			},
			func(in *Set, out *OldSet) error {
				out.ObjectMeta, out.Spec.Count = in.ObjectMeta, in.Spec.Size
				return nil
			},
		)},
	}
}

// house is a server with a collector.
type house struct {
	*servertest.Server
	t    *testing.T
	host *server.Host

	mu      sync.Mutex // guards what follows
	invalid []garbage.Invalid
}

// lasting is a backend that outlives its servers.
type lasting struct{ storage.Backend }

func (lasting) Close() error { return nil }

func newHouse(t *testing.T, backend storage.Backend, groups ...server.Group) *house {
	t.Helper()
	opts := server.Options{Groups: groups}
	if backend != nil {
		opts.Storage = storage.Opened(lasting{backend})
	}
	h := &house{Server: servertest.Start(t, opts), t: t}
	h.collect(h.Install)
	return h
}

// collect starts a collector.
func (h *house) collect(install func(server.Extension) error) {
	h.t.Helper()
	t := h.t
	check(t, install(server.ExtensionFunc(func(host *server.Host) error {
		h.host = host
		collector, err := garbage.New(garbage.Options{Catalogue: host.Catalogue(), Hooks: garbage.Hooks{Invalid: h.note}})
		if err != nil {
			return err
		}
		if err := host.CollectGarbage(); err != nil {
			return err
		}
		host.Go(func(ctx context.Context) {
			if err := collector.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		return nil
	})))
}

func (h *house) note(i garbage.Invalid) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.invalid = append(h.invalid, i)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// objects returns the objects of a resource.
func (h *house) objects(resource string) *catalogue.Objects {
	h.t.Helper()
	for _, k := range h.host.Catalogue().Kinds() {
		if k.Resource.Resource == resource {
			return k.Objects
		}
	}
	h.t.Fatalf("no resource %s is served", resource)
	return nil
}

func typed[T runtime.Object](h *house, resource string) *registry.Typed[T] {
	h.t.Helper()
	reg, err := h.host.Registry(schema.GroupResource{Group: group, Resource: resource})
	check(h.t, err)
	out, err := registry.For[T](reg, authn.System())
	check(h.t, err)
	return out
}

func (h *house) set(namespace, name string, owners ...metav1.OwnerReference) *Set {
	h.t.Helper()
	out, err := typed[*Set](h, "sets").Create(h.t.Context(), namespace, &Set{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}})
	check(h.t, err)
	return out
}

func (h *house) pod(namespace, name string, finalizers []string, owners ...metav1.OwnerReference) *Pod {
	h.t.Helper()
	out, err := typed[*Pod](h, "pods").Create(h.t.Context(), namespace, &Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners, Finalizers: finalizers}})
	check(h.t, err)
	return out
}

func (h *house) node(name string, owners ...metav1.OwnerReference) *Node {
	h.t.Helper()
	out, err := typed[*Node](h, "nodes").Create(h.t.Context(), "", &Node{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}})
	check(h.t, err)
	return out
}

func ref(version, kind string, m metav1.Object, block bool) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: group + "/" + version, Kind: kind, Name: m.GetName(), UID: m.GetUID(), BlockOwnerDeletion: &block}
}

func (h *house) delete(resource, namespace, name string, policy metav1.DeletionPropagation) {
	h.t.Helper()
	check(h.t, h.objects(resource).Delete(h.t.Context(), namespace, name, &metav1.DeleteOptions{PropagationPolicy: &policy}))
}

// get returns an object, or nil if it is gone.
func (h *house) get(resource, namespace, name string) *metav1.PartialObjectMetadata {
	h.t.Helper()
	m, err := h.objects(resource).Get(h.t.Context(), namespace, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	check(h.t, err)
	return m
}

// eventually waits until is returns true.
func (h *house) eventually(what string, is func() bool) {
	h.t.Helper()
	for range 3000 {
		if is() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	h.t.Fatalf("never: %s", what)
}

func (h *house) gone(resource, namespace, name string) {
	h.t.Helper()
	h.eventually(fmt.Sprintf("%s %s/%s gone", resource, namespace, name), func() bool { return h.get(resource, namespace, name) == nil })
}

// settled waits until the collector has examined everything that was written before: it waits for the deletion of a new
// dependent.
func (h *house) settled() {
	h.t.Helper()
	nobody := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "nobody", UID: "nobody"}}
	h.pod("default", "canary", nil, ref("v1", "Set", nobody, true))
	h.gone("pods", "default", "canary")
}

func TestBackground(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, kinds())
	node := h.node("n")
	set := h.set("default", "s", ref("v1", "Node", node, false))
	h.pod("default", "p", nil, ref("v1beta1", "Set", set, true)) // another version of the same object
	h.pod("default", "free", nil)
	h.settled()
	if h.get("pods", "default", "p") == nil || h.get("sets", "default", "s") == nil {
		t.Fatal("a dependent went before its owner")
	}
	h.delete("nodes", "", "n", metav1.DeletePropagationBackground)
	h.gone("sets", "default", "s")
	h.gone("pods", "default", "p")
	h.pod("default", "late", nil, ref("v1beta1", "Set", set, true)) // its owner is long gone
	h.gone("pods", "default", "late")
	again := h.set("default", "s")
	h.pod("default", "mine", nil, ref("v1", "Set", again, true))
	h.pod("default", "theirs", nil, ref("v1", "Set", set, true)) // another owner has the name, with another uid
	h.gone("pods", "default", "theirs")
	h.settled()
	if h.get("pods", "default", "free") == nil || h.get("pods", "default", "mine") == nil {
		t.Error("an object went that is free, or has an owner")
	}
}

func TestForegroundWaits(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, kinds())
	const hold = "example.com/hold"
	top := h.set("default", "top")
	middle := h.set("default", "middle", ref("v1", "Set", top, true))
	h.pod("default", "leaf", []string{hold}, ref("v1", "Set", middle, true))
	h.pod("default", "aside", []string{hold}, ref("v1", "Set", top, false))
	other := h.set("default", "other")
	h.pod("default", "shared", nil, ref("v1", "Set", top, true), ref("v1", "Set", other, true))
	h.delete("sets", "default", "top", metav1.DeletePropagationForeground)
	h.eventually("leaf and aside being deleted", func() bool {
		leaf, aside := h.get("pods", "default", "leaf"), h.get("pods", "default", "aside")
		return leaf.DeletionTimestamp != nil && aside.DeletionTimestamp != nil
	})
	h.eventually("shared without its deleted owner", func() bool { return len(h.get("pods", "default", "shared").OwnerReferences) == 1 })
	h.settled()
	for _, name := range []string{"top", "middle"} {
		m := h.get("sets", "default", name)
		if m == nil || m.DeletionTimestamp == nil || !slices.Equal(m.Finalizers, []string{metav1.FinalizerDeleteDependents}) {
			t.Errorf("%s while its dependent is there: %+v", name, m)
		}
	}
	check(t, h.objects("pods").Change(t.Context(), "default", "leaf", func(m metav1.Object) error { m.SetFinalizers(nil); return nil }))
	h.gone("pods", "default", "leaf")
	h.gone("sets", "default", "middle")
	h.gone("sets", "default", "top")
	h.settled()
	if h.get("pods", "default", "aside") == nil || h.get("pods", "default", "shared") == nil {
		t.Error("a dependent that is held, or has another owner, went")
	}
}

func TestForegroundOfCircles(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, kinds())
	for _, n := range []int{1, 2, 3} {
		for both := range 2 {
			sets := make([]*Set, n)
			for i := range sets {
				sets[i] = h.set("default", fmt.Sprintf("c%d-%d-%d", n, both, i))
			}
			for i := range sets {
				check(t, h.objects("sets").Change(t.Context(), "default", sets[i].Name, func(m metav1.Object) error {
					m.SetOwnerReferences([]metav1.OwnerReference{ref("v1", "Set", sets[(i+1)%n], true)})
					return nil
				}))
			}
			h.delete("sets", "default", sets[0].Name, metav1.DeletePropagationForeground)
			if both > 0 { // the user requests it for all of them
				for _, s := range sets[1:] {
					policy := metav1.DeletePropagationForeground
					err := h.objects("sets").Delete(t.Context(), "default", s.Name, &metav1.DeleteOptions{PropagationPolicy: &policy})
					if err != nil && !apierrors.IsNotFound(err) {
						t.Fatal(err)
					}
				}
			}
			for _, s := range sets {
				h.gone("sets", "default", s.Name)
			}
		}
	}
}

// Dependents that were created just before their owner was deleted with the policy Orphan are kept. The collector may not have
// received them yet.
func TestOrphanKeepsTheLatest(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, kinds())
	for i := range 30 {
		owner, name := h.set("default", fmt.Sprintf("s%d", i)), fmt.Sprintf("p%d", i)
		h.pod("default", name, nil, ref("v1", "Set", owner, true))
		h.node(name) // just before the deletion
		h.delete("sets", "default", owner.Name, metav1.DeletePropagationOrphan)
	}
	for i := range 30 {
		h.gone("sets", "default", fmt.Sprintf("s%d", i))
	}
	h.settled()
	for i := range 30 {
		if m := h.get("pods", "default", fmt.Sprintf("p%d", i)); m == nil || len(m.OwnerReferences) > 0 {
			t.Errorf("p%d: %+v", i, m)
		}
	}
}

func TestForegroundWaitsForTheLatest(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, kinds())
	for i := range 30 {
		owner, name := h.set("default", fmt.Sprintf("s%d", i)), fmt.Sprintf("p%d", i)
		h.pod("default", name, []string{"example.com/hold"}, ref("v1", "Set", owner, true))
		h.delete("sets", "default", owner.Name, metav1.DeletePropagationForeground)
	}
	h.settled()
	for i := range 30 {
		if h.get("sets", "default", fmt.Sprintf("s%d", i)) == nil {
			t.Errorf("s%d has not waited", i)
		}
	}
}

func TestReferencesThatCannotHold(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, kinds())
	here, there := h.set("here", "s"), h.set("there", "s2")
	h.pod("here", "across", nil, ref("v1", "Set", there, true))
	h.pod("here", "wrong-name", nil, metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Set", Name: "x", UID: here.UID})
	h.pod("here", "wrong-kind", nil, metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Pod", Name: "s", UID: here.UID})
	h.pod("here", "half", nil, ref("v1", "Set", there, true), ref("v1", "Set", here, true))
	h.node("up", ref("v1", "Set", here, true))
	h.pod("here", "elsewhere", nil, metav1.OwnerReference{APIVersion: "elsewhere.io/v1", Kind: "Thing", Name: "x", UID: "x"})
	h.pod("here", "unserved", nil, metav1.OwnerReference{APIVersion: group + "/v9", Kind: "Set", Name: "gone", UID: "y"})
	for _, name := range []string{"across", "wrong-name", "wrong-kind"} {
		h.gone("pods", "here", name)
	}
	h.eventually("half without the wrong half", func() bool {
		refs := h.get("pods", "here", "half").OwnerReferences
		return len(refs) == 1 && refs[0].UID == here.UID
	})
	h.delete("sets", "here", "s", metav1.DeletePropagationForeground) // does not wait for the node
	h.gone("sets", "here", "s")
	h.gone("pods", "here", "half")
	h.settled()
	if h.get("nodes", "", "up") == nil || h.get("pods", "here", "elsewhere") == nil || h.get("pods", "here", "unserved") == nil {
		t.Error("an object went of whose owner nothing can be known")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	reports := map[string]int{}
	for _, i := range h.invalid {
		reports[i.Name]++
		if i.Message == "" || i.Kind.Kind == "" || i.Resource.Group != group || i.Reference.UID == "" || i.UID == "" {
			t.Errorf("told of %+v", i)
		}
	}
	if reports["across"] != 1 || reports["up"] != 1 || len(reports) > 3 { // half is optional: it is reported if the owner was seen before
		t.Errorf("told of %v", reports)
	}
}

func TestKindsComeAndGo(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil, kinds())
	late := server.Group{Name: group, Versions: []server.Version{{Name: "v1", Resources: []server.Resource{server.Kind("Late", server.KindOptions[*Late]{Plural: "lates"})}}}}
	gone := metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Late", Name: "gone", UID: "gone"}
	h.pod("default", "p", nil, gone)
	h.settled()
	if h.get("pods", "default", "p") == nil {
		t.Fatal("the owner's kind is not served, and was taken for absent")
	}
	check(t, h.host.Serve(late))
	owner, err := typed[*Late](h, "lates").Create(t.Context(), "default", &Late{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "l"}})
	check(t, err)
	h.gone("pods", "default", "p")
	h.pod("default", "q", nil, ref("v1", "Late", owner, true))
	check(t, h.host.Withdraw(schema.GroupResource{Group: group, Resource: "lates"}))
	h.pod("default", "r", nil, gone)
	h.settled()
	if h.get("pods", "default", "q") == nil || h.get("pods", "default", "r") == nil {
		t.Fatal("a kind was withdrawn, and its objects were taken for absent")
	}
	check(t, h.host.Serve(late))
	h.gone("pods", "default", "r")
	check(t, h.objects("lates").Delete(t.Context(), "default", "l", nil))
	h.gone("pods", "default", "q")
}

// broken is a kind that fails for every request.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Get(*registry.Call, string, *metav1.GetOptions) (runtime.Object, error) {
	return nil, errBroken
}

func (broken) List(*registry.Call, *metav1.ListOptions) (runtime.Object, error) {
	return nil, errBroken
}

func (broken) Watch(*registry.Call, *metav1.ListOptions) (registry.ObjectWatch, error) {
	return nil, errBroken
}

func (broken) Delete(*registry.Call, string, *metav1.DeleteOptions) (runtime.Object, bool, error) {
	return nil, false, errBroken
}

func TestBrokenKindStopsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, err := server.New(server.Options{Storage: memory.Open(), Groups: []server.Group{kinds(), {Name: "broken.io", Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("Late", server.KindOptions[*Late]{Storage: broken{}}),
		}}}}}})
		check(t, err)
		defer func() { check(t, srv.Close()) }()
		h := &house{t: t}
		h.collect(srv.Install)
		h.pod("default", "p", nil, metav1.OwnerReference{APIVersion: "broken.io/v1", Kind: "Late", Name: "x", UID: "x"})
		top := h.set("default", "top")
		h.pod("default", "q", nil, ref("v1", "Set", top, true))
		h.delete("sets", "default", "top", metav1.DeletePropagationForeground)
		h.gone("pods", "default", "q")
		time.Sleep(8 * time.Second)
		if h.get("sets", "default", "top") == nil {
			t.Error("a foreground deletion has hardly waited for a kind that cannot be listed")
		}
		h.gone("sets", "default", "top")
		h.settled()
		if h.get("pods", "default", "p") == nil {
			t.Error("an owner that cannot be read was taken for absent")
		}
	})
}

// Two servers on one storage run collectors at once, under random load.
func TestTwoCollectorsDoNoHarm(t *testing.T) {
	t.Parallel()
	backend := memory.New(memory.Options{})
	t.Cleanup(func() { _ = backend.Close() })
	houses := []*house{newHouse(t, backend, kinds()), newHouse(t, backend, kinds())}
	root := houses[0].set("default", "root")
	var wg sync.WaitGroup
	const users, rounds = 4, 25
	for u := range users {
		wg.Go(func() {
			h := houses[u%2]
			sets, pods := h.objects("sets"), h.objects("pods")
			for i := range rounds {
				name := fmt.Sprintf("u%d-%d", u, i)
				owner := h.set("default", name)
				h.pod("default", name+"-only", nil, ref("v1", "Set", owner, true))
				h.pod("default", name+"-shared", nil, ref("v1", "Set", owner, i%2 == 0), ref("v1", "Set", root, true))
				child := h.set("default", name+"-child", ref("v1", "Set", owner, true))
				h.pod("default", name+"-leaf", nil, ref("v1beta1", "Set", child, true))
				policy := []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}[(i+u)%3]
				if err := sets.Delete(t.Context(), "default", name, &metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
					t.Error(err)
				}
				_ = pods.Change(t.Context(), "default", name+"-shared", func(m metav1.Object) error { // another field changes all the time
					m.SetLabels(map[string]string{"round": name})
					return nil
				})
			}
		})
	}
	wg.Wait()
	h := houses[1]
	for u := range users {
		for i := range rounds {
			name := fmt.Sprintf("u%d-%d", u, i)
			h.gone("sets", "default", name)
			orphaned := (i+u)%3 == 2
			for _, part := range []struct{ resource, name string }{{"pods", "only"}, {"sets", "child"}, {"pods", "leaf"}} {
				if !orphaned {
					h.gone(part.resource, "default", name+"-"+part.name)
				} else if h.get(part.resource, "default", name+"-"+part.name) == nil {
					t.Errorf("%s-%s was to be kept", name, part.name)
				}
			}
			h.eventually(name+"-shared with one owner", func() bool {
				m := h.get("pods", "default", name+"-shared")
				return m != nil && len(m.OwnerReferences) == 1 && m.OwnerReferences[0].UID == root.UID
			})
		}
	}
}
