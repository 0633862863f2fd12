package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
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

// The file grows by a quarter of its size, within these bounds.
const (
	minGrowth = 256 << 10
	maxGrowth = 16 << 20
)

// errNothing rolls back a transaction that has nothing to write.
var errNothing = errors.New("nothing to write")

// writer makes all changes to the file, in one goroutine. Its fields belong to that goroutine.
type writer struct {
	b       *Backend
	state   state // as of the last transaction known to be durable
	history history
	retry   time.Time // compaction has failed and rests until then
}

func newWriter(b *Backend, s state) *writer {
	w := &writer{b: b, state: s, history: history{window: b.opts.Window}}
	w.history.note(time.Now(), s.revision)
	return w
}

// run works until the backend is closed and nothing is pending.
func (w *writer) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		batch, closed := w.b.take()
		now := time.Now()
		w.history.note(now, w.state.revision)
		switch {
		case len(batch) > 0:
			w.commit(batch)
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

// transact applies the batch, and some compaction, in one durable transaction, publishes its changes and answers
// the batch. It returns how many changes compaction has forgotten. After an error, requests may be unanswered.
func (w *writer) transact(batch []*request) (scrubbed int, err error) {
	begin := time.Now()
	a := &attempt{writer: w}
	err = w.update(func(t txn) error {
		a.txn = t
		return a.run(batch)
	})
	if errors.Is(err, errNothing) {
		a.deliver()
		return 0, nil
	}
	w.b.setFailed(err)
	if err != nil {
		return 0, err
	}
	w.state = a.state
	w.b.tail.publish(a.changes, a.state)
	a.deliver()
	if h := w.b.opts.Hooks.Committed; h != nil && len(a.changes) > 0 {
		h(len(a.changes), time.Since(begin))
	}
	if h := w.b.opts.Hooks.Compacted; h != nil && a.scrubbed > 0 {
		h(a.state.scrubbed, a.scrubbed)
	}
	return a.scrubbed, nil
}

// update runs fn in a write transaction, which is durable when it returns nil.
func (w *writer) update(fn func(txn) error) error {
	db := w.b.db
	err := guard(func() error {
		return db.Update(func(tx *bbolt.Tx) error {
			// Every growth costs a flush of its own.
			db.AllocSize = min(max(int(tx.Size()/4), minGrowth), maxGrowth)
			t, err := newTxn(tx)
			if err != nil {
				return err
			}
			t.log.FillPercent = 0.9 // it is appended to
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
// them. Failing that, it is only slower.
func (w *writer) finish() {
	if w.state.clean != 0 {
		return
	}
	w.b.db.NoFreelistSync = false
	_ = w.update(func(t txn) error {
		s, err := t.state()
		if err != nil {
			return err
		}
		s.clean = 1
		return t.setState(s)
	})
}

// attempt is one transaction of the writer.
type attempt struct {
	*writer
	txn
	state    state
	dirty    bool // there is something to write
	changes  []*change
	waiting  []answer // to be given when the transaction is durable
	scrubbed int
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

func (a *attempt) run(batch []*request) (err error) {
	if a.state, err = a.txn.state(); err != nil {
		return err
	}
	if err := a.adopt(); err != nil {
		return err
	}
	for _, r := range batch {
		switch r.kind {
		case write:
			err = a.write(r)
		case compact:
			a.compact(r)
		case probe:
			a.dirty = true
			a.wait(r, storage.CommitResult{}, nil)
		}
		if err != nil {
			return err
		}
	}
	limit := stepChanges
	if len(batch) > 0 {
		limit = 2*len(batch) + 16 // keeps up with the writes, and delays them little
	}
	if err := a.scrub(limit); err != nil {
		return err
	}
	if !a.dirty {
		return errNothing
	}
	a.state.clean = 0
	if err := a.setState(a.state); err != nil {
		return err
	}
	if a.b.opts.syncing != nil {
		return a.b.opts.syncing(len(a.changes))
	}
	return nil
}

// adopt finds changes of an earlier transaction that failed after its last page had been written, in the final
// flush. Nobody has seen them; this transaction makes them durable, and they are published with it.
func (a *attempt) adopt() error {
	if a.state.revision == a.writer.state.revision {
		return nil
	}
	a.dirty = true
	c := a.log.Cursor()
	for k, v := c.Seek(revisionKey(a.writer.state.revision + 1)); k != nil; k, v = c.Next() {
		e, err := decodeEntry(v)
		if err != nil {
			return err
		}
		a.changes = append(a.changes, newChange(e, int64(binary.BigEndian.Uint64(k))))
	}
	return nil
}

// write applies one commit.
func (a *attempt) write(r *request) error {
	c := r.commit
	found, deleted, err := a.version(c.Key, math.MaxInt64)
	if err != nil {
		return err
	}
	live := int64(0)
	if !deleted {
		live = found
	}
	switch {
	case c.Expect != storage.AnyRevision && (c.Expect != live || c.Delete && live == 0):
		return a.conflict(r, found, live)
	case c.Delete && live == 0:
		a.wait(r, storage.CommitResult{Revision: a.state.revision}, nil)
		return nil
	}
	value := c.Value
	if c.Delete {
		value = nil
	} else if value == nil {
		value = []byte{}
	}
	a.dirty = true
	a.state.revision++
	a.state.total += int64(len(c.Key) + len(value))
	e := entry{deleted: c.Delete, prev: live, total: a.state.total, key: []byte(c.Key), value: value}
	if err := a.put(a.state.revision, e); err != nil {
		return err
	}
	a.changes = append(a.changes, &change{
		key: c.Key, value: value, revision: a.state.revision, deleted: c.Delete, prevAt: live,
	})
	a.wait(r, storage.CommitResult{Revision: a.state.revision}, nil)
	return nil
}

// conflict answers a commit whose key is at another revision: at once if that state is durable, whatever becomes
// of this transaction, and else with it.
func (a *attempt) conflict(r *request, found, live int64) error {
	res := storage.CommitResult{Revision: a.state.revision}
	if live != 0 {
		e, err := a.change(live)
		if err != nil {
			return err
		}
		res.Found = true
		res.Current = storage.KV{Key: r.commit.Key, Value: bytes.Clone(e.value), Revision: live}
	}
	if durable := a.writer.state.revision; found <= durable {
		res.Revision = durable
		r.answer(res, storage.ErrConflict)
		return nil
	}
	a.wait(r, res, storage.ErrConflict)
	return nil
}
