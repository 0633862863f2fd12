package bolt

import (
	"errors"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

const (
	// fullWindow is how long history is kept while there is no room, unless its own is needed at once.
	fullWindow = time.Second
	// fullTime is how long a file may be full though there seems to be room before its history is given up all the same.
	fullTime = 10 * time.Second
	// forgetRetry is how long forgetting all history rests when there was no room for the smallest step of it.
	forgetRetry = 10 * time.Second
)

// pressure is what a writer knows of the room there is. While it is full, the file has no spare: commits that make the store
// grow are refused, less history is kept, and transactions are as small as the room requires. It belongs to the writer's
// goroutine, which changes it only while no flush is under way.
type pressure struct {
	gauge  gauge
	full   bool
	since  time.Time // full
	retry  time.Time // making the spare anew has failed and rests until then
	rest   time.Time // forgetting all history has failed and rests until then
	kept   bool      // the spare is still there, since there was no room to give it up
	urgent bool      // all history is given up
	unload func()    // writes what is carried in steps; nil for a writer that carries nothing
}

// press gives up the spare. Whatever comes of that, nothing that makes the store grow is taken from then on.
func (w *writer) press(now time.Time) {
	w.congest(now, w.b.errFull())
	w.pressure.kept = w.update(txn.dropReserve) != nil
}

// congest makes the writer one of a full file, and err the reason.
func (w *writer) congest(now time.Time, err error) {
	p := &w.pressure
	if p.gauge = (gauge{}); p.since.IsZero() {
		p.since = now
	}
	if p.full = true; w.b.room() < 4*spareBytes {
		w.history.window = min(fullWindow, w.b.opts.Window)
	}
	w.b.setFull(err)
}

// relieve makes the spare anew if there is room for several, and reports whether the file has one. After a failure it rests
// for ten times as long as that took, but for who must know.
func (w *writer) relieve(now time.Time, must bool) bool {
	p := &w.pressure
	if !p.full {
		return true
	}
	if !must && now.Before(p.retry) {
		return false
	}
	if w.b.room() < 4*spareBytes {
		w.congest(now, w.b.errFull())
		return false
	}
	if err := w.update(func(t txn) error { return addSpare(t.tx) }); err != nil {
		end := time.Now()
		p.retry = end.Add(10 * end.Sub(now))
		w.congest(now, err)
		return false
	}
	w.pressure = pressure{unload: p.unload}
	w.history.window = w.b.opts.Window
	w.b.setFull(nil)
	return true
}

// desperate says that history must go now. A file that cannot be written though there seems to be room can often be written
// soon.
func (w *writer) desperate() bool {
	return w.b.room() < 2*spareBytes || time.Since(w.pressure.since) > fullTime
}

// fits says that there is room for a batch besides what waits to be written.
func (w *writer) fits(waiting int, batch []*request) bool {
	size, grows := 0, false
	for _, c := range w.carried {
		waiting += c.size()
	}
	for _, r := range batch {
		size += r.size()
		grows = grows || r.kind == ready || r.kind == write && !r.commit.Delete
	}
	return !grows || w.pressure.gauge.takes(w.b, int64(waiting), int64(size))
}

// spend forgets the history that is older than fullWindow, which gives way to what is to be written, and reports whether there
// is room for a batch then. No change waits to be written but what is carried.
func (w *writer) spend(now time.Time, batch []*request) bool {
	w.history.window = min(fullWindow, w.b.opts.Window)
	w.history.note(now, w.state.revision)
	for n, err := 1, error(nil); err == nil && n > 0; {
		n, err = w.transact(nil)
	}
	w.history.window, w.pressure.gauge = w.b.opts.Window, gauge{}
	return w.fits(0, batch)
}

// squeeze answers a batch in a full file: what makes the store grow is refused, and the rest done in steps.
func (w *writer) squeeze(batch []*request) {
	if len(w.carried) > 0 && w.pressure.unload != nil {
		w.pressure.unload()
	}
	if w.pressure.kept {
		w.pressure.kept = w.update(txn.dropReserve) != nil
	}
	forgotten := false
	if w.b.room() < spareBytes {
		w.forget()
	}
	for n := len(batch); len(batch) > 0; {
		n = min(w.step(n), len(batch))
		_, err := w.transact(batch[:n])
		switch {
		case err == nil:
			batch, n, forgotten = batch[n:], len(batch), false
			continue
		case !errors.Is(err, storage.ErrNoSpace):
		case n > 1:
			n /= 2
			continue
		case !forgotten:
			w.forget()
			forgotten = true
			continue
		}
		for _, r := range batch[:n] {
			r.answer(storage.CommitResult{}, err)
		}
		batch, n, forgotten = batch[n:], len(batch), false
	}
}

// forget gives up history, in steps that become smaller when one does not fit, and reports whether there was any: all if it is
// desperate.
func (w *writer) forget() (some bool) {
	if time.Now().Before(w.pressure.rest) {
		return false
	}
	w.pressure.urgent = w.desperate()
	defer func() { w.pressure.urgent, w.limit = false, 0 }()
	for w.limit = stepChanges; w.limit > 0; {
		n, err := w.transact(nil)
		switch {
		case err == nil && n > 0:
			some = true
		case errors.Is(err, storage.ErrNoSpace) && w.pressure.urgent:
			w.limit = w.step(w.limit) / 2
		default:
			return some
		}
	}
	w.pressure.rest = time.Now().Add(forgetRetry)
	return some
}

// tidy is compaction after it has found no room. It reports whether some was made.
func (w *writer) tidy(now time.Time) (some bool) {
	if !w.pressure.full {
		w.press(now)
	}
	if len(w.carried) > 0 && w.pressure.unload != nil {
		w.pressure.unload()
	}
	some = w.forget()
	w.retry = now.Add(time.Second)
	return some
}

// unanswered are the requests that have no answer yet.
func unanswered(batch []*request) (left []*request) {
	for _, r := range batch {
		if !r.answered {
			left = append(left, r)
		}
	}
	return left
}
