package garbage

import (
	"context"
	"testing"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func podKind() kindInfo {
	gvk := gvk("v1", "Pod")
	return kindInfo{resource: schema.GroupResource{Group: group, Resource: "pods"}, hub: gvk, known: []schema.GroupVersionKind{gvk}, namespaced: true, collected: true}
}

func podRef(name string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: group + "/v1", Kind: "Pod", Name: name, UID: types.UID(name)}
}

// one is a kind with one object. Another writer writes to it before each change.
type one struct {
	objects
	m     metav1.PartialObjectMetadata
	write func(m *metav1.PartialObjectMetadata)
}

func (o *one) Get(context.Context, string, string) (*metav1.PartialObjectMetadata, error) {
	return o.m.DeepCopy(), nil
}

func (o *one) List(context.Context, string) ([]metav1.PartialObjectMetadata, error) {
	return []metav1.PartialObjectMetadata{*o.m.DeepCopy()}, nil
}

func (o *one) Change(_ context.Context, _, _ string, change func(m metav1.Object) error) error {
	if o.write != nil {
		o.write(&o.m)
		o.write = nil
	}
	return change(&o.m)
}

// If a client makes an owner the controller while another reference is removed, this change is kept.
func TestTrimUndoesNoOtherWrite(t *testing.T) {
	t.Parallel()
	read := []metav1.OwnerReference{podRef("gone"), podRef("there")}
	yes := true
	of := &one{write: func(m *metav1.PartialObjectMetadata) { m.OwnerReferences[1].Controller = &yes }}
	of.m.UID, of.m.OwnerReferences = "d", append([]metav1.OwnerReference(nil), read...)
	d := &task{namespace: "a", name: "d", uid: "d"}
	if err := d.trim(t.Context(), of, read, read[1:]); err != errMoved {
		t.Errorf("%v, want that it has changed", err)
	}
	if refs := of.m.OwnerReferences; len(refs) != 2 || refs[1].Controller == nil {
		t.Errorf("the references are %+v", refs)
	}
	read = of.m.DeepCopy().OwnerReferences
	if err := d.trim(t.Context(), of, read, read[1:]); err != nil || len(of.m.OwnerReferences) != 1 {
		t.Errorf("%v, %+v", err, of.m.OwnerReferences)
	}
}

// An invalid reference is not reported again if other references of the object change. The report does not name the owner's
// namespace.
func TestInvalidReferencesAreReportedOnce(t *testing.T) {
	t.Parallel()
	var reported []Invalid
	w := newWorker(zap.NewNop(), Hooks{Invalid: func(i Invalid) { reported = append(reported, i) }}, 1)
	g := w.graph
	g.serve([]kindInfo{podKind()})
	k := g.kinds[podKind().resource]
	g.begin(k)
	g.observe(k, &metav1.ObjectMeta{Namespace: "secret", Name: "o", UID: "o"})
	ref := podRef("o")
	for _, refs := range [][]metav1.OwnerReference{{ref}, {ref, podRef("p")}, {podRef("p"), ref}} {
		g.observe(k, &metav1.ObjectMeta{Namespace: "a", Name: "d", UID: "d", OwnerReferences: refs})
		if s, _, err := w.missed(task{kind: k.resource, namespace: "a", name: "d", uid: "d"}, &ref, k); s != absent || err != nil {
			t.Errorf("%v, %v", s, err)
		}
	}
	const want = "the owner Pod o is not in namespace a: an owner in another namespace is taken for absent"
	if len(reported) != 1 || reported[0].Message != want {
		t.Errorf("told: %+v", reported)
	}
}

// An object without a uid in a list of a Storage is ignored, because no event could identify it.
func TestSweepsSkipWhatHasNoUID(t *testing.T) {
	t.Parallel()
	of := &one{}
	of.m.Namespace, of.m.Name, of.m.OwnerReferences = "a", "d", []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "o1", UID: uidOf(1)}}
	for _, uid := range []types.UID{"", "d"} {
		of.m.UID = uid
		s := &sweeper{atOnce: 1, turn: make(chan struct{}, 1), begin: func() ([]sweptKind, int64) {
			return []sweptKind{{schema.GroupResource{Resource: "things"}, true, of}}, 1
		}}
		found, err := s.join(t.Context(), sweptPod(1))
		if err != nil || len(found.dependents) != len(uid) {
			t.Errorf("uid %q: %+v, %v", uid, found, err)
		}
	}
}

// A kind that could not be watched is watched again when the served kinds change.
func TestUnwatchableKindsAreTriedAgain(t *testing.T) {
	t.Parallel()
	g := newGraph()
	g.serve([]kindInfo{podKind()})
	k := g.kinds[podKind().resource]
	g.begin(k)
	g.synced(k)
	g.serve([]kindInfo{podKind()})
	if g.kinds[k.resource] != k {
		t.Error("a kind that is watched was taken for another")
	}
	g.fail(k, unseen)
	g.serve([]kindInfo{podKind()})
	if now := g.kinds[k.resource]; now == k || now.stage != pending {
		t.Errorf("a kind that could not be watched is %+v", now)
	}
}
