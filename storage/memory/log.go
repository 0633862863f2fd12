package memory

import (
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// changelog has the commits of the window, oldest first. Revisions grow by one with each commit, so the i-th change has the
// revision floor+1+i.
type changelog struct {
	floor   int64   // the last revision dropped, which is the oldest state that can be read
	entries []entry // entries[start:] are the log
	start   int
	bytes   int64 // size of the entries, with their keys and values
}

// entryBytes is about the memory of an entry and its version besides key and value.
const entryBytes = 200

// entry is one commit.
type entry struct {
	revision int64
	at       time.Time
	bytes    int64
	item     *item
	version  version
	prev     *storage.KV // nil when the key was absent
}

func (l *changelog) len() int { return len(l.entries) - l.start }

func (l *changelog) first() *entry { return &l.entries[l.start] }

func (l *changelog) append(e entry) {
	l.entries = append(l.entries, e)
	l.bytes += e.bytes
}

// drop removes the first entry and returns it. The slice is copied when half of it is unused.
func (l *changelog) drop() entry {
	e := l.entries[l.start]
	l.entries[l.start] = entry{}
	l.start++
	l.bytes -= e.bytes
	l.floor = e.revision
	if l.start > 32 && l.start > len(l.entries)/2 {
		l.entries = append([]entry(nil), l.entries[l.start:]...)
		l.start = 0
	}
	return e
}

// after returns the changes with a greater revision. revision must not be below floor.
func (l *changelog) after(revision int64) []entry {
	i := l.start + int(revision-l.floor)
	if i >= len(l.entries) {
		return nil
	}
	return l.entries[i:]
}

func (l *changelog) expired(revision int64) error {
	return &storage.ExpiredError{Revision: revision, Oldest: l.floor}
}

func (e *entry) change(prev bool) storage.Change {
	v := e.version
	c := storage.Change{Key: e.item.key, Value: v.value, Revision: e.revision, Deleted: v.deleted, Expiring: v.expiring}
	if prev {
		c.Prev = e.prev
	}
	return c
}

// item has the versions of one key. It stays in the tree while any state of the window has the key.
type item struct {
	key string
	now version
	old []version // those of the window and the one before it, oldest first
}

// version is a key's value from a revision on.
type version struct {
	revision int64
	value    []byte
	deleted  bool
	expiring bool // it has a TTL
}

func (i *item) kv(v version) storage.KV {
	return storage.KV{Key: i.key, Value: v.value, Revision: v.revision, Expiring: v.expiring}
}

// at returns the version at a revision; ok is false when there was none.
func (i *item) at(revision int64) (version, bool) {
	v := i.now
	for n := len(i.old); v.revision > revision; n-- {
		if n == 0 {
			return version{}, false
		}
		v = i.old[n-1]
	}
	return v, !v.deleted
}
