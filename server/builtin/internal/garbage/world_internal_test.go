package garbage

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/catalogue"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// world is a model of a server as a collector sees it: objects of several kinds with the rules of deletion, and a log of changes
// for each kind, which a collector reads with random delays. Every action of the collector is checked against the state at that
// moment. Nothing is concurrent: random events happen between two calls.
type world struct {
	t        *testing.T
	rnd      *rand.Rand
	kinds    []*worldKind
	drivers  []*driver
	revision int
	uids     int
	calm     bool // no faults, and no events between calls
	depth    int
	sweeps   int // in progress
	dead     []metav1.OwnerReference
	// orphaned and waited are the dependents and owners at the moment when the owner was deleted with a policy that protects the
	// dependent or waits for it.
	orphaned, waited map[pair]bool
	// below has all pairs that existed when an owner, the key, began to wait.
	below map[types.UID]map[pair]bool
	// These are owners that were waiting or orphaning at any time: a later change of the policy has no effect.
	waiting, orphaning map[types.UID]bool
	circles            map[pair]bool // pairs that waited for each other at any time
	deleted, trimmed   int           // number of changes by a collector
	released           int
}

type pair struct{ dependent, owner types.UID }

// worldKind is one kind of the world.
type worldKind struct {
	kindInfo
	w           *world
	served      bool
	broken      bool // every call fails
	unlisted    bool // it was broken when it was to be listed
	unwatchable bool
	unreadable  bool
	items       map[string]*metav1.PartialObjectMetadata // by namespace and name
	log         []catalogue.Event
}

const group = "example.com"

func gvk(version, kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: version, Kind: kind}
}

func newWorld(t *testing.T, seed uint64, collectors int) *world {
	w := &world{t: t, rnd: rand.New(rand.NewPCG(seed, 1)), orphaned: map[pair]bool{}, waited: map[pair]bool{}, waiting: map[types.UID]bool{}, orphaning: map[types.UID]bool{}, circles: map[pair]bool{}, below: map[types.UID]map[pair]bool{}}
	add := func(kind string, namespaced bool, set func(k *worldKind)) {
		k := &worldKind{w: w, served: true, items: map[string]*metav1.PartialObjectMetadata{}}
		k.kindInfo = kindInfo{resource: schema.GroupResource{Group: group, Resource: kind}, hub: gvk("v1", kind), namespaced: namespaced, collected: true}
		k.known = []schema.GroupVersionKind{k.hub}
		if set != nil {
			set(k)
		}
		w.kinds = append(w.kinds, k)
	}
	add("Pod", true, nil)
	add("Set", true, func(k *worldKind) { k.known = append(k.known, gvk("v1beta1", "Set")) })
	add("Node", false, nil)
	add("Fixed", true, func(k *worldKind) { k.collected = false })
	add("Special", true, func(k *worldKind) { k.unwatchable = true })
	add("Blob", true, func(k *worldKind) { k.unreadable, k.collected = true, false })
	for range collectors {
		w.drivers = append(w.drivers, newDriver(w))
	}
	return w
}

func key(namespace, name string) string { return namespace + "/" + name }

func (w *world) chance(percent int) bool { return w.rnd.IntN(100) < percent }

func pick[T any](w *world, from []T) T { return from[w.rnd.IntN(len(from))] }

// all returns every object of the served kinds, in a deterministic order.
func (w *world) all() (objects []*metav1.PartialObjectMetadata, kinds []*worldKind) {
	for _, k := range w.kinds {
		for _, name := range slices.Sorted(maps.Keys(k.items)) {
			objects, kinds = append(objects, k.items[name]), append(kinds, k)
		}
	}
	return objects, kinds
}

// put stores an object, and remove removes one.
func (k *worldKind) put(m *metav1.PartialObjectMetadata, typ watch.EventType) {
	k.w.revision++
	m = m.DeepCopy()
	m.ResourceVersion = strconv.Itoa(k.w.revision)
	k.items[key(m.Namespace, m.Name)] = m
	k.log = append(k.log, catalogue.Event{Type: typ, Object: *m})
	k.w.noteCircles()
}

