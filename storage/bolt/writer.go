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

// writer makes all changes to the file, in one goroutine. Its fields belong to that goroutine. With NoSync it runs itself; with
// SyncAlways it is the lower part of a journaled (journaled.go), with SyncInterval of a deferred (interval.go), which show
// changes before they are in the trees of the file (pending.go).
type writer struct {
	b       *Backend
	state   state // as of the last transaction known to be durable (written, with NoSync)
	history history
	retry   time.Time // compaction has failed and rests until then

	carried  []*change // are shown, and durable in the journal alone: the next transaction writes them first
	dropping bool      // the next transaction takes the journal away
	wrong    error     // why the last transaction that had something to write has failed

	pressure pressure
	limit    int // how much a step of compaction forgets, while it is not 0

	clock       clock
	nextExpiry  int64     // no key expires before this second since 1970; 0: none does
	expiryRetry time.Time // expiring has failed and rests until then
}

func newWriter(b *Backend, s state, tt timetable, spared bool) *writer {
	w := &writer{pressure: pressure{full: !spared}, b: b, state: s, history: history{window: b.opts.Window}, clock: newClock(b.opts.wall, tt.clock), nextExpiry: tt.next}
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

// rest returns how long the writer may sleep when nothing is committed; false is for ever.
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

// commit answers a batch. When the disk is full what does not make the store grow is done all the same.
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

// lend gives the file to those in the batch who asked for it, one after the other, and returns the others.
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

// expireDue deletes keys whose time has come, in a transaction of their own, and reports whether it did. There are at most
// stepChanges in it: commits wait for one such transaction.
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
