package garbage

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

const hold = "example.com/hold"

// Random worlds: whatever users do, no object with an owner is deleted, dependents are orphaned or waited for according to the
// policy, and at the end all garbage is deleted.
func TestRandomWorlds(t *testing.T) {
	t.Parallel()
	worlds := 300
	if n, err := strconv.Atoi(os.Getenv("KEELSON_WORLDS")); err == nil {
		worlds = n
	}
	deleted, trimmed, released := 0, 0, 0
	for seed := range worlds {
		w := newWorld(t, uint64(seed), 1+seed%2)
		for range 50 + w.rnd.IntN(250) {
			w.step()
		}
		w.settle()
		deleted, trimmed, released = deleted+w.deleted, trimmed+w.trimmed, released+w.released
		if t.Failed() {
			t.Fatalf("seed %d:\n%v", seed, w)
		}
	}
	t.Logf("%d deleted, %d references removed, %d released", deleted, trimmed, released)
	if deleted < worlds || trimmed < worlds || released < worlds {
		t.Error("little has happened: what does this test show?")
	}
}

// step makes a random event happen.
func (w *world) step() {
	switch n := w.rnd.IntN(100); {
	case n < 30:
		w.user()
	case n < 65:
		for range 1 + w.rnd.IntN(6) {
			pick(w, w.drivers).see(pick(w, w.kinds))
		}
	case n < 95:
		w.collect()
	case n < 97:
		pick(w, w.drivers).end(pick(w, w.kinds))
	case n < 98:
		k := pick(w, w.kinds)
		k.broken = !k.broken
	default:
		k := pick(w, w.kinds)
		k.served = !k.served
		for _, m := range k.items { // kinds that are not served have no guarantees
			for _, promises := range slices.AppendSeq([]map[pair]bool{w.orphaned, w.waited}, maps.Values(w.below)) {
				maps.DeleteFunc(promises, func(p pair, _ bool) bool { return p.dependent == m.UID })
			}
		}
		for _, d := range w.drivers {
			d.serve()
		}
	}
}

func (w *world) collect() {
	d := pick(w, w.drivers)
	if !d.work() {
		d.now = d.now.Add(time.Duration(w.rnd.IntN(int(time.Minute))))
	}
}

// meanwhile makes random events happen between two calls of a collector.
func (w *world) meanwhile() {
	if w.calm || w.depth > 1 || !w.chance(30) {
		return
	}
	w.depth++
	defer func() { w.depth-- }()
	switch {
	case w.chance(50):
		w.user()
	case w.chance(60) || w.depth > 1 || w.sweeps > 0:
		pick(w, w.drivers).see(pick(w, w.kinds))
	default:
		w.collect()
	}
}

// user makes a random change as a user.
func (w *world) user() {
	k := pick(w, w.kinds)
	if !k.served {
		return
	}
	namespace := ""
	if k.namespaced {
		namespace = pick(w, []string{"a", "b"})
	}
	name := pick(w, []string{"x", "y", "z"})
	old := k.items[key(namespace, name)]
	if old == nil {
		m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		w.uids++
		m.UID = types.UID(fmt.Sprintf("uid-%d", w.uids))
		if w.chance(15) {
			m.Finalizers = append(m.Finalizers, hold)
		}
		if w.chance(5) {
			m.Finalizers = append(m.Finalizers, metav1.FinalizerOrphanDependents)
		}
		m.OwnerReferences = w.refs(namespace)
		k.put(m, watch.Added)
		return
	}
	m := old.DeepCopy()
	switch n := w.rnd.IntN(100); {
	case n < 50:
		k.delete(m, pick(w, []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan}))
	case n < 60:
		w.release(k, m)
	case n < 65 && len(m.OwnerReferences) > 0:
		block := !blocks(&m.OwnerReferences[0])
		m.OwnerReferences[0].BlockOwnerDeletion = &block
		k.update(m)
	case n < 85:
		m.OwnerReferences = append(m.OwnerReferences, w.refs(namespace)...)
		k.update(m)
	case n < 90:
		m.OwnerReferences = nil
		k.update(m)
	default:
		m.Generation++
		k.update(m)
	}
	if m := k.items[key(namespace, name)]; m != nil {
		w.forgetPromises(m)
	}
}

