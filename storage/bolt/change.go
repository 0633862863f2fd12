package bolt

import (
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// change is one change in the form that all feeds share.
type change struct {
	key      string
	value    []byte
	revision int64
	deleted  bool
	expires  int64 // the second since 1970 at which the value is to be deleted; 0: never
	prevAt   int64 // revision of the previous value; 0 if there was none
	total    int64 // sum of the sizes of all changes ever written, up to this one; 0 when read from the file

	prevExpires int64 // when the previous value was to be deleted; 0 when read from the file

	// prev is the previous value. It is set when a feed needs it, or from the start if that value was not in the file.
	prev atomic.Pointer[storage.KV]
}

func (c *change) size() int { return len(c.key) + len(c.value) }

// timed reports whether a change adds or replaces a value with a TTL.
func (c *change) timed() bool { return c.expires != 0 || c.prevExpires != 0 }

// entry returns the change in the form of the log.
func (c *change) entry() entry {
	return entry{deleted: c.deleted, prev: c.prevAt, total: c.total, expires: c.expires, key: []byte(c.key), value: c.value}
}

// kv returns the value that exists after the change, if any.
func (c *change) kv() (storage.KV, bool) {
	if c.deleted {
		return storage.KV{}, false
	}
	return storage.KV{Key: c.key, Value: c.value, Revision: c.revision, Expiring: c.expires != 0}, true
}

// verdict is the outcome of a commit's condition.
type verdict int

const (
	applies   verdict = iota
	conflicts         // the key is at another revision
	idle              // there is nothing to delete
)

// judge returns the verdict for a commit whose key has a value of revision live; 0 means no value.
func judge(c storage.Commit, live int64) verdict {
	switch {
	case c.Expect != storage.AnyRevision && (c.Expect != live || c.Delete && live == 0):
		return conflicts
	case c.Delete && live == 0:
		return idle
	}
	return applies
}

// replaced is the value that a commit replaces. The zero value means that there is none.
type replaced struct {
	revision int64
	expires  int64 // see change.expires
}

// next makes the change for a commit, with the next revision.
func (s *state) next(c storage.Commit, was replaced, now time.Time) *change {
	value := c.Value
	if c.Delete {
		value = nil
	} else if value == nil {
		value = []byte{}
	}
	s.revision++
	s.total += int64(len(c.Key) + len(value))
	ch := &change{
		key: c.Key, value: value, revision: s.revision, deleted: c.Delete, total: s.total,
		prevAt: was.revision, prevExpires: was.expires,
	}
	if c.TTL > 0 && !c.Delete {
		ch.expires = deadline(now, c.TTL)
	}
	return ch
}
