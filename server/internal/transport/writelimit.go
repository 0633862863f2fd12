package transport

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// WriteLimit ends writes of watches that take longer than Limit. Setting a deadline before each write and removing it afterwards
// would do the same. But HTTP/2 turns that into two messages to the goroutine of its connection and a timer, for every event of
// every watch. With WriteLimit a write only stores its start. One timer is enough for all writes: while there are writes, it
// checks them about once in each Limit, and not before the oldest write has had its time.
type WriteLimit struct {
	Limit time.Duration // 0 or less: no limit
	armed atomic.Bool   // the timer is set; changed with mu held

	mu     sync.Mutex // guards all below
	epoch  time.Time  // start of the times in writes; it changes only while there are no writes
	writes []*Write
	timer  *time.Timer // nil before the first write
}

// Write has the state of the writes of one watch. Its owner makes one write at a time.
type Write struct {
	since   atomic.Int64 // nanoseconds from epoch to the start of the write; or one of the constants below
	control *http.ResponseController
	slot    int // index in WriteLimit.writes
}

const (
	notWriting = 0
	givenUp    = -1
)

// Join adds w, whose writes are limited from then on. Leave must be called after the last write, before control becomes invalid.
func (l *WriteLimit) Join(w *Write, control *http.ResponseController) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.writes) == 0 {
		l.epoch = time.Now().Add(-time.Second) // so that no start is notWriting
	}
	w.control, w.slot = control, len(l.writes)
	l.writes = append(l.writes, w)
}

// Leave removes w, which Join has added.
func (l *WriteLimit) Leave(w *Write) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.writes) - 1
	l.writes[w.slot] = l.writes[last]
	l.writes[w.slot].slot = w.slot
	l.writes[last] = nil
	l.writes = l.writes[:last]
	if last == 0 && l.timer != nil {
		l.timer.Stop()
		l.writes, l.timer = nil, nil
		l.armed.Store(false)
	}
}

// Begins is called when a write begins.
func (l *WriteLimit) Begins(w *Write) {
	if l.Limit <= 0 {
		return
	}
	w.since.Store(int64(time.Since(l.epoch)))
	if l.armed.Load() {
		return // look sees this write: it clears armed first
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.armed.Load() {
		l.lookIn(l.Limit)
	}
}

// Ends is called when the write has ended. It returns false if the write was ended by the limit.
func (l *WriteLimit) Ends(w *Write) bool { return w.since.Swap(notWriting) != givenUp }

// lookIn sets the timer, which calls look after wait. The caller holds mu.
func (l *WriteLimit) lookIn(wait time.Duration) {
	l.armed.Store(true)
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.look)
		return
	}
	l.timer.Reset(wait)
}

// look ends the writes that have had their time, and sets the timer for the next one.
func (l *WriteLimit) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.writes) == 0 {
		return
	}
	l.armed.Store(false)
	now := int64(time.Since(l.epoch))
	first := now + 1
	for _, w := range l.writes {
		since := w.since.Load()
		switch {
		case since <= notWriting:
		case since+int64(l.Limit) > now:
			first = min(first, since)
		case w.since.CompareAndSwap(since, givenUp):
			// An error means that the ResponseWriter has no deadlines: then the write is not limited.
			_ = w.control.SetWriteDeadline(time.Unix(1, 0))
		}
	}
	if first <= now {
		l.lookIn(time.Duration(first + int64(l.Limit) - now))
	}
}
