package bolt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/keelson-dev/keelson/storage"
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

// timed says that a change has, or replaces, a value with a TTL.
func (c *change) timed() bool { return c.expires != 0 || c.prevExpires != 0 }

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

// expireDue deletes keys whose time has come, in a transaction of their own, and reports whether it did. There are at most
// stepChanges in it: commits wait for one such transaction.
func (w *writer) expireDue(now time.Time) bool {
	if w.nextExpiry == 0 || w.nextExpiry > w.clock.tell().Unix() || now.Before(w.expiryRetry) {
		return false
	}
	_, err := w.transact([]*request{{kind: expire}})
	w.tried(now, err)
	return err == nil
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

// expire is expireDue's part in the transaction.
func (a *attempt) expire() error {
	due, next, err := a.due(expiring{}, a.now.Unix(), stepChanges)
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

// expiry checks that the expiry bucket has no entries but those that the check of the index has looked for.
func (c *checking) expiry(t txn) error {
	n := 0
	if b := t.expiry(); b != nil {
		err := b.ForEach(func(k, v []byte) error {
			n++
			if _, err := decodeExpiring(k, v); err != nil {
				return c.add(err)
			}
			return c.step()
		})
		if err != nil {
			return err
		}
	}
	if n != c.expiring && len(c.findings) == 0 {
		return c.addf("expiry: it has %d entries, and %d keys expire", n, c.expiring)
	}
	return nil
}

// scheduled checks that the newest value of a key is in the expiry bucket if it has a TTL.
func (c *checking) scheduled(t txn, revision int64, e entry) error {
	if e.expires == 0 {
		return nil
	}
	c.expiring++
	if b := t.expiry(); b == nil || b.Get(expiring{e.expires, revision}.key()) == nil {
		return c.addf("expiry: it does not have version %d of key %q, which expires", revision, e.key)
	}
	return nil
}

// readExpiry visits the expiry bucket for readAll.
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

// checkVersion makes sure that a file of a version has what belongs to it.
func (t txn) checkVersion(version uint64) error {
	journaled := t.tx.Bucket([]byte(journalBucket)) != nil
	switch has := t.expiry() != nil; {
	case journaled != (version == journalVersion):
		return fmt.Errorf("%w: it has format version %d, and that it has a journal is %t", errDamaged, version, journaled)
	case journaled: // the expiry bucket may be there
	case has && version != expiringVersion:
		return fmt.Errorf("%w: it has a bucket %q and format version %d", errDamaged, expiryBucket, version)
	case !has && version == expiringVersion:
		return fmt.Errorf("%w: a bucket is missing", errDamaged)
	}
	_, err := t.clock()
	return err
}
