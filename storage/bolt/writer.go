package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
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

// errNothing rolls back a transaction that has nothing to write.
var errNothing = errors.New("nothing to write")

// writer makes all changes to the file, in one goroutine. Its fields belong to that goroutine.
type writer struct {
	b       *Backend
	state   state // as of the last transaction known to be durable (written, with NoSync)
	history history
	retry   time.Time // compaction has failed and rests until then

	carried  []*change // are shown, and durable in the journal alone: the next transaction writes them first
	dropping bool      // the next transaction takes the journal away
	wrong    error     // why the last transaction that had something to write has failed

	clock       clock
	nextExpiry  int64     // no key expires before this second since 1970; 0: none does
	expiryRetry time.Time // expiring has failed and rests until then
}

func newWriter(b *Backend, s state, tt timetable) *writer {
	w := &writer{b: b, state: s, history: history{window: b.opts.Window}, clock: newClock(b.opts.wall, tt.clock), nextExpiry: tt.next}
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
			if n, err := w.transact(nil); err != nil || n == 0 {
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

// commit answers a batch. On a full disk the deletions are tried once more without the rest, so that room can be
// made.
func (w *writer) commit(batch []*request) {
	_, err := w.transact(batch)
	if errors.Is(err, storage.ErrNoSpace) {
		var deletions []*request
		for _, r := range batch {
			if r.kind == write && r.commit.Delete && !r.answered {
				deletions = append(deletions, r)
			}
		}
		if len(deletions) > 0 && len(deletions) < len(batch) {
			// Their success leaves the failure of the rest on record for Health.
			_, again := w.transact(deletions)
			for _, r := range deletions {
				r.answer(storage.CommitResult{}, again)
			}
			w.b.setFailed(err)
		}
	}
	for _, r := range batch {
		r.answer(storage.CommitResult{}, err)
	}
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
			t, err := newTxn(tx)
			if err != nil {
				return err
			}
			t.log.FillPercent, t.parts.FillPercent = 0.9, 0.9 // they are appended to
			return fn(t)
		})
	})
	switch {
	case err == nil || errors.Is(err, errNothing):
		return err
	case noSpace(err):
		return fmt.Errorf("bolt: write %s: %w: %v", w.b.path, storage.ErrNoSpace, err)
	default:
		return fmt.Errorf("bolt: write %s: %w", w.b.path, err)
	}
}

// noSpace recognises what the system says when there is no room. bbolt passes some of its errors on as text only.
func noSpace(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EFBIG, syscall.EDQUOT} {
		if errors.Is(err, e) || strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
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

// attempt is one transaction of the writer.
type attempt struct {
	txn
	opts     *Options
	durable  state     // before it
	now      time.Time // by the clock
	head     int64     // the newest revision shown
	carried  []*change // up to there, which the file does not have
	dropping bool      // see writer
	outdated int64     // the newest revision known to be older than the window
	state    state     // after it
	dirty    bool      // there is something to write
	changes  []*change
	waiting  []answer // to be given when the transaction is durable
	scrubbed int

	timed      bool  // values with a TTL come or go
	looked     bool  // for keys whose time has come
	nextExpiry int64 // what was seen then: see writer
}

func (w *writer) attempt() *attempt {
	a := &attempt{
		opts: &w.b.opts, durable: w.state, now: w.clock.tell(), head: w.state.revision, outdated: w.history.expired,
		carried: w.carried, dropping: w.dropping,
	}
	if n := len(a.carried); n > 0 {
		a.head = a.carried[n-1].revision
	}
	return a
}

// answer waits to be given.
type answer struct {
	*request
	res storage.CommitResult
	err error
}

func (a *attempt) deliver() {
	for _, w := range a.waiting {
		w.answer(w.res, w.err)
	}
}

func (a *attempt) wait(r *request, res storage.CommitResult, err error) {
	a.waiting = append(a.waiting, answer{r, res, err})
}

// begin reads the state. The file's is behind if Open has skipped revisions, until a transaction has said so.
func (a *attempt) begin() (err error) {
	a.state, err = a.txn.state()
	if a.state.revision < a.durable.revision {
		a.state.revision, a.state.compacted = a.durable.revision, a.durable.compacted
	}
	return err
}

// carry writes what the journal has, unless an earlier transaction did that failed after its last page had been written.
func (a *attempt) carry() error {
	there := a.state.revision
	for _, c := range a.carried {
		a.dirty = true
		if c.revision <= there {
			continue
		}
		if err := a.put(c); err != nil {
			return err
		}
		a.state.revision, a.state.total = c.revision, c.total
	}
	return nil
}

func (a *attempt) run(batch []*request) error {
	if err := a.begin(); err != nil {
		return err
	}
	if err := a.carry(); err != nil {
		return err
	}
	if err := a.adopt(); err != nil {
		return err
	}
	for _, r := range batch {
		if err := a.apply(r); err != nil {
			return err
		}
	}
	limit := stepChanges
	if len(batch) > 0 {
		limit = 2*(max(len(batch), len(a.changes))+len(a.carried)) + 16 // keeps up with the writes, and delays them little
	}
	return a.end(limit)
}

func (a *attempt) apply(r *request) (err error) {
	switch r.kind {
	case write:
		err = a.write(r)
	case compact:
		a.compact(r)
	case probe:
		a.dirty = true
		a.wait(r, storage.CommitResult{}, nil)
	case expire:
		err = a.expire()
	}
	return err
}

// end forgets at most limit changes and writes the state, if there is anything to write.
func (a *attempt) end(limit int) error {
	if err := a.scrub(limit); err != nil {
		return err
	}
	a.reserve()
	if !a.dirty {
		return errNothing
	}
	a.state.clean = 0
	if err := a.setState(a.state); err != nil {
		return err
	}
	if a.dropping {
		if err := a.dropJournal(); err != nil {
			return err
		}
	}
	if a.timed {
		if err := a.setClock(a.now.Unix()); err != nil {
			return err
		}
	}
	if a.opts.syncing != nil {
		return a.opts.syncing(len(a.changes))
	}
	return nil
}

// adopt finds changes of an earlier transaction that failed after its last page had been written, in the final
// flush. Nobody has seen them; this transaction makes them durable, and they are published with it.
func (a *attempt) adopt() error {
	if a.state.revision == a.head {
		return nil
	}
	a.dirty = true
	c := a.log.Cursor()
	for k, v := c.Seek(revisionKey(a.head + 1)); k != nil; k, v = c.Next() {
		revision := int64(binary.BigEndian.Uint64(k))
		e, err := decodeEntry(revision, v)
		if err != nil {
			return err
		}
		ch, err := a.newChange(e, revision)
		if err != nil {
			return err
		}
		a.changes = append(a.changes, ch)
	}
	return nil
}
