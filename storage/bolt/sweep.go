package bolt

import (
	"math"

	"github.com/keelson-dev/keelson/storage"
)

// expire deletes expired keys. It handles the values that are not in the file yet first. It uses none of the limit for the
// file before all of them that are due have been deleted. So an entry that comes to the file later is always due later than
// the entries that were handled there.
func (d *deferred) expire(t txn, now int64) error {
	limit := len(d.changes) + stepChanges
	next := int64(0)
	for _, c := range d.changes {
		switch {
		case c.expires == 0 || c.expires > now:
			next = sooner(next, c.expires)
		case d.overlay.version(c.key, math.MaxInt64) != c:
		case len(d.changes) == limit:
			next = c.expires
		default:
			d.perform(storage.Commit{Key: c.key, Delete: true}, replaced{c.revision, c.expires}, c)
		}
	}
	due, later, err := t.due(d.swept, now, limit-len(d.changes))
	if err != nil {
		return err
	}
	for _, e := range due {
		if err := d.expireStored(t, e); err != nil {
			return err
		}
		d.swept = e
	}
	d.nextExpiry = sooner(next, later)
	return nil
}

// expireStored deletes the key of an entry in the file, unless the key has been changed since.
func (d *deferred) expireStored(t txn, e expiring) error {
	key, err := t.expiringKey(e)
	if err != nil {
		return err
	}
	was, unflushed, err := d.current(t, key)
	if err == nil && was.revision == e.revision {
		d.perform(storage.Commit{Key: key, Delete: true}, was, unflushed)
	}
	return err
}
