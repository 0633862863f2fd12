package garbage

import (
	"container/heap"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// These are the delays of objects that failed (retry) or that depend on something that cannot be observed (again). They double
// each time and have a random part, so that many objects are not due at the same time.
const (
	retryFirst, retryMost = 20 * time.Millisecond, time.Minute
	againFirst, againMost = 5 * time.Second, 5 * time.Minute
)

// perKind is the maximum number of objects of one kind that are worked on at once. A kind whose objects fail or hang does not
// block other kinds.
const perKind = 16

// queue has the objects to examine. Each object is in it at most once and worked on by one goroutine at most. It has no clock,
// lock or goroutine; the caller passes the time.
type queue struct {
	items   map[types.UID]*item
	lanes   map[schema.GroupResource]*lane
	turns   []*lane // lanes with a ready object and room for it, in order
	delayed delays
}

func newQueue() *queue {
	return &queue{items: map[types.UID]*item{}, lanes: map[schema.GroupResource]*lane{}}
}

// lane has the queued objects of one kind.
type lane struct {
	kind     schema.GroupResource
	ready    []*item
	running  int
	turn     bool      // is in turns
	loggedAt time.Time // when a failure was last logged as a warning
}

type item struct {
	uid      types.UID
	lane     *lane
	phase    phase
	dirty    bool          // added while it was running
	failures int           // number of failures in a row
	retry    *wait.Backoff // nil unless the last examination failed
	look     *wait.Backoff // nil unless the last examination returned again
	at       time.Time     // end of the delay
	index    int           // in delayed
}

type phase int8

const (
	ready phase = iota
	running
	held // waits for the next attempt, also if the object is added again
	idle // waits for the next examination, or until the object is added again
)

// add adds an object, unless it is in the queue already.
func (q *queue) add(uid types.UID, kind schema.GroupResource) {
	it := q.items[uid]
	switch {
	case it == nil:
		l := q.lanes[kind]
		if l == nil {
			l = &lane{kind: kind}
			q.lanes[kind] = l
		}
		it = &item{uid: uid, lane: l}
		q.items[uid] = it
		q.enqueue(it)
	case it.phase == running:
		it.dirty = true
	case it.phase == idle:
		heap.Remove(&q.delayed, it.index)
		q.enqueue(it)
	}
}

func (q *queue) enqueue(it *item) {
	it.phase = ready
	it.lane.ready = append(it.lane.ready, it)
	q.offer(it.lane)
}

// offer adds a lane to turns if it has a ready object and room for it.
func (q *queue) offer(l *lane) {
	if !l.turn && len(l.ready) > 0 && l.running < perKind {
		l.turn = true
		q.turns = append(q.turns, l)
	}
}

// next returns an object to work on, which the caller must pass to finished afterwards. It returns nil if none is ready. Then
// wait is the time until the next delayed object is ready, or 0 if there is none.
func (q *queue) next(now time.Time) (it *item, wait time.Duration) {
	for len(q.delayed) > 0 && !q.delayed[0].at.After(now) {
		q.enqueue(heap.Pop(&q.delayed).(*item))
	}
	if len(q.turns) == 0 {
		if len(q.delayed) > 0 {
			wait = q.delayed[0].at.Sub(now)
		}
		return nil, wait
	}
	l := q.turns[0]
	q.turns[0] = nil
	q.turns = q.turns[1:]
	l.turn = false
	it = l.ready[0]
	l.ready[0] = nil
	l.ready = l.ready[1:]
	l.running++
	it.phase = running
	q.offer(l)
	return it, 0
}

// finished records the result of the work on an object. ok is false if it failed.
func (q *queue) finished(it *item, now time.Time, res result, ok bool) {
	it.lane.running--
	dirty := it.dirty
	it.dirty = false
	if ok {
		it.failures, it.retry = 0, nil
	}
	switch {
	case !ok:
		if it.retry == nil {
			it.retry = doubling(retryFirst, retryMost)
		}
		q.delay(it, held, now.Add(it.retry.Step()))
		it.failures++
	case dirty:
		it.look = nil
		q.enqueue(it)
	case res == again:
		if it.look == nil {
			it.look = doubling(againFirst, againMost)
		}
		q.delay(it, idle, now.Add(it.look.Step()))
	default:
		delete(q.items, it.uid)
	}
	q.offer(it.lane)
}

func (q *queue) delay(it *item, p phase, at time.Time) {
	it.phase, it.at = p, at
	heap.Push(&q.delayed, it)
}

// doubling returns delays that double each time, up to most. Each is a random time between half of it and all of it.
func doubling(first, most time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: first / 2, Factor: 2, Jitter: 1, Steps: math.MaxInt, Cap: most / 2}
}

// delays is a heap ordered by time.
type delays []*item

func (d delays) Len() int           { return len(d) }
func (d delays) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d delays) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *delays) Push(x any) {
	it := x.(*item)
	it.index = len(*d)
	*d = append(*d, it)
}

func (d *delays) Pop() any {
	last := len(*d) - 1
	it := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	return it
}
