package bolt

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

const (
	// unflushedBytes is how much may wait in memory; commits wait when it is reached.
	unflushedBytes = 16 << 20
	// changeBytes is what a waiting change takes besides its key and value, about.
	changeBytes = 256
	// flushRetry is how long a failed flush rests.
	flushRetry = time.Second
)

// deferred is the writer of SyncInterval. It applies commits in memory, on top of the file's content, and has one
// flush at a time write what has come to the file. Its fields belong to the writer's goroutine.
type deferred struct {
	*writer
	now      state      // as it is shown; writer.state is as it is in the file, durably
	changes  []*change  // of the revisions between these two
	size     int        // of the changes
	overlay  *overlay   // the changes by key
	requests []*request // wait for the next flush
	flushing chan *flush
	rested   time.Time // when the next flush may begin, unless one is asked for
	failed   error     // why the last flush failed
	tidied   bool      // the last flush, after a failed one, was to make room only
	swept    expiring  // entries of the file's expiry bucket up to here have been seen to
	told     bool      // Hooks.Committed hears of changes before a flush writes them
}

// flush is one transaction of a deferred writer, made in a goroutine of its own.
type flush struct {
	*attempt
	began    time.Time
	now      state
	requests []*request
	err      error
}

func newDeferred(w *writer) *deferred {
	return &deferred{writer: w, now: w.state, overlay: newOverlay()}
}

// run works until the backend is closed and everything is written, or returns what could not be.
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
		d.accept(batch)
		expired := !closed && d.expireDue(now)
		if d.flushing == nil && d.flushDue(now) {
			d.begin(now)
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

// rest returns how long the writer may sleep when nothing is committed and no flush ends; false is for ever.
func (d *deferred) rest(now time.Time) (time.Duration, bool) {
	at, ok := d.history.next(d.now.revision)
	if d.flushing == nil && d.unsettled() && (!ok || d.rested.Before(at)) {
		at, ok = d.rested, true
	}
	if d.mayExpire() { // else the end of a flush comes first
		if e, expects := d.expiresAt(now); expects && (!ok || e.Before(at)) {
			at, ok = e, true
		}
	}
	return max(at.Sub(now), 0), ok
}

// flushDue says that a flush should begin now.
func (d *deferred) flushDue(now time.Time) bool {
	switch {
	case len(d.requests) > 0:
		return true
	case !d.unsettled():
		return false
	}
	return !now.Before(d.rested) || d.failed == nil && d.size >= unflushedBytes/2
}

// unsettled says that a flush has something to do, if only to find out whether the file can be written again.
func (d *deferred) unsettled() bool { return len(d.changes) > 0 || d.due() || d.failed != nil }

// begin starts a flush of all there is.
func (d *deferred) begin(now time.Time) {
	f := &flush{attempt: d.attempt(), began: now, now: d.now, requests: d.requests}
	f.head, f.dirty = d.now.revision, d.failed != nil
	d.tidied = errors.Is(d.failed, storage.ErrNoSpace) && !d.tidied && len(d.requests) == 0 && d.due()
	if !d.tidied { // else history is forgotten first, so that there is room
		f.changes = d.changes[:len(d.changes):len(d.changes)]
	}
	d.requests = nil
	d.rested = now.Add(d.b.opts.Interval)
	done := make(chan *flush, 1)
	d.flushing = done
	go func() {
		f.err = d.update(f.run)
		done <- f
	}()
}

// run is the transaction. What an earlier one has left that failed at its last step is written once more.
func (f *flush) run(t txn) error {
	f.txn = t
	if err := f.attempt.begin(); err != nil {
		return err
	}
	for _, c := range f.changes {
		if err := f.put(c); err != nil {
			return err
		}
		f.state.revision, f.state.total = c.revision, c.total
		f.dirty = true
	}
	for _, r := range f.requests {
		if err := f.apply(r); err != nil {
			return err
		}
	}
	return f.end(2*len(f.changes) + stepChanges)
}

// finished takes what a flush has written out of memory.
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
	if !nothing {
		d.state, d.dropping = f.state, d.dropping && !f.dropping
		d.now.compacted = f.state.compacted
		if d.tidied || f.scrubbed > 0 && d.due() {
			d.rested = f.began // go on
		}
	}
	n := 0
	for ; n < len(d.changes) && d.changes[n].revision <= d.state.revision; n++ {
		d.size -= d.changes[n].size() + changeBytes
		d.overlay.versions.Delete(d.changes[n])
		d.changes[n] = nil
	}
	d.changes = d.changes[n:]
	d.publish(nil)
	f.deliver()
	if d.told {
		f.changes = nil
	}
	d.tell(f.attempt, f.began)
}

