package bolt

import (
	"encoding/binary"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

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
	step     int       // how many changes compaction and expiry make at most
	refusal  error     // of what makes the store grow, while the disk is full
	room     int64     // bytes, while the disk is full
	state    state     // after it
	dirty    bool      // there is something to write
	changes  []*change
	waiting  []answer // to be given when the transaction is durable
	scrubbed int

	timed      bool  // values with a TTL come or go
	looked     bool  // for keys whose time has come
	nextExpiry int64 // what was seen then: see writer
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

// perform makes a commit whose condition holds.
func (a *attempt) perform(c storage.Commit, was replaced) error {
	ch := a.state.next(c, was, a.now)
	a.dirty = true
	a.changes = append(a.changes, ch)
	return a.put(ch)
}

// put writes a change.
func (a *attempt) put(c *change) error {
	a.timed = a.timed || c.timed()
	return a.txn.put(c)
}
