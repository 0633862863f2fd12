package garbage

import (
	"context"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Invalid describes an invalid owner reference: a cluster-scoped object refers to a namespaced owner, or a namespaced object to
// an owner in another namespace. kube-controller-manager records it as an Event of the object with type Warning and the reason
// OwnerRefInvalidNamespace.
type Invalid struct {
	// Kind, Resource, Namespace, Name and UID are those of the object that has the reference.
	Kind      schema.GroupVersionKind
	Resource  schema.GroupResource
	Namespace string
	Name      string
	UID       types.UID

	// Reference is the invalid reference.
	Reference metav1.OwnerReference
	// Message says what is wrong. Its readers may have access to the namespace of the object only, so it names no other
	// namespace.
	Message string
}

// standings reads the owners of an object and returns their states, one for each reference. The result is again if an owner
// exists but the graph has not observed it, so that the graph would not notice its end.
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
	case err == nil && m.UID == "": // the Storage gives no uids: the object cannot be identified
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

// seen returns the state of an owner that cannot be read. It may be waiting, but never absent.
func (w *worker) seen(k *kind, namespace string, ref *metav1.OwnerReference) standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.graph.nodes[ref.UID]
	if n != nil && n.state.waiting() && n.kind == k && n.name == ref.Name && n.namespace.Value() == namespace {
		return waiting
	}
	return unknown
}

// missed returns the state of an owner that was not found.
func (w *worker) missed(t task, ref *metav1.OwnerReference, k *kind) (standing, result, error) {
	w.mu.Lock()
	served, elsewhere := w.graph.serves(k), w.graph.elsewhere(ref, t.namespace)
	w.mu.Unlock()
	if !served { // the owner may be missing because the kind was withdrawn
		return unknown, done, errMoved
	}
	if elsewhere != "" {
		// The message does not name the namespace of the owner, because its readers may not have access to that namespace.
		w.report(t, ref, "the owner "+ref.Kind+" "+ref.Name+" is not in namespace "+t.namespace+": an owner in another namespace is taken for absent",
			zap.String("ownerNamespace", elsewhere))
	}
	return absent, done, nil
}

// owns reports whether an object has dependents. It does so only while an owner of the object waits; otherwise the answer does
// not matter. A sweep that began after the owner began to wait finds dependents that the graph has not received yet.
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

// elsewhere returns the namespace of an owner that is not in the namespace of its dependent, or "".
func (g *graph) elsewhere(ref *metav1.OwnerReference, namespace string) string {
	n := g.nodes[ref.UID]
	if n == nil || !n.state.observed() || n.name != ref.Name || !n.kind.namespaced || n.namespace.Value() == namespace {
		return ""
	}
	return n.namespace.Value()
}

// maxInvalidWarnings is the maximum number of invalid references per run that are logged as warnings. One client may create ten
// thousand.
const maxInvalidWarnings = 100

// report reports an invalid reference once. fields are only for the log.
func (w *worker) report(t task, ref *metav1.OwnerReference, message string, fields ...zap.Field) {
	w.mu.Lock()
	kind, first := w.graph.reported(t.uid, ref)
	if first {
		w.invalid++
	}
	log := w.log.Warn
	if w.invalid > maxInvalidWarnings {
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

// reported marks a reference of an object as reported. first is true if it was not marked before.
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
