package bolt

import (
	"errors"
	"os"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

const (
	// journalTime is about how long a change is in the journal only, if nothing else starts a flush.
	journalTime = 2 * time.Second
	// journalRetry is the pause before a journal is made again, when there was no room for one.
	journalRetry = 10 * time.Second
)

// journaled is the writer of SyncAlways. It applies commits in memory, on top of the file's content, and makes them durable
// in the journal. One flush at a time writes the accumulated changes into the trees. Requests that the journal cannot serve,
// and all requests before there is a journal, use a transaction of the writer, which also writes the changes in the journal.
// After a failed transaction, all requests use such transactions until one succeeds: the failed one may have left changes in
// the file that nobody has seen. The fields belong to the writer's goroutine.
type journaled struct {
	pending
	journal *journal // nil while there is none, or when it must not be written any more
	file    *os.File // the file, opened for the journal; nil before there was one
	durably int64    // number of transactions so far
	makeAt  time.Time
	flushAt time.Time // when the changes should be flushed
	answers []answer  // memory for the answers of the next batch
}

func newJournaled(w *writer) *journaled {
	j := &journaled{pending: newPending(w)}
	w.pressure.unload = j.unload
	return j
}

// unload writes the content of the journal into the trees of a full file, if there is room, and abandons the journal.
func (j *journaled) unload() {
	if err := j.drain(true); err == nil {
		j.wrong = nil
	}
	j.carried = j.changes
	j.abandon(time.Now())
}

// run works until the backend is closed and everything is written. What cannot be written stays in the journal.
func (j *journaled) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		batch, closed := j.b.take()
		now := time.Now()
		j.history.note(now, j.now.revision)
		if len(batch) > 0 {
			j.accept(batch, now)
		}
		expired := !closed && j.expireDue(now)
		if j.flushDue(now) {
			j.start(j.flush(now))
		}
		switch {
		case len(batch) > 0, expired:
			select {
			case f := <-j.flushing:
				j.finished(f)
			default:
			}
			continue
		case closed:
			if j.await(); j.wrong != nil {
				j.settle()
			}
			j.carried = j.changes
			j.finish()
			if j.file != nil {
				_ = j.file.Close()
			}
			return
		case j.wrong != nil && j.unsettled() && !now.Before(j.retry):
			j.retry = now.Add(flushRetry)
			j.settle()
			continue
		}
		if rest, ok := j.rest(now); ok {
			timer.Reset(rest)
		} else {
			timer.Stop()
		}
		select {
		case <-j.b.wake:
		case <-timer.C:
		case f := <-j.flushing:
			j.finished(f)
		}
	}
}

