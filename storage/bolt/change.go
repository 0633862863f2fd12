package bolt

import (
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// change is a change as all feeds share it.
type change struct {
	key      string
	value    []byte
	revision int64
	deleted  bool
	expires  int64 // the second since 1970 in which the value is to be deleted; 0: never
	prevAt   int64 // revision of the value before; 0 if there was none
	total    int64 // sizes of all changes ever written, up to this one; 0 when read from the file

	prevExpires int64 // when the value before was to be deleted; 0 when read from the file

	// prev is the value before, once a feed has needed it, or from the start if that value was not in the file.
	prev atomic.Pointer[storage.KV]
}

func (c *change) size() int { return len(c.key) + len(c.value) }

// timed says that a change has, or replaces, a value with a TTL.
func (c *change) timed() bool { return c.expires != 0 || c.prevExpires != 0 }

// entry is the change as the log has it.
func (c *change) entry() entry {
	return entry{deleted: c.deleted, prev: c.prevAt, total: c.total, expires: c.expires, key: []byte(c.key), value: c.value}
}

// kv is the value that a change leaves, if it leaves one.
func (c *change) kv() (storage.KV, bool) {
	if c.deleted {
		return storage.KV{}, false
	}
	return storage.KV{Key: c.key, Value: c.value, Revision: c.revision, Expiring: c.expires != 0}, true
}

// What becomes of a commit.
type verdict int

const (
	applies   verdict = iota
	conflicts         // its key is at another revision
	idle              // there is nothing to delete
)

// judge decides about a commit whose key has a value of revision live, or, when that is 0, none.
func judge(c storage.Commit, live int64) verdict {
	switch {
	case c.Expect != storage.AnyRevision && (c.Expect != live || c.Delete && live == 0):
		return conflicts
	case c.Delete && live == 0:
		return idle
	}
	return applies
}

// replaced is the value that a commit replaces. The zero one is none.
type replaced struct {
	revision int64
	expires  int64 // see change
}

// next gives a commit the next revision.
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
