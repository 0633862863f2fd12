package garbage

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// promise records the guarantees for the dependents of an object that is deleted.
func (w *world) promise(k *worldKind, owner *metav1.PartialObjectMetadata, policy metav1.DeletionPropagation) {
	maps.DeleteFunc(w.orphaned, func(p pair, _ bool) bool { return p.owner == owner.UID })
	maps.DeleteFunc(w.waited, func(p pair, _ bool) bool { return p.owner == owner.UID })
	if policy == metav1.DeletePropagationForeground {
		if !w.waiting[owner.UID] {
			w.noteDependents(owner.UID)
		}
		w.waiting[owner.UID] = true
	}
	if policy == metav1.DeletePropagationOrphan {
		w.orphaning[owner.UID] = true
	}
	if policy == metav1.DeletePropagationOrphan && w.waiting[owner.UID] {
		return
	}
	objects, kinds := w.all()
	for i, m := range objects {
		for _, ref := range m.OwnerReferences {
			if ref.UID != owner.UID || !kinds[i].served || !kinds[i].collected || kinds[i].unwatchable || !w.valid(k, owner, m, &ref) {
				continue
			}
			switch {
			case policy == metav1.DeletePropagationOrphan:
				w.orphaned[pair{m.UID, owner.UID}] = true
			case policy == metav1.DeletePropagationForeground && blocks(&ref):
				w.waited[pair{m.UID, owner.UID}] = true
			}
		}
	}
}

// noteDependents records all current dependents for an owner that begins to wait.
func (w *world) noteDependents(owner types.UID) {
	w.below[owner] = map[pair]bool{}
	objects, kinds := w.all()
	for i, m := range objects {
		for _, ref := range m.OwnerReferences {
			if j := slices.IndexFunc(objects, func(o *metav1.PartialObjectMetadata) bool { return o.UID == ref.UID }); j >= 0 &&
				w.valid(kinds[j], objects[j], m, &ref) && kinds[i].served && kinds[i].collected && !kinds[i].unwatchable {
				w.below[owner][pair{m.UID, ref.UID}] = true
			}
		}
	}
}

// valid reports whether a reference of m is right about owner.
func (w *world) valid(k *worldKind, owner, m *metav1.PartialObjectMetadata, ref *metav1.OwnerReference) bool {
	return ref.UID == owner.UID && ref.Name == owner.Name && slices.Contains(k.known, claimOf(ref).gvk) && (!k.namespaced || owner.Namespace == m.Namespace)
}

// truth returns the real state of an owner. If the version in the reference is not served and the owner is gone, either answer is
// right.
func (w *world) truth(m *metav1.PartialObjectMetadata, ref *metav1.OwnerReference) standing {
	content := claimOf(ref)
	for _, k := range w.kinds {
		if k.hub.GroupKind() != content.gvk.GroupKind() {
			continue
		}
		if w.waiting[ref.UID] && k.unreadable {
			return waiting
		}
		if k.unreadable || k.namespaced && m.Namespace == "" {
			return unknown
		}
		namespace := m.Namespace
		if !k.namespaced {
			namespace = ""
		}
		owner := k.items[key(namespace, ref.Name)]
		switch {
		case owner == nil || owner.UID != ref.UID:
			return absent
		case w.waiting[ref.UID]: // a later change of the policy has no effect
			return waiting
		}
		return solid
	}
	return unknown
}

// checkDelete is called before a collector deletes an object.
func (w *world) checkDelete(k *worldKind, m *metav1.PartialObjectMetadata, policy metav1.DeletionPropagation) {
	w.deleted++
	objects, kinds := w.all()
	for i, below := range objects {
		for _, ref := range m.OwnerReferences {
			if policy != metav1.DeletePropagationForeground && w.truth(m, &ref) == waiting && w.below[ref.UID][pair{below.UID, m.UID}] && !kinds[i].unlisted {
				w.t.Errorf("deletion of %s %s/%s, which does not wait for %s %s/%s", k.resource, m.Namespace, m.Name, kinds[i].resource, below.Namespace, below.Name)
			}
		}
	}
	if len(m.OwnerReferences) == 0 || m.DeletionTimestamp != nil || !k.collected {
		w.t.Errorf("deletion of %s %s/%s, which has no owners, is being deleted or is not to be", k.resource, m.Namespace, m.Name)
	}
	for i := range m.OwnerReferences {
		ref := &m.OwnerReferences[i]
		if s := w.truth(m, ref); s == solid || s == unknown {
			w.t.Errorf("deletion of %s %s/%s, whose owner %+v is %v", k.resource, m.Namespace, m.Name, ref, s)
		}
		if w.orphaned[pair{m.UID, ref.UID}] {
			w.t.Errorf("deletion of %s %s/%s, whose owner %s %s was deleted with the policy Orphan", k.resource, m.Namespace, m.Name, ref.Kind, ref.Name)
		}
	}
}

