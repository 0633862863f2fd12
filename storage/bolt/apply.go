package bolt

import (
	"errors"
	"math"

	"github.com/keelson-dev/keelson/storage"
)

// errNothing rolls back a transaction that has nothing to write.
var errNothing = errors.New("nothing to write")

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
	return a.end(min(limit, max(a.step, 4*len(batch)+1)))
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
	case ready:
		a.wait(r, storage.CommitResult{}, a.refusal)
	case expire:
		err = a.expire()
	}
	return err
}

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
	if a.refusal != nil {
		if grows, err := a.grows(c, found); grows || err != nil {
			r.answer(storage.CommitResult{}, errors.Join(err, a.refusal))
			return err
		}
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

// grows reports whether a commit makes the store grow, or needs more room than a full file has.
func (a *attempt) grows(c storage.Commit, found placed) (bool, error) {
	if c.Delete {
		return false, nil
	}
	if found.live() == 0 || c.TTL > 0 && !found.expiring || int64(len(c.Value))*5/4+leastRoom/2 > a.room {
		return true, nil
	}
	e, err := a.change(found.live())
	return err == nil && int64(len(c.Value)) > e.valueSize(), err
}

// conflict answers a commit whose key is at another revision. If that state is durable, the answer is given at once, whether
// this transaction succeeds or not. Otherwise it waits for the transaction.
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

// expire deletes keys in the transaction, for expireDue.
func (a *attempt) expire() error {
	due, next, err := a.due(expiring{}, a.now.Unix(), a.step)
	if err != nil {
		return err
	}
	for _, e := range due {
		key, err := a.expiringKey(e)
		if err != nil {
			return err
		}
		found, err := a.version(key, math.MaxInt64)
		if err == nil && found.live() != e.revision {
			err = e.damaged(key)
		}
		if err == nil {
			err = a.perform(storage.Commit{Key: key, Delete: true}, replaced{e.revision, e.at})
		}
		if err != nil {
			return err
		}
	}
	a.looked, a.nextExpiry = true, next
	return nil
}

// end removes at most limit changes from the history and writes the state, if there is anything to write.
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
