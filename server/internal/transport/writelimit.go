package transport

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// WriteLimit gives up writes of watches that take longer than Limit. A deadline set before each write and taken back after it
// would do the same, but HTTP/2 makes two messages to its connection's goroutine and a timer of that, for every event
// of every watch. Here a write tells only when it began. One timer serves all: while there are writes it looks at them
// about once in Limit, and never before the one that began first has had its time.
type WriteLimit struct {
	Limit time.Duration // 0 or less: for ever
	armed atomic.Bool   // the timer will look; changed with mu held

	mu     sync.Mutex // guards all below
	epoch  time.Time  // what writes count from; it changes only while there are none
	writes []*Write
	timer  *time.Timer // nil before the first write
}

// Write is where a watch tells of its writes. Its owner writes one after the other.
type Write struct {
	since   atomic.Int64 // nanoseconds from epoch to when the write began; or one of those below
	control *http.ResponseController
	slot    int // in WriteLimit.writes
}

const (
	notWriting = 0
	givenUp    = -1
)

// Join begins to watch over the writes that w tells of; Leave must be called when there will be no more, before control
// becomes invalid.
func (l *WriteLimit) Join(w *Write, control *http.ResponseController) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.writes) == 0 {
		l.epoch = time.Now().Add(-time.Second) // so that no time is notWriting
	}
	w.control, w.slot = control, len(l.writes)
	l.writes = append(l.writes, w)
}

// Leave ends what Join has begun.
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

// Begins tells that a write begins.
func (l *WriteLimit) Begins(w *Write) {
	if l.Limit <= 0 {
		return
	}
	w.since.Store(int64(time.Since(l.epoch)))
	if l.armed.Load() {
		return // the timer looks after this: it disarms itself first
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.armed.Load() {
		l.lookIn(l.Limit)
	}
}

// Ends tells that the write has ended; false when it was given up.
func (l *WriteLimit) Ends(w *Write) bool { return w.since.Swap(notWriting) != givenUp }

// lookIn lets look be called in a while. The caller holds mu.
func (l *WriteLimit) lookIn(wait time.Duration) {
	l.armed.Store(true)
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.look)
		return
	}
	l.timer.Reset(wait)
}

// look gives up the writes that have had their time, and comes back when the next will have had it.
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
			// An error is that of a ResponseWriter without deadlines: then the write may take for ever.
			_ = w.control.SetWriteDeadline(time.Unix(1, 0))
		}
	}
	if first <= now {
		l.lookIn(time.Duration(first + int64(l.Limit) - now))
	}
}