// checkChange is called before a collector changes an object.
func (w *world) checkChange(k *worldKind, old, m *metav1.PartialObjectMetadata) {
	stays := func(list []metav1.OwnerReference) (n int) {
		for i := range list {
			if s := w.truth(old, &list[i]); s == solid || s == unknown {
				n++
			}
		}
		return n
	}
	orphans := false
	for i := range old.OwnerReferences {
		ref := &old.OwnerReferences[i]
		if slices.ContainsFunc(m.OwnerReferences, func(r metav1.OwnerReference) bool {
			return equalRefs([]metav1.OwnerReference{r}, []metav1.OwnerReference{*ref})
		}) {
			continue
		}
		w.trimmed++
		for _, below := range w.below {
			delete(below, pair{m.UID, ref.UID})
		}
		delete(w.orphaned, pair{m.UID, ref.UID}) // it is kept; a new reference to the owner is not protected
		if w.orphaning[ref.UID] {
			orphans = true
			continue
		}
		if s := w.truth(old, ref); s == solid || s == unknown {
			w.t.Errorf("%s %s/%s loses the reference %+v to an owner that is %v", k.resource, m.Namespace, m.Name, ref, s)
		}
	}
	if n := stays(old.OwnerReferences); !orphans && len(m.OwnerReferences) != len(old.OwnerReferences) && stays(m.OwnerReferences) == 0 && n == 0 {
		// Its other owner may be gone since. Then it still has that reference.
		if len(m.OwnerReferences) == 0 {
			w.t.Errorf("%s %s/%s loses all its references", k.resource, m.Namespace, m.Name)
		}
	}
	if stateOf(&old.ObjectMeta).waiting() && !stateOf(&m.ObjectMeta).waiting() {
		w.released++
		w.checkRelease(k, old)
	}
}

// checkRelease is called when a collector ends a foreground deletion.
func (w *world) checkRelease(k *worldKind, owner *metav1.PartialObjectMetadata) {
	objects, kinds := w.all()
	for i, m := range objects {
		for _, ref := range m.OwnerReferences {
			if w.waited[pair{m.UID, owner.UID}] && w.valid(k, owner, m, &ref) && blocks(&ref) && kinds[i].served && !kinds[i].unlisted && !w.circles[pair{m.UID, owner.UID}] {
				w.t.Errorf("%s %s/%s does not wait for %s %s/%s", k.resource, owner.Namespace, owner.Name, kinds[i].resource, m.Namespace, m.Name)
			}
		}
	}
}

// noteCircles records which objects wait for each other now.
func (w *world) noteCircles() {
	for uid := range w.waiting {
		if m := w.find(uid); m != nil {
			above := map[types.UID]bool{}
			w.above(m, above)
			for owner := range above {
				w.circles[pair{owner, uid}] = true
			}
		}
	}
}

// above adds the objects that wait for m to out.
func (w *world) above(m *metav1.PartialObjectMetadata, out map[types.UID]bool) {
	for _, ref := range m.OwnerReferences {
		if owner := w.find(ref.UID); owner != nil && blocks(&ref) && w.waiting[owner.UID] && !out[owner.UID] {
			out[owner.UID] = true
			w.above(owner, out)
		}
	}
}

func (w *world) find(uid types.UID) *metav1.PartialObjectMetadata {
	for _, k := range w.kinds {
		for _, m := range k.items {
			if m.UID == uid {
				return m
			}
		}
	}
	return nil
}
