package bolt

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
)

// One transaction takes about this much.
const (
	batchChanges = 1024
	batchBytes   = 8 << 20
)

// The file grows by an eighth of its size, within these bounds.
const (
	minGrowth = 256 << 10
	maxGrowth = 16 << 20
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
		err := error(nil)
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

// transact applies the batch, and some compaction, in one durable transaction, publishes its changes and answers
// the batch. It returns how many changes compaction has forgotten. After an error, requests may be unanswered.
func (w *writer) transact(batch []*request) (scrubbed int, err error) {
	begin := time.Now()
	a := w.attempt()
	err = w.update(func(t txn) error {
		a.txn = t
		return a.run(batch)
	})
	if err == nil && a.state.reserved > w.state.reserved && w.b.opts.Sync == NoSync {
		err = w.b.sync() // the revisions may be shown now
	}
	if errors.Is(err, errNothing) {
		w.expects(a)
		a.deliver()
		return 0, nil
	}
	w.b.setFailed(err)
	if w.wrong = err; err != nil {
		return 0, err
	}
	w.state, w.carried, w.dropping = a.state, nil, false
	w.expects(a)
	w.b.tail.publish(a.changes, shown{revision: a.state.revision, floor: a.state.compacted, flushed: a.state.revision})
	a.deliver()
	w.tell(a, begin)
	return a.scrubbed, nil
}

// tell calls the hooks after a transaction.
func (w *writer) tell(a *attempt, begin time.Time) {
	if h := w.b.opts.Hooks.Committed; h != nil && len(a.changes) > 0 {
		h(len(a.changes), time.Since(begin))
	}
	if h := w.b.opts.Hooks.Compacted; h != nil && a.scrubbed > 0 {
		h(a.state.scrubbed, a.scrubbed)
	}
}

// update runs fn in a write transaction, which is durable when it returns nil.
func (w *writer) update(fn func(txn) error) error {
	db := w.b.db
	err := guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			// Every growth costs a flush of its own.
			db.AllocSize = min(max(int(tx.Size()/8), minGrowth), maxGrowth)
			if w.pressure.full {
				db.AllocSize = db.Info().PageSize
			}
			t, err := newTxn(tx)
			if err != nil {
				return err
			}
			t.log.FillPercent, t.parts.FillPercent = 0.9, 0.9 // they are appended to
			return fn(t)
		})
	})
	if err == nil || errors.Is(err, errNothing) {
		return err
	}
	return w.b.fault("bolt: write", err)
}

// fault is an error of the file.
func (b *Backend) fault(op string, err error) error {
	if noSpace(err) {
		err = fmt.Errorf("%w: %v", storage.ErrNoSpace, err)
	}
	return &storage.FileError{Op: op, Path: b.path, Err: err}
}

// finish marks the file as cleanly closed and stores its list of free pages, so that the next Open need not find
// them. Failing that, Open is slower, and the revisions go on after those reserved.
func (w *writer) finish() {
	if w.state.clean != 0 {
		return
	}
	w.b.db.NoFreelistSync, w.b.db.NoSync = false, false
	a := w.attempt()
	_ = w.update(func(t txn) error {
		a.txn = t
		if err := a.begin(); err != nil {
			return err
		}
		if err := errors.Join(a.carry(), a.dropJournal()); err != nil {
			return err
		}
		a.state.clean, a.state.reserved = 1, a.state.revision
		return a.setState(a.state)
	})
}

func (w *writer) attempt() *attempt {
	a := &attempt{
		opts: &w.b.opts, durable: w.state, now: w.clock.tell(), head: w.state.revision, outdated: w.history.expired,
		carried: w.carried, dropping: w.dropping, step: w.step(stepChanges),
	}
	if w.pressure.full {
		a.refusal, a.room = w.b.errFull(), w.b.room()
	}
	if w.pressure.urgent {
		a.outdated = w.state.revision
	}
	if w.limit > 0 {
		a.step = min(a.step, w.limit)
	}
	if n := len(a.carried); n > 0 {
		a.head = a.carried[n-1].revision
	}
	return a
}
