package bolt

import (
	"errors"
	"fmt"
)

// placed is a version of a key in the index. The zero value means that there is none.
type placed struct {
	revision          int64
	deleted, expiring bool
}

// live returns the revision of the value, or 0 if the version is a deletion or none.
func (p placed) live() int64 {
	if p.deleted {
		return 0
	}
	return p.revision
}

// version returns the newest version of key not newer than at.
func (t txn) version(key string, at int64) (placed, error) {
	seek := indexKey(make([]byte, 0, 128), key, at)
	k, v := t.index.Cursor().Seek(seek)
	if len(k) != len(seek) || string(k[:len(key)+1]) != string(seek[:len(key)+1]) {
		return placed{}, nil
	}
	_, revision, err := splitIndexKey(k)
	if err != nil || len(v) != 1 {
		return placed{}, errors.Join(err, fmt.Errorf("%w: version of key %q", errDamaged, key))
	}
	return placed{revision: revision, deleted: v[0]&deletedFlag != 0, expiring: v[0]&expiringFlag != 0}, nil
}

// put writes one version of a key.
func (t txn) put(c *change) error {
	if err := t.index.Put(indexKey(nil, c.key, c.revision), []byte{flags(c.deleted, c.expires)}); err != nil {
		return err
	}
	if err := t.schedule(c); err != nil {
		return err
	}
	return t.putEntry(c.revision, c.entry())
}

// drop removes one version of a key.
func (t txn) drop(key []byte, revision int64) error {
	if err := t.index.Delete(indexKey(nil, key, revision)); err != nil {
		return err
	}
	return t.dropEntry(revision)
}

// replaced returns the value that a commit replaces when it finds this version of its key.
func (t txn) replaced(found placed) (replaced, error) {
	was := replaced{revision: found.live()}
	if was.revision == 0 || !found.expiring {
		return was, nil
	}
	e, err := t.change(was.revision)
	was.expires = e.expires
	return was, err
}

// newChange copies an entry out of its transaction.
func (t txn) newChange(e entry, revision int64) (c *change, err error) {
	c = &change{key: string(e.key), revision: revision, deleted: e.deleted, expires: e.expires, prevAt: e.prev}
	if !e.deleted {
		c.value, err = t.value(revision, e)
	}
	return c, err
}
