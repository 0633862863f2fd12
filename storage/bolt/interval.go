package bolt

import (
	"errors"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// unflushedBytes is the maximum size of the commits in memory; beyond it, new commits wait.
const unflushedBytes = 16 << 20

// deferred is the writer of SyncInterval. It answers and shows commits before a flush writes them. Its fields belong to the
// writer's goroutine.
type deferred struct {
	pending
	requests []*request // requests that wait for the next flush
	rested   time.Time  // when the next flush may begin, unless one is requested
	failed   error      // error of the last flush
	tidied   bool       // the last flush, after a failed one, only made room
	swept    expiring   // entries of the file's expiry bucket up to here have been handled
}

func newDeferred(w *writer) *deferred { return &deferred{pending: newPending(w)} }

// run works until the backend is closed and everything is written, or returns the error for what could not be written.
func (d *deferred) run() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var batch []*request
		closed := false
		if d.failed != nil || d.size < unflushedBytes {
			batch, closed = d.b.take()
		}
		now := time.Now()
		d.history.note(now, d.now.revision)
		d.accept(batch, now)
		expired := !closed && d.expireDue(now)
		if d.flushing == nil && d.flushDue(now) {
			if d.pressure.full {
				d.squeezeAll(now)
			} else {
				d.begin(now)
			}
		}
		switch {
		case len(batch) > 0, expired:
			select {
			case f := <-d.flushing:
				d.finished(f)
			default:
			}
			continue
		case closed:
			return d.end()
		}
		if rest, ok := d.rest(now); ok {
			timer.Reset(rest)
		} else {
			timer.Stop()
		}
		select {
		case <-d.b.wake:
		case <-timer.C:
		case f := <-d.flushing:
			d.finished(f)
		}
	}
}

// rest returns how long the writer may sleep when nothing is committed and no flush ends; ok is false for no limit.
func (d *deferred) rest(now time.Time) (time.Duration, bool) {
	at, ok := d.history.next(d.now.revision)
	if d.flushing == nil && d.unsettled() && (!ok || d.rested.Before(at)) {
		at, ok = d.rested, true
	}
	if d.mayExpire() { // otherwise the end of a flush comes first
		if e, expects := d.expiresAt(now); expects && (!ok || e.Before(at)) {
			at, ok = e, true
		}
	}
	return max(at.Sub(now), 0), ok
}

// flushDue reports whether a flush should begin now.
func (d *deferred) flushDue(now time.Time) bool {
	switch {
	case len(d.requests) > 0:
		return true
	case !d.unsettled():
		return false
	}
	return !now.Before(d.rested) || d.failed == nil && d.size >= unflushedBytes/2
}

// unsettled reports whether a flush has something to do. After a failure it does, to find out whether the file can be written
// again.
func (d *deferred) unsettled() bool { return d.pending.unsettled() || d.failed != nil }

// mayExpire reports whether keys may be deleted now: there is room in memory, and the last flush has not failed.
func (d *deferred) mayExpire() bool { return d.failed == nil && d.size < unflushedBytes }

// expireDue deletes keys whose time has come, in memory like every commit, and reports whether it did. It deletes at most
// stepChanges at once, because commits wait for that.
func (d *deferred) expireDue(now time.Time) (expired bool) {
	if d.nextExpiry == 0 || d.nextExpiry > d.clock.tell().Unix() || now.Before(d.expiryRetry) || !d.mayExpire() {
		return false
	}
	if d.pressure.full {
		if d.unloaded(now) {
			expired = d.writer.expireDue(now)
			d.now = d.state
		}
		return expired
	}
	if d.reserveFor(stepChanges); d.failed != nil {
		return false
	}
	first := len(d.changes)
	err := d.b.view(func(t txn) error { return d.expire(t, d.clock.tell().Unix()) })
	d.tried(now, err)
	made := d.changes[first:]
	if len(made) > 0 {
		d.publish(made)
	}
	return len(made) > 0
}

// begin starts a flush of all changes and requests in its own goroutine.
func (d *deferred) begin(now time.Time) {
	f := d.flush(now)
	f.requests, f.dirty = d.requests, d.failed != nil
	d.tidied = errors.Is(d.failed, storage.ErrNoSpace) && !d.tidied && len(d.requests) == 0 && d.due()
	if d.tidied {
		f.changes = nil // only history is removed, so that there is room
	}
	d.requests = nil
	d.rested = now.Add(d.b.opts.Interval)
	d.start(f)
}

// finished removes from memory what a flush has written.
func (d *deferred) finished(f *flush) {
	d.flushing = nil
	nothing := errors.Is(f.err, errNothing)
	if f.err != nil && !nothing {
		d.fail(f)
		return
	}
	if !d.tidied {
		d.failed = nil
		d.b.setFailed(nil)
	}
	d.written(f)
	if !nothing && (d.tidied || f.scrubbed > 0 && d.due()) {
		d.rested = f.began // continue at once
	}
	d.tell(f.attempt, f.began)
}

