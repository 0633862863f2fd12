package cacher

import (
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
)

// writes remembers the highest revision that a write through a cache was acknowledged with. The zero writes has none.
type writes struct{ highest atomic.Int64 }

// note notes an acknowledged write.
func (w *writes) note(revision int64) {
	for old := w.highest.Load(); old < revision && !w.highest.CompareAndSwap(old, revision); {
		old = w.highest.Load()
	}
}

// lower forgets writes with a revision above one: the store was set back to that.
func (w *writes) lower(revision int64) {
	for old := w.highest.Load(); old > revision && !w.highest.CompareAndSwap(old, revision); {
		old = w.highest.Load()
	}
}

// acknowledge notes the revision of a write before its caller gets it. A write that stored nothing, because nothing
// changed, has the revision of an earlier one. A dry run is no write.
func (c *Cacher) acknowledge(revision int64, opts storage.WriteOptions, err error) {
	if err == nil && !opts.DryRun {
		c.writes.note(revision)
	}
}

// Inherit makes reads with the Match Acknowledged show the writes that were acknowledged through another cache of the same
// resource, whose place c takes and through which requests under way may still write. It is called before c is used.
func (c *Cacher) Inherit(from *Cacher) { c.writes = from.writes }

// Changed implements storage.Differ.
func (c *Cacher) Changed() int64 {
	last := c.changed.Load()
	if last == 0 {
		return 0
	}
	return max(last, c.writes.highest.Load())
}

// askedBelow is what the storage below is asked for where the cache cannot answer.
func askedBelow(at storage.Read) storage.Read {
	if at.Match == storage.Acknowledged {
		return storage.Read{}
	}
	return at
}
