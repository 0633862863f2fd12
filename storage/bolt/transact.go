package bolt

import (
	"errors"
	"math"
	"time"

	"go.etcd.io/bbolt"
)

// The file grows by an eighth of its size, within these bounds.
const (
	minGrowth = 256 << 10
	maxGrowth = 16 << 20
)

// stepPages is about the maximum number of pages that a transaction takes for one change: the paths to it in each tree.
const stepPages = 48

// transact applies the batch, and some compaction, in one durable transaction, publishes its changes and answers the batch.
// It returns how many changes compaction has removed. After an error, requests may be unanswered.
func (w *writer) transact(batch []*request) (scrubbed int, err error) {
	begin := time.Now()
	a := w.attempt()
	err = w.update(func(t txn) error {
		a.txn = t
		return a.run(batch)
	})
	if err == nil && a.state.reserved > w.state.reserved && w.b.opts.Sync == NoSync {
		err = w.b.sync() // now the revisions may be shown
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
			w.bound(db, tx.Size())
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

// bound sets by how much a transaction may make a file with pages of size bytes grow. Every growth costs an additional flush, so
// the file grows by more than the transaction needs. A file that is not full leaves some bytes of the disk unused, for other
// files and for the time when it is full itself. The free pages of a full file may be scattered, but a large entry needs up
// to 17 neighbouring pages. New pages at the end of the file are always neighbours.
func (w *writer) bound(db *bbolt.DB, size int64) {
	page := db.Info().PageSize
	db.AllocSize, db.MaxSize = page, 0
	if w.pressure.full {
		return
	}
	left := w.b.diskGrowth(size)
	db.AllocSize = max(int(min(max(size/8, minGrowth), maxGrowth, left/2)), page)
	if left < math.MaxInt64/8 {
		db.MaxSize = int(max(size+left, 1))
	}
}

// finish marks the file as cleanly closed and stores its list of free pages, so that the next Open need not find them. If
// that fails, the next Open is slower, and the revisions continue after the reserved ones.
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

// step returns how many changes a transaction may make, at most limit.
func (w *writer) step(limit int) int {
	if !w.pressure.full {
		return limit
	}
	return max(min(limit, w.b.freePages()/stepPages), 1)
}
