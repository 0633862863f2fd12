package transport

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Patience gives up writes of watches that take longer than Limit. A deadline set before each write and taken back after it
// would do the same, but HTTP/2 makes two messages to its connection's goroutine and a timer of that, for every event
// of every watch. Here a write tells only when it began. One timer serves all: while there are writes it looks at them
// about once in Limit, and never before the one that began first has had its time.
type Patience struct {
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
	slot    int // in Patience.writes
}

const (
	notWriting = 0
	givenUp    = -1
)

// Join begins to watch over the writes that w tells of; Leave must be called when there will be no more, before control
// becomes invalid.
func (p *Patience) Join(w *Write, control *http.ResponseController) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.writes) == 0 {
		p.epoch = time.Now().Add(-time.Second) // so that no time is notWriting
	}
	w.control, w.slot = control, len(p.writes)
	p.writes = append(p.writes, w)
}

// Leave ends what Join has begun.
func (p *Patience) Leave(w *Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.writes) - 1
	p.writes[w.slot] = p.writes[last]
	p.writes[w.slot].slot = w.slot
	p.writes[last] = nil
	p.writes = p.writes[:last]
	if last == 0 && p.timer != nil {
		p.timer.Stop()
		p.writes, p.timer = nil, nil
		p.armed.Store(false)
	}
}

// Begins tells that a write begins.
func (p *Patience) Begins(w *Write) {
	if p.Limit <= 0 {
		return
	}
	w.since.Store(int64(time.Since(p.epoch)))
	if p.armed.Load() {
		return // the timer looks after this: it disarms itself first
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed.Load() {
		p.lookIn(p.Limit)
	}
}

// Ends tells that the write has ended; false when it was given up.
func (p *Patience) Ends(w *Write) bool { return w.since.Swap(notWriting) != givenUp }

// lookIn lets look be called in a while. The caller holds mu.
func (p *Patience) lookIn(wait time.Duration) {
	p.armed.Store(true)
	if p.timer == nil {
		p.timer = time.AfterFunc(wait, p.look)
		return
	}
	p.timer.Reset(wait)
}

// look gives up the writes that have had their time, and comes back when the next will have had it.
func (p *Patience) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.writes) == 0 {
		return
	}
	p.armed.Store(false)
	now := int64(time.Since(p.epoch))
	first := now + 1
	for _, w := range p.writes {
		since := w.since.Load()
		switch {
		case since <= notWriting:
		case since+int64(p.Limit) > now:
			first = min(first, since)
		case w.since.CompareAndSwap(since, givenUp):
			// An error is that of a ResponseWriter without deadlines: then the write may take for ever.
			_ = w.control.SetWriteDeadline(time.Unix(1, 0))
		}
	}
	if first <= now {
		p.lookIn(time.Duration(first + int64(p.Limit) - now))
	}
}
