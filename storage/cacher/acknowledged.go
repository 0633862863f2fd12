package cacher

import (
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
)

// writes has the highest revision with which a write through a cache was acknowledged. The zero writes has none.
type writes struct{ highest atomic.Int64 }

// note records an acknowledged write.
func (w *writes) note(revision int64) {
	for old := w.highest.Load(); old < revision && !w.highest.CompareAndSwap(old, revision); {
		old = w.highest.Load()
	}
}

// lower removes writes above a revision: the store was set back to that revision.
func (w *writes) lower(revision int64) {
	for old := w.highest.Load(); old > revision && !w.highest.CompareAndSwap(old, revision); {
		old = w.highest.Load()
	}
}

// acknowledge records the revision of a write before its caller receives it. A write that stored nothing, because nothing
// changed, has the revision of an earlier write. A dry run is no write.
func (c *Cacher) acknowledge(revision int64, opts storage.WriteOptions, err error) {
	if err == nil && !opts.DryRun {
		c.writes.note(revision)
	}
}

// Inherit makes reads with the Match Acknowledged show the writes that were acknowledged through another cache of the same
// resource. c replaces that cache, and requests in progress may still write through it. Inherit must be called before c is
// used.
func (c *Cacher) Inherit(from *Cacher) { c.writes = from.writes }

// Changed implements storage.Differ.
func (c *Cacher) Changed() int64 {
	last := c.changed.Load()
	if last == 0 {
		return 0
	}
	return max(last, c.writes.highest.Load())
}

// askedBelow returns the Read with which the storage below is called when the cache cannot serve at.
func askedBelow(at storage.Read) storage.Read {
	if at.Match == storage.Acknowledged {
		return storage.Read{}
	}
	return at
}