// fail keeps what could not be written.
func (d *deferred) fail(f *flush) {
	d.failed = f.err
	d.b.setFailed(f.err)
	d.rested = f.began.Add(max(flushRetry, d.b.opts.Interval))
	for _, r := range f.requests {
		r.answer(storage.CommitResult{}, f.err)
	}
}

// await ends the flush under way, if there is one.
func (d *deferred) await() {
	if d.flushing != nil {
		d.finished(<-d.flushing)
	}
}

// end writes the rest and closes the file cleanly, or returns what could not be written.
func (d *deferred) end() error {
	d.await()
	if len(d.changes) > 0 || len(d.requests) > 0 {
		d.tidied = true // this is the last chance
		d.begin(time.Now())
		d.await()
	}
	if n := len(d.changes); n > 0 {
		return fmt.Errorf("bolt: close %s: the last %d changes, of revisions %d to %d, could not be written and are lost: %w",
			d.b.path, n, d.changes[0].revision, d.now.revision, d.failed)
	}
	d.state.revision, d.state.compacted = d.now.revision, d.now.compacted
	d.finish()
	return nil
}

// publish shows the changes and what there is now.
func (d *deferred) publish(changes []*change) {
	d.b.tail.publish(changes, shown{
		revision: d.now.revision,
		floor:    d.now.compacted,
		flushed:  d.state.revision,
		overlay:  d.overlay.published(),
	})
}

// accept applies a batch in memory, shows its changes and answers it.
func (d *deferred) accept(batch []*request) {
	commits := make([]*request, 0, len(batch))
	for _, r := range batch {
		switch r.kind {
		case write:
			commits = append(commits, r)
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
	d.reserveFor(len(commits))
	first := len(d.changes)
	var answers []answer
	err := d.b.view(func(t txn) error {
		for _, r := range commits {
			res, err := d.commit(t, r.commit)
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

// reserveFor makes sure that n more revisions may be shown: with a flush that says so, if it must be.
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

// commit applies one commit in memory.
func (d *deferred) commit(t txn, c storage.Commit) (storage.CommitResult, error) {
	was, unflushed, err := d.current(t, c.Key)
	if err != nil {
		return storage.CommitResult{}, err
	}
	switch judge(c, was.revision) {
	case conflicts:
		return d.conflict(t, c.Key, was.revision, unflushed)
	case idle:
		return storage.CommitResult{Revision: d.now.revision}, nil
	}
	if d.failed != nil {
		return storage.CommitResult{}, d.failed
	}
	d.perform(c, was, unflushed)
	return storage.CommitResult{Revision: d.now.revision}, nil
}

// perform makes a commit whose condition holds.
func (d *deferred) perform(c storage.Commit, was replaced, unflushed *change) {
	var now time.Time
	if c.TTL > 0 {
		now = d.clock.tell()
	}
	ch := d.now.next(c, was, now)
	if unflushed != nil && was.revision != 0 {
		kv, _ := unflushed.kv()
		ch.prev.Store(&kv)
	}
	d.changes = append(d.changes, ch)
	d.size += ch.size() + changeBytes
	d.overlay.versions.Set(ch)
	d.nextExpiry = sooner(d.nextExpiry, ch.expires)
}

// current returns what there is of a key, and the change that wrote it, or deleted it, if that is not in the file yet.
func (d *deferred) current(t txn, key string) (was replaced, unflushed *change, err error) {
	if c := d.overlay.version(key, math.MaxInt64); c != nil {
		if !c.deleted {
			was = replaced{c.revision, c.expires}
		}
		return was, c, nil
	}
	found, err := t.version(key, math.MaxInt64)
	if err != nil {
		return was, nil, err
	}
	was, err = t.replaced(found)
	return was, nil, err
}

// conflict makes the answer to a commit whose key is at another revision.
func (d *deferred) conflict(t txn, key string, live int64, unflushed *change) (storage.CommitResult, error) {
	res := storage.CommitResult{Revision: d.now.revision, Found: live != 0}
	switch {
	case live == 0:
	case unflushed != nil:
		res.Current, _ = unflushed.kv()
	default:
		kv, err := t.kvAt(key, live)
		if err != nil {
			return storage.CommitResult{}, err
		}
		res.Current = kv
	}
	return res, storage.ErrConflict
}