func (k *worldKind) remove(m *metav1.PartialObjectMetadata) {
	k.w.revision++
	delete(k.items, key(m.Namespace, m.Name))
	m = m.DeepCopy()
	m.ResourceVersion = strconv.Itoa(k.w.revision)
	k.log = append(k.log, catalogue.Event{Type: watch.Deleted, Object: *m})
	k.w.dead = append(k.w.dead, refTo(k, m))
}

func refTo(k *worldKind, m *metav1.PartialObjectMetadata) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: k.hub.GroupVersion().String(), Kind: k.hub.Kind, Name: m.Name, UID: m.UID}
}

// update stores a changed object, or removes it when it was only waiting for its finalizers.
func (k *worldKind) update(m *metav1.PartialObjectMetadata) {
	if m.DeletionTimestamp != nil && len(m.Finalizers) == 0 {
		k.remove(m)
		return
	}
	k.put(m, watch.Modified)
}

var errFault = errors.New("fault")

func (k *worldKind) fault() error {
	if k.broken && !k.w.calm || !k.w.calm && k.w.chance(3) {
		return errFault
	}
	return nil
}

// Get implements objects, like the other methods.
func (k *worldKind) Get(_ context.Context, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	k.w.meanwhile()
	if k.unreadable {
		return nil, apierrors.NewMethodNotSupported(k.resource, "get")
	}
	if err := k.fault(); err != nil {
		return nil, err
	}
	m := k.items[key(namespace, name)]
	if m == nil {
		return nil, apierrors.NewNotFound(k.resource, name)
	}
	return m.DeepCopy(), nil
}

func (k *worldKind) List(_ context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	k.w.sweeps++ // a caller that joined a sweep would wait for it forever here
	k.w.meanwhile()
	k.w.sweeps--
	if k.broken && !k.w.calm {
		k.unlisted = true
		return nil, errFault
	}
	var out []metav1.PartialObjectMetadata
	for _, name := range slices.Sorted(maps.Keys(k.items)) {
		if m := k.items[name]; namespace == "" || m.Namespace == namespace {
			out = append(out, *m.DeepCopy())
		}
	}
	return out, nil
}

func (k *worldKind) Change(_ context.Context, namespace, name string, change func(m metav1.Object) error) error {
	for {
		if err := k.fault(); err != nil {
			return err
		}
		old := k.items[key(namespace, name)]
		if old == nil {
			return apierrors.NewNotFound(k.resource, name)
		}
		m := old.DeepCopy()
		if err := change(m); err != nil {
			return err
		}
		k.w.meanwhile()
		if k.items[key(namespace, name)] != old {
			continue
		}
		k.w.checkChange(k, old, m)
		k.update(m)
		return k.fault()
	}
}

func (k *worldKind) Delete(_ context.Context, namespace, name string, opts *metav1.DeleteOptions) error {
	k.w.meanwhile()
	if err := k.fault(); err != nil {
		return err
	}
	m := k.items[key(namespace, name)]
	if m == nil {
		return apierrors.NewNotFound(k.resource, name)
	}
	if p := opts.Preconditions; p == nil || p.UID == nil || p.ResourceVersion == nil {
		k.w.t.Errorf("deletion of %s %s without preconditions", k.resource, name)
	} else if *p.UID != m.UID || *p.ResourceVersion != m.ResourceVersion {
		return apierrors.NewConflict(k.resource, name, errors.New("precondition"))
	}
	k.w.checkDelete(k, m, *opts.PropagationPolicy)
	k.delete(m, *opts.PropagationPolicy)
	return k.fault()
}

// delete follows the rules of kube-apiserver for finalizers.
func (k *worldKind) delete(m *metav1.PartialObjectMetadata, policy metav1.DeletionPropagation) {
	m = m.DeepCopy()
	m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
	switch {
	case k.unwatchable: // the kind has rules of its own
	case policy == metav1.DeletePropagationForeground:
		m.Finalizers = append(m.Finalizers, metav1.FinalizerDeleteDependents)
	case policy == metav1.DeletePropagationOrphan:
		m.Finalizers = append(m.Finalizers, metav1.FinalizerOrphanDependents)
	}
	if m.DeletionTimestamp == nil {
		m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0)}
	}
	if !k.unwatchable {
		k.w.promise(k, m, policy)
	}
	k.update(m)
}