// forgetPromises drops the guarantees for an object that has changed its references.
func (w *world) forgetPromises(m *metav1.PartialObjectMetadata) {
	keep := func(promises map[pair]bool, blocking bool) {
		maps.DeleteFunc(promises, func(p pair, _ bool) bool {
			return p.dependent == m.UID && !slices.ContainsFunc(m.OwnerReferences, func(ref metav1.OwnerReference) bool {
				return ref.UID == p.owner && (blocks(&ref) || !blocking)
			})
		})
	}
	keep(w.orphaned, false)
	for _, below := range w.below {
		keep(below, false)
	}
	keep(w.waited, true)
}

// release removes finalizers of an object.
func (w *world) release(k *worldKind, m *metav1.PartialObjectMetadata) {
	if slices.Contains(m.Finalizers, hold) {
		m.Finalizers = slices.DeleteFunc(m.Finalizers, func(f string) bool { return f == hold })
		k.update(m)
	}
}

// refs returns random references for an object in a namespace, right and wrong ones.
func (w *world) refs(namespace string) []metav1.OwnerReference {
	var out []metav1.OwnerReference
	objects, kinds := w.all()
	for range []int{0, 1, 1, 1, 2, 3}[w.rnd.IntN(6)] {
		var ref metav1.OwnerReference
		switch {
		case len(w.dead) > 0 && w.chance(15):
			ref = pick(w, w.dead)
		case len(objects) > 0:
			i := w.rnd.IntN(len(objects))
			for range 4 { // most often an owner that can exist
				if !kinds[i].namespaced || objects[i].Namespace == namespace {
					break
				}
				i = w.rnd.IntN(len(objects))
			}
			ref = refTo(kinds[i], objects[i])
			if kinds[i].hub.Kind == "Set" && w.chance(40) {
				ref.APIVersion = group + "/v1beta1"
			}
		default:
			continue
		}
		switch w.rnd.IntN(40) {
		case 0:
			ref.Name = pick(w, []string{"x", "y", "z"})
		case 1:
			ref.Kind = pick(w, []string{"Pod", "Set", "Node", "Fixed", "Special", "Blob"})
		case 2:
			ref.APIVersion = group + "/v9"
		case 3:
			ref.APIVersion = "elsewhere.io/v1"
		case 4:
			ref.UID = "no-such-uid"
		}
		if w.chance(60) {
			block := true
			ref.BlockOwnerDeletion = &block
		}
		out = append(out, ref)
	}
	return out
}

// settle lets the collectors finish without faults, while users only remove their own finalizers, and checks the remaining
// objects.
func (w *world) settle() {
	w.calm = true
	for _, k := range w.kinds {
		k.broken, k.served = false, true
	}
	for _, d := range w.drivers {
		d.serve()
	}
	for idle, last := 0, -1; idle < 3; {
		for _, d := range w.drivers {
			w.finish(d)
		}
		objects, kinds := w.all()
		for i, m := range objects {
			w.release(kinds[i], m.DeepCopy())
		}
		idle++
		if w.revision != last {
			idle, last = 0, w.revision
		}
		if w.revision > 100_000 {
			w.t.Fatal("it does not end")
		}
		for _, d := range w.drivers {
			d.now = d.now.Add(againMost)
		}
	}
	for _, d := range w.drivers {
		d.checkGraph()
	}
	objects, kinds := w.all()
	for i, m := range objects {
		w.checkSettled(kinds[i], m)
	}
}

// finish passes all events to a driver, and executes everything that is ready.
func (w *world) finish(d *driver) {
	for busy := true; busy; {
		busy = false
		for _, k := range w.kinds {
			for d.see(k) {
				busy = true
			}
		}
		for d.work() {
			busy = true
		}
		if !busy && len(d.queue.delayed) > 0 && d.queue.delayed[0].phase == held {
			d.now = d.queue.delayed[0].at
			busy = true
		}
	}
}

func (w *world) checkSettled(k *worldKind, m *metav1.PartialObjectMetadata) {
	if m.DeletionTimestamp != nil {
		w.t.Errorf("%s %s/%s is still being deleted", k.resource, m.Namespace, m.Name)
		return
	}
	if !k.collected || k.unwatchable || k.unreadable {
		return
	}
	stay, go_ := 0, 0
	for i := range m.OwnerReferences {
		switch s := w.truth(m, &m.OwnerReferences[i]); {
		case !slices.ContainsFunc(w.kinds, func(k *worldKind) bool {
			return !k.unreadable && slices.Contains(k.known, claimOf(&m.OwnerReferences[i]).gvk)
		}):
			stay++
		case s == solid || s == unknown:
			stay++
		default:
			go_++
		}
	}
	if go_ > 0 {
		w.t.Errorf("%s %s/%s: %d references are to owners that are gone, %d others", k.resource, m.Namespace, m.Name, go_, stay)
	}
}
