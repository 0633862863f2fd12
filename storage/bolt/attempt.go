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
	durable  state     // the state before the transaction
	now      time.Time // the time by the clock
	head     int64     // the newest revision shown
	carried  []*change // changes up to head that the file does not have yet
	dropping bool      // see writer.dropping
	outdated int64     // the newest revision that is known to be older than the window
	step     int       // maximum number of changes that compaction and expiry make
	refusal  error     // the error for commits that make the store grow, while the disk is full
	room     int64     // free bytes, while the disk is full
	state    state     // the state after the transaction
	dirty    bool      // there is something to write
	changes  []*change
	waiting  []answer // given when the transaction is durable
	scrubbed int

	timed      bool  // values with a TTL are added or removed
	looked     bool  // expired keys were looked for
	nextExpiry int64 // the result of that: see writer.nextExpiry
}

// answer is the result of a request, to be delivered later.
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

// begin reads the state. The file's state is behind if Open has skipped revisions and no transaction has written that yet.
func (a *attempt) begin() (err error) {
	a.state, err = a.txn.state()
	if a.state.revision < a.durable.revision {
		a.state.revision, a.state.compacted = a.durable.revision, a.durable.compacted
	}
	return err
}

// carry writes the changes that the journal has. It skips those that the file has already: an earlier transaction may have
// written them, and failed after it had written its last page.
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

// adopt finds changes of an earlier transaction that failed after its last page had been written, in the final flush. Nobody
// has seen them. This transaction makes them durable, and they are published with it.
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

// perform makes a commit whose condition is met.
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
