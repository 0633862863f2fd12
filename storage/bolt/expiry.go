package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// expiryRetry is the pause before expired keys are deleted again after an error.
const expiryRetry = time.Second

// expiring is an entry of the expiry bucket, which has one for each key whose newest value has a TTL.
type expiring struct {
	at       int64 // second since 1970
	revision int64 // revision of the value
}

func (e expiring) key() []byte {
	k := binary.BigEndian.AppendUint64(make([]byte, 0, 16), uint64(e.at))
	return binary.BigEndian.AppendUint64(k, uint64(e.revision))
}

func decodeExpiring(k, v []byte) (expiring, error) {
	if len(k) != 16 || len(v) != 0 {
		return expiring{}, fmt.Errorf("%w: expiry %q", errDamaged, k)
	}
	return expiring{int64(binary.BigEndian.Uint64(k)), int64(binary.BigEndian.Uint64(k[8:]))}, nil
}

// sooner returns the earlier one of two seconds, where 0 is never.
func sooner(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// expiry returns the expiry bucket; nil if the file has never had a TTL.
func (t txn) expiry() *bbolt.Bucket { return t.tx.Bucket([]byte(expiryBucket)) }

// expiryForWriting returns the expiry bucket, and makes it if it does not exist. Making it changes the format version of the
// file: a release without TTLs would never delete the values that have one.
func (t txn) expiryForWriting() (b *bbolt.Bucket, err error) {
	if b = t.expiry(); b == nil {
		if b, err = t.tx.CreateBucket([]byte(expiryBucket)); err != nil {
			return nil, err
		}
		if t.tx.Bucket([]byte(journalBucket)) == nil { // otherwise the version is higher until the journal is removed
			err = t.meta.Put([]byte(versionKey), binary.BigEndian.AppendUint64(nil, expiringVersion))
		}
		if err != nil {
			return nil, err
		}
	}
	b.FillPercent = 0.9 // most entries are appended
	return b, nil
}

// schedule updates the expiry bucket for a change.
func (t txn) schedule(c *change) error {
	if !c.timed() {
		return nil
	}
	b, err := t.expiryForWriting()
	if err == nil && c.prevExpires != 0 {
		err = b.Delete(expiring{c.prevExpires, c.prevAt}.key())
	}
	if err == nil && c.expires != 0 {
		err = b.Put(expiring{c.expires, c.revision}.key(), []byte{})
	}
	return err
}

// due returns the first entries after behind whose time has come, at most limit. next is the time of the entry that follows
// them, 0 if there is none.
func (t txn) due(behind expiring, now int64, limit int) (due []expiring, next int64, err error) {
	b := t.expiry()
	if b == nil {
		return nil, 0, nil
	}
	c := b.Cursor()
	for k, v := c.Seek(expiring{behind.at, behind.revision + 1}.key()); k != nil; k, v = c.Next() {
		e, err := decodeExpiring(k, v)
		if err != nil {
			return nil, 0, err
		}
		if e.at > now || len(due) == limit {
			return due, e.at, nil
		}
		due = append(due, e)
	}
	return due, 0, nil
}

// expiringKey returns the key of an entry's value.
func (t txn) expiringKey(e expiring) (string, error) {
	change, err := t.change(e.revision)
	if err != nil {
		return "", err
	}
	key := string(change.key)
	if change.expires != e.at {
		return "", e.damaged(key)
	}
	return key, nil
}

func (e expiring) damaged(key string) error {
	return fmt.Errorf("%w: it says that revision %d of key %q expires at %d", errDamaged, e.revision, key, e.at)
}

// timetable has the times that a file stores.
type timetable struct {
	clock int64 // the last time of the clock, in seconds since 1970
	next  int64 // the second at which the first key expires; 0: none does
}

func (t txn) timetable() (tt timetable, err error) {
	if tt.clock, err = t.clock(); err == nil {
		_, tt.next, err = t.due(expiring{}, 0, 0)
	}
	return tt, err
}

// tried records the result of deleting expired keys.
func (w *writer) tried(now time.Time, err error) {
	if err != nil {
		w.expiryRetry = now.Add(expiryRetry)
	}
	if !errors.Is(err, errDamaged) {
		err = nil // setFailed has recorded it
	}
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.b.stuck = err
}

// expects updates nextExpiry after a transaction. nextExpiry may be the time of a key that does not expire any more, but it
// is never too late.
func (w *writer) expects(a *attempt) {
	if a.looked {
		w.nextExpiry = a.nextExpiry
	}
	for _, c := range a.changes {
		w.nextExpiry = sooner(w.nextExpiry, c.expires)
	}
}

// expiresAt returns when the next key expires, or when expiry is tried again; ok is false for never.
func (w *writer) expiresAt(now time.Time) (at time.Time, ok bool) {
	if w.nextExpiry == 0 {
		return time.Time{}, false
	}
	at = now.Add(time.Unix(w.nextExpiry, 0).Sub(w.clock.tell()))
	if at.Before(w.expiryRetry) {
		at = w.expiryRetry
	}
	return at, true
}

// readExpiry checks the entries of the expiry bucket. An invalid entry would never come due.
func (t txn) readExpiry() error {
	b := t.expiry()
	if b == nil {
		return nil
	}
	return b.ForEach(func(k, v []byte) error {
		_, err := decodeExpiring(k, v)
		return err
	})
}
