package garbage

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// slow is a kind whose lists take a second. Each of its objects has an owner.
type slow struct {
	objects
	owners int
}

func (s *slow) List(context.Context, string) ([]metav1.PartialObjectMetadata, error) {
	time.Sleep(time.Second)
	var out []metav1.PartialObjectMetadata
	for i := range s.owners {
		m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint("d", i))}}
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: fmt.Sprint("o", i), UID: uidOf(i)}}
		out = append(out, m)
	}
	return out, nil
}

func sweptPod(i int) sweptOwner {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	return sweptOwner{task: task{namespace: "a", name: fmt.Sprint("o", i), uid: uidOf(i)}, info: kindInfo{hub: gvk, known: []schema.GroupVersionKind{gvk}, namespaced: true}}
}

func TestSweepsAreShared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const owners = 100
		of, sweeps := &slow{owners: owners / 2}, atomic.Int64{}
		s := &sweeper{atOnce: atOnce, turn: make(chan struct{}, 1), begin: func() ([]sweptKind, int64) {
			return []sweptKind{{schema.GroupResource{Resource: "things"}, true, of}}, sweeps.Add(1)
		}}
		var wg sync.WaitGroup
		for i := range owners {
			wg.Go(func() {
				found, err := s.join(t.Context(), sweptPod(i))
				want := 0
				if i < owners/2 {
					want = 1
				}
				if err != nil || len(found.dependents) != want {
					t.Errorf("owner %d: %+v, %v", i, found, err)
				}
			})
			if i == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		wg.Wait()
		if n := sweeps.Load(); n != 2 { // that of the first caller, and one for all others
			t.Errorf("%d sweeps", n)
		}
		for _, c := range []struct {
			owner int
			after int64
			owns  bool
			total int64
		}{
			{0, 1, true, 2}, {owners - 1, 1, false, 2}, // the last sweep is recent enough
			{owners - 1, 2, false, 3}, {0, 2, true, 3},
		} {
			owns, err := s.owns(t.Context(), sweptPod(c.owner), c.after)
			if err != nil || owns != c.owns || sweeps.Load() != c.total {
				t.Errorf("owner %d after %d: %v, %v, %d sweeps", c.owner, c.after, owns, err, sweeps.Load())
			}
		}
		elsewhere := sweptPod(0)
		elsewhere.namespace = "b"
		if _, err := s.owns(t.Context(), elsewhere, 0); err != nil || sweeps.Load() != 4 {
			t.Errorf("a namespace that was not listed: %v, %d sweeps", err, sweeps.Load())
		}
		s.forget()
		if _, err := s.owns(t.Context(), elsewhere, 0); err != nil || sweeps.Load() != 5 {
			t.Errorf("after it was forgotten: %v, %d sweeps", err, sweeps.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() { s.join(t.Context(), sweptPod(0)) })
		synctest.Wait()
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := s.join(ctx, sweptPod(1)); err == nil {
			t.Error("who gives up gets no error")
		}
		wg.Wait()
	})
}
