package garbage

import (
	"container/heap"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// How long an object waits that failed, or hangs on what cannot be seen: twice as long each time, and some of it by chance,
// so that many do not come at once.
const (
	retryFirst, retryMost = 20 * time.Millisecond, time.Minute
	againFirst, againMost = 5 * time.Second, 5 * time.Minute
)

// perKind is how many objects of one kind are worked on at once. Each kind has its own, so that one that fails or hangs
// holds up no other.
const perKind = 16

// queue holds the objects that have to be looked at: each once, and in work once. It has no clock, lock or goroutine; the
// caller says what time it is.
type queue struct {
	items   map[types.UID]*item
	lanes   map[schema.GroupResource]*lane
	turns   []*lane // with something ready and room for it, in order
	delayed delays
}

func newQueue() *queue {
	return &queue{items: map[types.UID]*item{}, lanes: map[schema.GroupResource]*lane{}}
}

// lane is the objects of one kind.
type lane struct {
	kind     schema.GroupResource
	ready    []*item
	running  int
	turn     bool      // it is in turns
	loggedAt time.Time // when a failure was last logged as a warning
}

type item struct {
	uid      types.UID
	lane     *lane
	phase    phase
	dirty    bool          // it was added while it was running
	failures int           // in a row
	retry    *wait.Backoff // nil unless the last look failed
	look     *wait.Backoff // nil unless the last look asked for another
	at       time.Time     // when it is ready, while delayed
	index    int           // in delayed
}

type phase int8

const (
	ready phase = iota
	running
	held // waits to be tried again, whatever happens meanwhile
	idle // waits to be looked at again, unless something happens before
)

// add adds an object, if it is not there yet.
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

// offer gives a lane a turn, if it can use one.
func (q *queue) offer(l *lane) {
	if !l.turn && len(l.ready) > 0 && l.running < perKind {
		l.turn = true
		q.turns = append(q.turns, l)
	}
}

// next returns an object that is to be worked on now, to be given to finished afterwards; nil when there is none. Then
// wait is how long to wait for the next one that is delayed, 0 when there is none either.
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

// finished says how the work on an object ended.
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

// doubling is how long to wait before the next attempt: between half of what doubles each time, up to most, and all of it.
func doubling(first, most time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: first / 2, Factor: 2, Jitter: 1, Steps: math.MaxInt, Cap: most / 2}
}

// delays is a heap by time.
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
