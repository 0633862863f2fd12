package garbage

import (
	"context"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Invalid is an owner reference that cannot hold: a cluster-scoped object refers to a namespaced owner, or a namespaced
// one to an owner in another namespace. kube-controller-manager records it as an Event of the object with type Warning and
// the reason OwnerRefInvalidNamespace.
type Invalid struct {
	// Kind, Resource, Namespace, Name and UID are those of the object that has the reference.
	Kind      schema.GroupVersionKind
	Resource  schema.GroupResource
	Namespace string
	Name      string
	UID       types.UID

	Reference metav1.OwnerReference
	// Message says what is wrong, for humans who may read the namespace of the object, and perhaps no other.
	Message string
}

// standings reads how the owners of an object stand, one for each reference. again says that one of them is there, but
// cannot be seen to go.
func (w *worker) standings(ctx context.Context, t task, refs []metav1.OwnerReference) ([]standing, result, error) {
	out, res := make([]standing, 0, len(refs)), done
	for i := range refs {
		s, r, err := w.standing(ctx, t, &refs[i])
		if err != nil {
			return nil, done, err
		}
		out, res = append(out, s), max(res, r)
	}
	return out, res, nil
}

func (w *worker) standing(ctx context.Context, t task, ref *metav1.OwnerReference) (standing, result, error) {
	if ref.UID == "" {
		return unknown, done, nil
	}
	w.mu.Lock()
	k := w.graph.resolve(ref.UID, claimOf(ref))
	var of objects
	var namespaced bool
	if k != nil {
		of, namespaced = w.objects[k.resource], k.namespaced
	}
	w.mu.Unlock()
	if of == nil {
		return unknown, done, nil
	}
	namespace := ""
	if namespaced {
		namespace = t.namespace
	}
	if namespaced && namespace == "" {
		w.report(t, ref, "cluster-scoped object refers to the namespaced owner "+ref.Kind+" "+ref.Name+": it cannot be resolved, and the object is never collected for it")
		return unknown, done, nil
	}
	m, err := of.Get(ctx, namespace, ref.Name)
	switch {
	case apierrors.IsMethodNotSupported(err):
		return w.seen(k, namespace, ref), done, nil
	case err != nil && !apierrors.IsNotFound(err):
		return unknown, done, err
	case err == nil && m.UID == "": // of a Storage that gives none: nobody can say which object it is
		return unknown, done, nil
	case err != nil || m.UID != ref.UID:
		return w.missed(t, ref, k)
	}
	if stateOf(&m.ObjectMeta).waiting() {
		return waiting, done, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.graph.observed(ref.UID) {
		return solid, again, nil
	}
	return solid, done, nil
}

// seen says how an owner stands that cannot be read: it may wait, but not be absent.
func (w *worker) seen(k *kind, namespace string, ref *metav1.OwnerReference) standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.graph.nodes[ref.UID]
	if n != nil && n.state.waiting() && n.kind == k && n.name == ref.Name && n.namespace.Value() == namespace {
		return waiting
	}
	return unknown
}

// missed says what it means that no object is what a reference says.
func (w *worker) missed(t task, ref *metav1.OwnerReference, k *kind) (standing, result, error) {
	w.mu.Lock()
	served, elsewhere := w.graph.serves(k), w.graph.elsewhere(ref, t.namespace)
	w.mu.Unlock()
	if !served { // what was read may be nothing because the kind was withdrawn
		return unknown, done, errMoved
	}
	if elsewhere != "" {
		// Not where it is: who may read events of the dependent's namespace need not know what is in others.
		w.report(t, ref, "the owner "+ref.Kind+" "+ref.Name+" is not in namespace "+t.namespace+": an owner in another namespace is taken for absent",
			zap.String("ownerNamespace", elsewhere))
	}
	return absent, done, nil
}

// owns says whether an object has dependents, as far as that matters: while an owner of it waits. Those that the graph has
// not been shown yet are found by a sweep that was begun after the owner began to wait.
func (w *worker) owns(ctx context.Context, t task, owners []standing, refs []metav1.OwnerReference) (bool, error) {
	w.mu.Lock()
	owns, after, waits := w.graph.owns(t.uid), int64(0), false
	for i, s := range owners {
		if s != waiting {
			continue
		}
		waits = true
		since, seen := w.graph.since[refs[i].UID]
		if !seen {
			since = w.graph.sweeps
		}
		after = max(after, since)
	}
	k := w.graph.kinds[t.kind]
	w.mu.Unlock()
	if owns || !waits || k == nil {
		return owns, nil
	}
	return w.sweeps.owns(ctx, sweptOwner{task: t, info: k.kindInfo}, after)
}

// elsewhere returns the namespace of an owner that is not in the namespace of its dependent; "" if there is none.
func (g *graph) elsewhere(ref *metav1.OwnerReference, namespace string) string {
	n := g.nodes[ref.UID]
	if n == nil || !n.state.observed() || n.name != ref.Name || !n.kind.namespaced || n.namespace.Value() == namespace {
		return ""
	}
	return n.namespace.Value()
}

// toldInvalid bounds the invalid references that a run tells of as warnings: whoever makes one may make ten thousand.
const toldInvalid = 100

// report tells of an invalid reference, once. Fields are for the log only.
func (w *worker) report(t task, ref *metav1.OwnerReference, message string, fields ...zap.Field) {
	w.mu.Lock()
	kind, first := w.graph.reported(t.uid, ref)
	if first {
		w.invalid++
	}
	log := w.log.Warn
	if w.invalid > toldInvalid {
		log = w.log.Debug
	}
	w.mu.Unlock()
	if !first {
		return
	}
	log("garbage collector: invalid owner reference", append(fields, zap.String("resource", t.kind.String()), zap.String("object", t.where()),
		zap.String("uid", string(t.uid)), zap.String("reason", message))...)
	if w.hooks.Invalid != nil {
		w.hooks.Invalid(Invalid{Kind: kind, Resource: t.kind, Namespace: t.namespace, Name: t.name, UID: t.uid, Reference: *ref.DeepCopy(), Message: message})
	}
}

// reported remembers that a reference of an object is told of; first says that it was not.
func (g *graph) reported(dependent types.UID, ref *metav1.OwnerReference) (kind schema.GroupVersionKind, first bool) {
	n := g.nodes[dependent]
	if n == nil || n.kind == nil {
		return kind, false
	}
	for i := range n.edges {
		if e := &n.edges[i]; e.owner.uid == ref.UID && !e.reported {
			e.reported, first = true, true
		}
	}
	return n.kind.hub, first
}
