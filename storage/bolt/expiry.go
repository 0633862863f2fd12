package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// expiryRetry is how long expiring rests after an error.
const expiryRetry = time.Second

// expiring is an entry of the expiry bucket, which has one for each key whose newest value has a TTL.
type expiring struct {
	at       int64 // second since 1970
	revision int64 // of the value
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

// sooner is the earlier one of two seconds, where 0 is never.
func sooner(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// expiry is the bucket of that name; nil while the file has never had a TTL.
func (t txn) expiry() *bbolt.Bucket { return t.tx.Bucket([]byte(expiryBucket)) }

// expiryForWriting is that bucket too, which it makes if need be. The file is of another format version then: a
// release that does not know of TTLs would keep for ever what has one.
func (t txn) expiryForWriting() (b *bbolt.Bucket, err error) {
	if b = t.expiry(); b == nil {
		if b, err = t.tx.CreateBucket([]byte(expiryBucket)); err != nil {
			return nil, err
		}
		if t.tx.Bucket([]byte(journalBucket)) == nil { // else the version is higher, until it has gone
			err = t.meta.Put([]byte(versionKey), binary.BigEndian.AppendUint64(nil, expiringVersion))
		}
		if err != nil {
			return nil, err
		}
	}
	b.FillPercent = 0.9 // it is appended to, more or less
	return b, nil
}

// schedule makes the expiry bucket right for a change.
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

// due returns the first entries behind one, at most limit, whose time has come, and the second of the one that follows
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

// expiringKey is the key of an entry.
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

// timetable is what a file says of time.
type timetable struct {
	clock int64 // the second since 1970 that it was told last
	next  int64 // the first at which a key expires; 0: none does
}

func (t txn) timetable() (tt timetable, err error) {
	if tt.clock, err = t.clock(); err == nil {
		_, tt.next, err = t.due(expiring{}, 0, 0)
	}
	return tt, err
}

// tried notes how it went to delete keys whose time had come.
func (w *writer) tried(now time.Time, err error) {
	if err != nil {
		w.expiryRetry = now.Add(expiryRetry)
	}
	if !errors.Is(err, errDamaged) {
		err = nil // setFailed has it
	}
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.b.stuck = err
}

// expects learns from a transaction when keys expire. It may be told of one that does not any more, never too late.
func (w *writer) expects(a *attempt) {
	if a.looked {
		w.nextExpiry = a.nextExpiry
	}
	for _, c := range a.changes {
		w.nextExpiry = sooner(w.nextExpiry, c.expires)
	}
}

// expiresAt returns when the next key expires, or should be tried again; false is never.
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

// readExpiry makes sure that the expiry bucket has what it should have: an entry that cannot be would never come due.
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
