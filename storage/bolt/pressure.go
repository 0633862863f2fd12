package bolt

import (
	"errors"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

const (
	// fullWindow is how long history is kept while the file is full. History is removed sooner if its pages are needed at
	// once.
	fullWindow = time.Second
	// fullTime is how long a file may be full, although there seems to be room, before its history is removed.
	fullTime = 10 * time.Second
	// forgetRetry is the pause after an attempt to remove all history, when there was no room for the smallest step of it.
	forgetRetry = 10 * time.Second
	// refillRetry is the minimum pause between two attempts to make the last room (see spare.go) again.
	refillRetry = 100 * time.Millisecond
)

// pressure describes how full the file is. While it is full, the file has no spare (see spare.go): commits that make the
// store grow are refused, less history is kept, and transactions are only as large as the room allows. It belongs to the
// writer's goroutine, which changes it only while no flush is in progress.
type pressure struct {
	gauge  gauge
	full   bool
	since  time.Time // when the file became full
	retry  time.Time // making the spare has failed and is not tried before
	rest   time.Time // removing all history has failed and is not tried before
	kept   bool      // the spare still exists, because there was no room to remove it
	urgent bool      // all history may be removed
	spent  bool      // the last room was removed
	refill time.Time // making the last room has failed and is not tried before
	unload func()    // writes the carried changes (see writer.carried) in steps; nil for a writer that carries nothing
}

// press switches the writer to a full file and removes the spare. From then on no commit that makes the store grow is
// accepted, even if the spare cannot be removed.
func (w *writer) press(now time.Time) {
	w.congest(now, w.b.errFull())
	w.pressure.kept = w.update(txn.dropReserve) != nil
}

// congest switches the writer to a full file. Commits that make the store grow fail with err.
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

// relieve makes the spare again if there is room for four of them, and reports whether the file has one. After a failure
// relieve waits ten times as long as the attempt took before it tries again, unless must is set.
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
	if err := w.keep(func(t txn) error { return addSpare(t.tx) }); err != nil {
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

// desperate reports whether all history must be removed now: there is too little room, or the file has been full for longer
// than fullTime. Otherwise the file can often be written again soon.
func (w *writer) desperate() bool {
	return w.b.room() < 2*spareBytes || time.Since(w.pressure.since) > fullTime
}

// fits reports whether there is room for a batch besides the bytes that wait to be written.
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

// spend removes the history that is older than fullWindow, and reports whether there is room for the batch then. It must be
// called only if no changes wait to be written except the carried ones.
func (w *writer) spend(now time.Time, batch []*request) bool {
	w.history.window = min(fullWindow, w.b.opts.Window)
	w.history.note(now, w.state.revision)
	for n, err := 1, error(nil); err == nil && n > 0; {
		n, err = w.transact(nil)
	}
	w.history.window, w.pressure.gauge = w.b.opts.Window, gauge{}
	return w.fits(0, batch)
}

// squeeze answers a batch in a full file. Commits that make the store grow are refused, and the others are made in steps,
// which become smaller when one does not fit. If a single commit does not fit, squeeze removes history, and then the last
// room.
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
	w.refillLast()
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
		case w.spendLast():
			continue
		}
		for _, r := range batch[:n] {
			r.answer(storage.CommitResult{}, err)
		}
		batch, n, forgotten = batch[n:], len(batch), false
	}
	w.refillLast()
}

// spendLast removes the last room. It returns false if the last room was removed before, or cannot be removed.
func (w *writer) spendLast() bool {
	if w.pressure.spent {
		return false
	}
	w.pressure.spent = true
	return w.update(txn.dropLast) == nil
}

// refillLast makes the last room again if it was removed. It removes history first. If the last room does not fit, refillLast
// tries again after refillRetry.
func (w *writer) refillLast() {
	p := &w.pressure
	if !p.spent || time.Now().Before(p.refill) {
		return
	}
	w.forget()
	p.spent = w.keep(func(t txn) error { return addZeros(t.tx, lastBucket, lastValues) }) != nil
	p.refill = time.Now().Add(refillRetry)
}

// keep is update for a transaction that makes the room of a full file again. The transaction leaves those bytes of the disk to
// other files that a file which is not full leaves: see bound.
func (w *writer) keep(fn func(txn) error) error {
	w.pressure.full = false
	err := w.update(fn)
	w.pressure.full = true
	return err
}

// shorten halves the steps in which history is removed, after a step did not fit. The smallest step may take the last room.
func (w *writer) shorten() {
	if w.limit = w.step(w.limit) / 2; w.limit == 0 && w.spendLast() {
		w.limit = 1
	}
}

// forget removes history and reports whether there was any. It works in steps, which become smaller when one does not fit. It
// removes all history if the writer is desperate.
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
			w.shorten()
		default:
			return some
		}
	}
	w.pressure.rest = time.Now().Add(forgetRetry)
	return some
}

// tidy removes history after a normal compaction has failed because there was no room. It reports whether it has removed
// anything.
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

// unanswered returns the requests that have no answer yet.
func unanswered(batch []*request) (left []*request) {
	for _, r := range batch {
		if !r.answered {
			left = append(left, r)
		}
	}
	return left
}
