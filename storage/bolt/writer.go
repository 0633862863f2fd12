package bolt

import (
	"errors"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// One transaction takes about this much.
const (
	batchChanges = 1024
	batchBytes   = 8 << 20
)

// writer makes all changes to the file, in one goroutine. Its fields belong to that goroutine. With NoSync it runs by itself.
// With SyncAlways it is embedded in a journaled (journaled.go), and with SyncInterval in a deferred (interval.go). These two
// show changes before they are in the trees of the file (pending.go).
type writer struct {
	b       *Backend
	state   state // as of the last transaction that is known to be durable (with NoSync: written)
	history history
	retry   time.Time // compaction has failed and is not tried before

	carried  []*change // changes that are shown, and durable in the journal only: the next transaction writes them first
	dropping bool      // the next transaction removes the journal
	wrong    error     // error of the last transaction that had something to write

	pressure pressure
	limit    int // how many changes a step of compaction removes, if not 0

	clock       clock
	nextExpiry  int64     // no key expires before this second since 1970; 0: none does
	expiryRetry time.Time // expiry has failed and is not tried before
}

func newWriter(b *Backend, s state, tt timetable, p pressure) *writer {
	w := &writer{pressure: p, b: b, state: s, history: history{window: b.opts.Window}, clock: newClock(b.opts.wall, tt.clock), nextExpiry: tt.next}
	w.history.note(time.Now(), s.revision)
	return w
}

// run works until the backend is closed and nothing is pending.
func (w *writer) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		batch, closed := w.b.take()
		batch = w.lend(batch)
		now := time.Now()
		w.history.note(now, w.state.revision)
		if len(batch) > 0 {
			w.commit(batch)
		}
		switch {
		case !closed && w.expireDue(now), len(batch) > 0:
			continue
		case closed:
			w.finish()
			return
		case w.due() && !now.Before(w.retry):
			n, err := w.transact(nil)
			if errors.Is(err, storage.ErrNoSpace) {
				w.tidy(now)
			} else if err != nil || n == 0 {
				w.retry = now.Add(time.Second)
			}
			continue
		}
		if rest, ok := w.rest(now); ok {
			timer.Reset(rest)
		} else {
			timer.Stop()
		}
		select {
		case <-w.b.wake:
		case <-timer.C:
		}
	}
}

// rest returns how long the writer may sleep when nothing is committed; ok is false for no limit.
func (w *writer) rest(now time.Time) (time.Duration, bool) {
	at, ok := w.history.next(w.state.revision)
	if w.due() && (!ok || w.retry.Before(at)) {
		at, ok = w.retry, true
	}
	if e, expects := w.expiresAt(now); expects && (!ok || e.Before(at)) {
		at, ok = e, true
	}
	return max(at.Sub(now), 0), ok
}

// commit answers a batch. When the disk is full, commits that do not make the store grow are still made.
func (w *writer) commit(batch []*request) {
	now := time.Now()
	if w.relieve(now, slices.ContainsFunc(batch, func(r *request) bool { return r.kind == ready })) {
		var err error
		if w.fits(0, batch) || w.spend(now, batch) {
			_, err = w.transact(batch)
		} else {
			err = w.b.errFull()
		}
		if !errors.Is(err, storage.ErrNoSpace) {
			for _, r := range batch {
				r.answer(storage.CommitResult{}, err)
			}
			return
		}
		w.press(now)
	}
	w.squeeze(unanswered(batch))
}

// lend lends the file to the requests of the batch that asked for it, one after the other, and returns the others.
func (w *writer) lend(batch []*request) (others []*request) {
	for _, r := range batch {
		if r.kind != borrow {
			others = append(others, r)
			continue
		}
		r.writer = w
		r.answer(storage.CommitResult{}, nil)
		<-r.returned
	}
	return others
}

// expireDue deletes expired keys in a transaction of their own, and reports whether it did. It deletes at most stepChanges,
// because commits wait for the transaction.
func (w *writer) expireDue(now time.Time) bool {
	if w.nextExpiry == 0 || w.nextExpiry > w.clock.tell().Unix() || now.Before(w.expiryRetry) {
		return false
	}
	_, err := w.transact([]*request{{kind: expire}})
	if errors.Is(err, storage.ErrNoSpace) {
		if w.tidy(now) {
			_, err = w.transact([]*request{{kind: expire}})
		}
	}
	w.tried(now, err)
	return err == nil
}
