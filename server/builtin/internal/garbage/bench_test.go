package garbage

import (
	"fmt"
	goruntime "runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// crowd returns objects of five kinds as in a cluster: most have one owner.
func crowd(n int) (kinds []kindInfo, shows func(i int) (kind int, m metav1.ObjectMeta)) {
	names := []string{"Deployment", "ReplicaSet", "Pod", "EndpointSlice", "Secret"}
	for _, name := range names {
		gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: name}
		kinds = append(kinds, kindInfo{
			resource: schema.GroupResource{Group: gvk.Group, Resource: name}, hub: gvk, known: []schema.GroupVersionKind{gvk}, namespaced: true, collected: true,
		})
	}
	uid := func(i int) types.UID { return types.UID(fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i)) }
	name := func(i int) string { return fmt.Sprintf("object-of-some-name-%d", i) }
	return kinds, func(i int) (int, metav1.ObjectMeta) {
		kind := i % len(kinds)
		m := metav1.ObjectMeta{Namespace: fmt.Sprintf("namespace-%d", i/len(kinds)%100), Name: name(i), UID: uid(i)}
		if kind > 0 && i > 0 {
			block := true
			m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: names[kind-1], Name: name(i - 1), UID: uid(i - 1), BlockOwnerDeletion: &block}}
		}
		return kind, m
	}
}

func fill(infos []kindInfo, metas []metav1.ObjectMeta, of []int) *graph {
	g := newGraph()
	g.serve(infos)
	for i := range metas {
		g.observe(g.kinds[infos[of[i]].resource], &metas[i])
	}
	for _, info := range infos {
		g.synced(g.kinds[info.resource])
	}
	return g
}

const crowdSize = 100_000

func BenchmarkObserve100k(b *testing.B) {
	infos, show := crowd(crowdSize)
	metas, of := make([]metav1.ObjectMeta, crowdSize), make([]int, crowdSize)
	for i := range metas {
		of[i], metas[i] = show(i)
	}
	var before, after goruntime.MemStats
	for b.Loop() {
		b.StopTimer()
		goruntime.GC()
		goruntime.ReadMemStats(&before)
		b.StartTimer()
		g := fill(infos, metas, of)
		b.StopTimer()
		goruntime.GC()
		goruntime.ReadMemStats(&after)
		if len(g.nodes) != crowdSize || len(g.due) > 0 {
			b.Fatalf("%d nodes, %d due", len(g.nodes), len(g.due))
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/crowdSize, "B/object")
		b.StartTimer()
	}
}

// An owner with 100,000 dependents is deleted. No step may become more expensive with the number of dependents.
func BenchmarkVanish100kDependents(b *testing.B) {
	infos, _ := crowd(0)
	block := true
	metas, of := make([]metav1.ObjectMeta, crowdSize), make([]int, crowdSize)
	for i := range metas {
		metas[i] = metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("o", i), UID: types.UID(fmt.Sprint(i))}
		if i > 0 {
			of[i] = 1
			metas[i].OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Deployment", Name: "o0", UID: "0", BlockOwnerDeletion: &block}}
		}
	}
	for b.Loop() {
		b.StopTimer()
		g := fill(infos, metas, of)
		owner := metas[0]
		owner.DeletionTimestamp, owner.Finalizers = &metav1.Time{}, []string{metav1.FinalizerDeleteDependents}
		b.StartTimer()
		g.observe(g.kinds[infos[0].resource], &owner)
		if len(g.due) != crowdSize-1 {
			b.Fatalf("%d due", len(g.due))
		}
		for i := 1; i < crowdSize; i++ {
			g.forget(g.kinds[infos[1].resource], metas[i].UID)
		}
		if got := g.task("0").do; got != release {
			b.Fatalf("task %v", got)
		}
	}
}