// fail records a failed flush. The changes stay in memory.
func (d *deferred) fail(f *flush) {
	d.failed = f.err
	d.b.setFailed(f.err)
	if errors.Is(f.err, storage.ErrNoSpace) && !d.pressure.full {
		d.press(time.Now())
		d.requests = append(f.requests, d.requests...)
		d.rested = f.began // continue at once
		return
	}
	d.rested = f.began.Add(max(flushRetry, d.b.opts.Interval))
	for _, r := range f.requests {
		r.answer(storage.CommitResult{}, f.err)
	}
}

// unloaded writes everything that is only in memory to a full file, in steps, and reports whether nothing is left.
func (d *deferred) unloaded(now time.Time) bool {
	d.await()
	if len(d.changes) == 0 && d.failed == nil {
		return true
	}
	err := d.drain(false)
	if d.failed = err; err != nil {
		d.rested = now.Add(max(flushRetry, d.b.opts.Interval))
	}
	d.b.setFailed(err)
	return err == nil
}

// squeezeAll is a flush for a full file.
func (d *deferred) squeezeAll(now time.Time) {
	done := d.unloaded(now)
	requests := d.requests
	d.requests = nil
	if !done {
		for _, r := range requests {
			r.answer(storage.CommitResult{}, d.failed)
		}
		return
	}
	d.rested = now.Add(d.b.opts.Interval)
	if len(requests) > 0 {
		d.writer.commit(requests)
	} else if _, err := d.transact(nil); errors.Is(err, storage.ErrNoSpace) {
		d.writer.tidy(now)
		d.rested = now.Add(max(flushRetry, d.b.opts.Interval))
	}
	d.now = d.state
}

// await waits for the flush in progress, if there is one.
func (d *deferred) await() {
	if d.flushing != nil {
		d.finished(<-d.flushing)
	}
}

// end writes the rest and closes the file cleanly, or returns an error for what could not be written.
func (d *deferred) end() error {
	d.await()
	if !d.pressure.full && (len(d.changes) > 0 || len(d.requests) > 0) {
		d.tidied = true // do not use this flush to make room only: it is the last one
		d.begin(time.Now())
		d.await()
	}
	if d.pressure.full {
		d.squeezeAll(time.Now())
	}
	if n := len(d.changes); n > 0 {
		return fmt.Errorf("bolt: close %s: the last %d changes, of revisions %d to %d, could not be written and are lost: %w",
			d.b.path, n, d.changes[0].revision, d.now.revision, d.failed)
	}
	d.state.revision, d.state.compacted = d.now.revision, d.now.compacted
	d.finish()
	return nil
}

// accept applies a batch in memory, shows its changes and answers it.
func (d *deferred) accept(batch []*request, now time.Time) {
	if len(batch) == 0 {
		return
	}
	if !d.pressure.full && !d.fits(d.size, batch) {
		fits := false
		if d.unloaded(now) {
			fits = d.spend(now, batch)
			d.now = d.state
		}
		if !fits {
			d.press(now)
		}
	}
	if d.pressure.full && d.unloaded(now) {
		d.writer.commit(d.lend(batch))
		d.now = d.state
		return
	}
	commits := make([]*request, 0, len(batch))
	for _, r := range batch {
		switch r.kind {
		case write:
			commits = append(commits, r)
		case ready:
			r.answer(storage.CommitResult{}, d.failed)
		case compact, probe:
			d.requests = append(d.requests, r)
		case borrow:
			d.await()
			if d.now.revision == d.state.revision {
				d.lend([]*request{r})
				d.now = d.state
			} else {
				r.answer(storage.CommitResult{}, storage.ErrNotEmpty)
			}
		}
	}
	if len(commits) == 0 {
		return
	}
	was := d.pressure.full
	if d.reserveFor(len(commits)); d.pressure.full && !was {
		d.accept(commits, now)
		return
	}
	first := len(d.changes)
	var answers []answer
	err := d.b.view(func(t txn) error {
		for _, r := range commits {
			res, err := d.commit(t, r.commit, d.failed)
			if errors.Is(err, errDamaged) {
				return err
			}
			answers = append(answers, answer{r, res, err})
		}
		return nil
	})
	if made := d.changes[first:]; len(made) > 0 {
		d.publish(made)
	}
	for _, a := range answers {
		a.answer(a.res, a.err)
	}
	for _, r := range commits {
		r.answer(storage.CommitResult{}, err)
	}
}

// reserveFor makes sure that n more revisions may be shown, with a flush that reserves them if necessary.
func (d *deferred) reserveFor(n int) {
	if d.now.revision+int64(n) <= d.state.reserved {
		return
	}
	d.await()
	if d.now.revision+int64(n) <= d.state.reserved || d.failed != nil {
		return
	}
	d.begin(time.Now())
	d.await()
}