// rest returns how long the writer may sleep when nothing is committed and no flush ends; ok is false for no limit.
func (j *journaled) rest(now time.Time) (time.Duration, bool) {
	at, ok := j.history.next(j.now.revision)
	sooner := func(t time.Time) {
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	if j.flushing == nil {
		if j.due() || j.wrong != nil && len(j.changes) > 0 {
			sooner(j.retry)
		}
		if j.wrong == nil && len(j.changes) > 0 {
			sooner(j.flushAt)
		}
	}
	if e, expects := j.expiresAt(now); expects {
		sooner(e)
	}
	return max(at.Sub(now), 0), ok
}

// flushDue reports whether a flush should begin now: a half of the journal is full, or the time has come.
func (j *journaled) flushDue(now time.Time) bool {
	switch {
	case j.flushing != nil || j.wrong != nil:
		return false
	case len(j.changes) > 0 && (!now.Before(j.flushAt) || j.journal == nil || j.journal.other() > j.state.revision):
		return true
	}
	return j.due() && !now.Before(j.retry)
}

// finished removes from memory what a flush has written.
func (j *journaled) finished(f *flush) {
	j.flushing = nil
	if f.err != nil && !errors.Is(f.err, errNothing) {
		j.wrong = f.err
		j.b.setFailed(f.err)
		j.retry = f.began.Add(flushRetry)
		return
	}
	if f.scrubbed == 0 {
		j.retry = f.began.Add(time.Second) // compaction has found nothing
	}
	j.flushAt = f.began.Add(journalTime)
	j.b.setFailed(nil)
	j.written(f)
	f.changes = nil // Hooks.Committed was called for them already
	j.tell(f.attempt, f.began)
}

// await waits for the flush in progress, if there is one.
func (j *journaled) await() {
	if j.flushing != nil {
		j.finished(<-j.flushing)
	}
}

// direct runs fn, which makes transactions of the writer, between two flushes.
func (j *journaled) direct(fn func()) {
	j.await()
	j.carried = j.changes
	fn()
	if len(j.carried) == 0 {
		j.changes, j.size, j.overlay = nil, 0, newOverlay()
		j.now = j.state
		j.durably++
	}
	j.carried = nil
}

// settle tries to write the content of the journal into the trees, and to remove history. On a full disk there is reserved
// room for that.
func (j *journaled) settle() {
	j.direct(func() {
		if !j.pressure.full {
			if _, err := j.transact(nil); !errors.Is(err, storage.ErrNoSpace) {
				return
			}
			j.press(time.Now())
		}
		j.tidy(time.Now())
	})
}

// abandon stops the use of the journal. The next transaction removes it.
func (j *journaled) abandon(now time.Time) {
	j.journal, j.dropping, j.makeAt = nil, true, now.Add(journalRetry)
}

// accept executes the requests of a batch.
func (j *journaled) accept(batch []*request, now time.Time) {
	if j.wrong != nil && len(j.changes) > 0 {
		j.settle()
	}
	if j.journal == nil {
		j.makeJournal(now)
	}
	if j.journal != nil && !j.pressure.full && !j.fits(j.size, batch) { // the journal must be removed to get its room
		j.abandon(now)
		j.direct(func() { _, _ = j.transact([]*request{{kind: probe, done: make(chan struct{})}}) })
	}
	if j.quick(batch, now) {
		return
	}
	if len(j.changes) > 0 && slices.ContainsFunc(batch, func(r *request) bool { return r.kind == borrow }) {
		j.settle()
		for _, r := range batch {
			if r.kind == borrow && len(j.changes) > 0 {
				r.answer(storage.CommitResult{}, j.wrong)
			}
		}
		batch = slices.DeleteFunc(batch, func(r *request) bool { return r.answered })
	}
	j.direct(func() {
		if others := j.lend(batch); len(others) > 0 {
			j.writer.commit(others)
		}
	})
}

// makeJournal makes a journal in a file that is written often, if there is room.
func (j *journaled) makeJournal(now time.Time) {
	if j.await(); j.durably <= j.b.opts.after || j.state.clean != 0 || j.wrong != nil || len(j.changes) > 0 || now.Before(j.makeAt) {
		return
	}
	if j.pressure.full || j.b.room() < 8*j.b.opts.half {
		return
	}
	err := j.openAgain()
	if err == nil {
		err = j.update(func(t txn) error { return t.addJournal(j.b.opts.half) })
	}
	if err == nil {
		err = j.b.view(func(t txn) (err error) {
			j.journal, err = findJournal(t.tx, j.file)
			return err
		})
	}
	if j.dropping = false; err != nil {
		j.abandon(now) // the journal may exist in the file
	}
}

// openAgain opens the file once more, for the journal. A system reports a failed write once for each open file. If both used
// the same open file, a flush of the journal could receive the error of a transaction whose pages are lost, and the
// transaction would count as durable; the same holds the other way round. The file stays open until the end, because some
// systems release the lock on a file when the process closes any open file of it.
func (j *journaled) openAgain() (err error) {
	if j.file != nil {
		return nil
	}
	mine, err := j.b.file.Stat()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.b.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	there, err := f.Stat()
	if err == nil && !os.SameFile(mine, there) {
		err = errReplaced
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	j.file = f
	return nil
}

// quick makes a batch of commits durable in the journal, shows them and answers them. If it returns false it has done
// nothing.
func (j *journaled) quick(batch []*request, now time.Time) bool {
	size := int64(recordHeader)
	for _, r := range batch {
		if r.kind != write {
			return false
		}
		size += recordOverhead + int64(r.size())
	}
	if j.wrong != nil || j.pressure.full || !j.room(size, now) {
		return false
	}
	before, first := j.now, len(j.changes)
	answers := j.answers[:0]
	err := j.b.view(func(t txn) error {
		for _, r := range batch {
			res, err := j.commit(t, r.commit, nil)
			if err != nil && !errors.Is(err, storage.ErrConflict) {
				return err
			}
			answers = append(answers, answer{r, res, err})
		}
		return nil
	})
	made := j.changes[first:]
	if err == nil && len(made) > 0 {
		err = j.record(made, now)
	}
	if err != nil {
		j.undo(first, before)
		return false
	}
	if len(made) > 0 {
		if first == 0 {
			j.flushAt = now.Add(journalTime)
		}
		j.publish(made)
	}
	for _, a := range answers {
		a.answer(a.res, a.err)
	}
	clear(answers)
	j.answers = answers
	if h := j.b.opts.Hooks.Committed; h != nil && len(made) > 0 {
		h(len(made), time.Since(now))
	}
	return true
}

// undo removes changes that nobody has seen.
func (j *journaled) undo(first int, before state) {
	for i, c := range j.changes[first:] {
		j.size -= c.size() + changeBytes
		j.overlay.versions.Delete(c)
		j.changes[first+i] = nil
	}
	j.changes, j.now = j.changes[:first], before
}

// room makes sure that a record of the given size fits into the journal, and waits for a flush if necessary.
func (j *journaled) room(size int64, now time.Time) bool {
	switch {
	case j.journal == nil || blocks(size) > j.journal.half:
		return false
	case j.journal.fits(size):
		return true
	}
	if j.journal.other() > j.state.revision {
		if j.flushing == nil {
			j.start(j.flush(now))
		}
		if j.await(); j.journal.other() > j.state.revision {
			return false
		}
	}
	j.journal.reuse()
	return true
}

// record makes changes durable in the journal.
func (j *journaled) record(made []*change, now time.Time) error {
	if fn := j.b.opts.syncing; fn != nil {
		if err := fn(len(made)); err != nil {
			return err
		}
	}
	clock := int64(0)
	if slices.ContainsFunc(made, (*change).timed) {
		clock = j.clock.tell().Unix()
	}
	j.journal.encode(made, clock)
	err := j.journal.write()
	if err == nil {
		err = j.b.flushed(flushData(j.journal.file))
	}
	if err != nil {
		j.abandon(now) // the record may be in the file
		return err
	}
	j.journal.written(made[len(made)-1].revision)
	return nil
}

// expireDue calls the writer's expireDue.
func (j *journaled) expireDue(now time.Time) (expired bool) {
	if j.nextExpiry != 0 && j.nextExpiry <= j.clock.tell().Unix() && !now.Before(j.expiryRetry) {
		j.direct(func() { expired = j.writer.expireDue(now) })
	}
	return expired
}
