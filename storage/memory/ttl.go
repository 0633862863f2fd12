package memory

import (
	"container/heap"
	"time"
)

// expiry has the keys to be deleted and their times. It has one timer, set for the earliest deadline. Close stops the timer
// and waits for a run in progress. A backend without TTLs has no timer.
type expiry struct {
	due   deadlines
	timer *time.Timer
	armed time.Time // the time for which the timer is set; zero: not set
}

type deadline struct {
	at       time.Time
	key      string
	revision int64 // the key is only deleted if it is still at this revision
}

// deadlines is a heap, earliest first.
type deadlines []deadline

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at.Before(d[j].at) }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *deadlines) Push(x any)        { *d = append(*d, x.(deadline)) }
func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	(*d)[last] = deadline{}
	*d = (*d)[:last]
	return x
}

// expireAt adds the deadline of a key. The caller holds mu.
func (b *Backend) expireAt(key string, revision int64, at time.Time) {
	heap.Push(&b.expiry.due, deadline{at, key, revision})
	b.arm()
}

// arm sets the timer for the earliest deadline. The caller holds mu.
func (b *Backend) arm() {
	x := &b.expiry
	if len(x.due) == 0 || x.armed.Equal(x.due[0].at) {
		return
	}
	b.disarm()
	x.armed = x.due[0].at
	b.expiring.Add(1)
	x.timer = time.AfterFunc(time.Until(x.armed), b.expire)
}

// disarm stops the timer. A run that has begun is counted in expiring until it has ended. The caller holds mu.
func (b *Backend) disarm() {
	if b.expiry.timer != nil && b.expiry.timer.Stop() {
		b.expiring.Done()
	}
	b.expiry.timer, b.expiry.armed = nil, time.Time{}
}
