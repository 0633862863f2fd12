package bolt

import (
	"math"

	"github.com/keelson-dev/keelson/storage"
)

// write applies one commit.
func (a *attempt) write(r *request) error {
	c := r.commit
	found, err := a.version(c.Key, math.MaxInt64)
	if err != nil {
		return err
	}
	switch judge(c, found.live()) {
	case conflicts:
		return a.conflict(r, found.revision, found.live())
	case idle:
		a.wait(r, storage.CommitResult{Revision: a.state.revision}, nil)
		return nil
	}
	was, err := a.replaced(found)
	if err == nil {
		err = a.perform(c, was)
	}
	if err != nil {
		return err
	}
	a.wait(r, storage.CommitResult{Revision: a.state.revision}, nil)
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

// replaced is what a commit replaces when it finds a version of its key.
func (t txn) replaced(found placed) (replaced, error) {
	was := replaced{revision: found.live()}
	if was.revision == 0 || !found.expiring {
		return was, nil
	}
	e, err := t.change(was.revision)
	was.expires = e.expires
	return was, err
}

// conflict answers a commit whose key is at another revision: at once if that state is durable, whatever becomes
// of this transaction, and else with it.
func (a *attempt) conflict(r *request, found, live int64) error {
	res := storage.CommitResult{Revision: a.state.revision}
	if live != 0 {
		kv, err := a.kvAt(r.commit.Key, live)
		if err != nil {
			return err
		}
		res.Found, res.Current = true, kv
	}
	if durable := a.head; found <= durable {
		res.Revision = durable
		r.answer(res, storage.ErrConflict)
		return nil
	}
	a.wait(r, res, storage.ErrConflict)
	return nil
}
