package bolt

import (
	"errors"

	"go.etcd.io/bbolt"
)

// WithSyncing makes fn run before every flush of the file; see Options.syncing.
func (o Options) WithSyncing(fn func(changes int) error) Options {
	o.syncing = fn
	return o
}

// WriteUnseen leaves the file as a transaction does whose last flush has failed after everything had been
// written: the change is in the file, and the backend does not know it.
func (b *Backend) WriteUnseen(key, value string) (revision int64, err error) {
	err = b.db.Update(func(tx *bbolt.Tx) error {
		t, err := newTxn(tx)
		if err != nil {
			return err
		}
		s, err := t.state()
		if err != nil {
			return err
		}
		s.revision++
		s.total += int64(len(key) + len(value))
		revision = s.revision
		return errors.Join(
			t.put(s.revision, entry{total: s.total, key: []byte(key), value: []byte(value)}),
			t.setState(s),
		)
	})
	return revision, err
}

// Pending counts the requests that wait for the writer.
func (b *Backend) Pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.pending)
}

// Versions counts what the log and the index hold.
func (b *Backend) Versions() (log, index int, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		t, err := newTxn(tx)
		if err != nil {
			return err
		}
		log, index = t.log.Stats().KeyN, t.index.Stats().KeyN
		return nil
	})
	return log, index, err
}
