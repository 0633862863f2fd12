package garbage

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var podsQueue, setsQueue = schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "sets"}

func uidOf(i int) types.UID { return types.UID(fmt.Sprint("u", i)) }

func TestQueueGivesEachOnceAndFewOfAKindAtOnce(t *testing.T) {
	t.Parallel()
	q, now := newQueue(), time.Unix(0, 0)
	for range 2 {
		for i := range 3 * perKind {
			q.add(uidOf(i), podsQueue)
		}
	}
	q.add("s", setsQueue)
	var work []*item
	for {
		it, _ := q.next(now)
		if it == nil {
			break
		}
		work = append(work, it)
	}
	if len(work) != perKind+1 || work[1].uid != "s" {
		t.Fatalf("%d in work, want %d and the one of another kind, second", len(work), perKind)
	}
	q.finished(work[0], now, done, true)
	if it, _ := q.next(now); it == nil || it.uid != uidOf(perKind) {
		t.Fatalf("next is %v", it)
	}
}

func TestQueueDelays(t *testing.T) {
	t.Parallel()
	q, now := newQueue(), time.Unix(0, 0)
	q.add("a", podsQueue)
	it, _ := q.next(now)
	for n := range 40 { // failures: growing and bounded delays, also if the object is added again
		q.finished(it, now, done, false)
		q.add("a", podsQueue)
		none, wait := q.next(now)
		most := retryMost
		if n < 12 {
			most = retryFirst << n
		}
		if none != nil || wait < most/2 || wait > most {
			t.Fatalf("after %d failures it waits %v, want %v to %v", n+1, wait, most/2, most)
		}
		now = now.Add(wait)
		if it, _ = q.next(now); it == nil || it.failures != n+1 {
			t.Fatalf("after %v: %+v", wait, it)
		}
	}
	q.finished(it, now, again, true)
	if none, wait := q.next(now); none != nil || wait < againFirst/2 || wait > againFirst {
		t.Fatalf("it waits %v to be looked at again", wait)
	}
	q.add("a", podsQueue) // there was a change
	if it, _ = q.next(now); it == nil || it.failures != 0 {
		t.Fatal("what happened was not looked at")
	}
	q.add("a", podsQueue) // while it is worked on
	q.finished(it, now, done, true)
	if it, _ = q.next(now); it == nil {
		t.Fatal("what happened meanwhile was not looked at")
	}
	q.finished(it, now, done, true)
	if none, wait := q.next(now); none != nil || wait != 0 || len(q.items) > 0 {
		t.Errorf("the queue holds %d", len(q.items))
	}
}

// Random calls: no object is lost, and none is worked on twice at once.
func TestQueueLosesNothing(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	q, now := newQueue(), time.Unix(0, 0)
	wanted, work := map[types.UID]bool{}, map[types.UID]*item{} // wanted: added since the last start of its work
	step := func(adding bool) {
		switch n := rnd.IntN(3); {
		case n == 0 && adding:
			i := rnd.IntN(100)
			q.add(uidOf(i), []schema.GroupResource{podsQueue, setsQueue}[i%2])
			wanted[uidOf(i)] = true
		case n == 1:
			it, wait := q.next(now)
			if it == nil {
				now = now.Add(wait)
				return
			}
			if work[it.uid] != nil {
				t.Fatalf("%s is in work twice", it.uid)
			}
			work[it.uid] = it
			delete(wanted, it.uid)
		case n == 2:
			for uid, it := range work {
				ok := rnd.IntN(3) > 0
				if !ok {
					wanted[uid] = true
				}
				q.finished(it, now, result(rnd.IntN(2)), ok)
				delete(work, uid)
				break
			}
		}
	}
	for range 100_000 {
		step(true)
	}
	for range 100_000 {
		step(false)
	}
	if len(wanted) > 0 {
		t.Errorf("never begun: %v", wanted)
	}
}
