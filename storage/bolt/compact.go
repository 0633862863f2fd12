package bolt

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// stepChanges is how many changes a transaction for compaction alone forgets: commits wait for one at most.
const stepChanges = 512

// history knows roughly when revisions were committed.
type history struct {
	window  time.Duration
	expired int64 // the newest revision known to be older than the window
	marks   []mark
}

// mark says that revision was the newest one at a time.
type mark struct {
	at       time.Time
	revision int64
}

// grain is how far apart marks are at least.
func (h *history) grain() time.Duration { return h.window/64 + 1 }

func (h *history) newest() mark {
	if len(h.marks) == 0 {
		return mark{revision: h.expired}
	}
	return h.marks[len(h.marks)-1]
}

// note learns that revision is the newest one now, and what has expired.
func (h *history) note(now time.Time, revision int64) {
	if last := h.newest(); revision > last.revision && now.Sub(last.at) >= h.grain() {
		h.marks = append(h.marks, mark{now, revision})
	}
	n := 0
	for n < len(h.marks) && now.Sub(h.marks[n].at) >= h.window {
		h.expired = h.marks[n].revision
		n++
	}
	h.marks = h.marks[n:]
}

// next returns when note has something to do although nothing is committed.
func (h *history) next(revision int64) (at time.Time, ok bool) {
	if len(h.marks) == 0 {
		return time.Time{}, false
	}
	at = h.marks[0].at.Add(h.window)
	if last := h.newest(); revision > last.revision {
		if t := last.at.Add(h.grain()); t.Before(at) {
			at = t
		}
	}
	return at, true
}

// rest returns how long the writer may sleep when nothing is committed; false is for ever.
func (w *writer) rest(now time.Time) (time.Duration, bool) {
	at, ok := w.history.next(w.state.revision)
	if w.due() && (!ok || w.retry.Before(at)) {
		at, ok = w.retry, true
	}
	return max(at.Sub(now), 0), ok
}

// outdated returns the revision up to which history has been given up or has become too old or too long.
func (w *writer) outdated(s state) int64 {
	return max(s.compacted, w.history.expired, s.revision-w.b.opts.WindowChanges)
}

// due says that there is something to forget.
func (w *writer) due() bool {
	s := w.state
	return s.scrubbed < w.outdated(s) ||
		s.scrubbed < s.revision-1 && s.total-s.scrubbedTotal > w.b.opts.WindowBytes
}

// compact applies a request for compaction.
func (a *attempt) compact(r *request) {
	switch {
	case r.revision > a.writer.state.revision:
		r.answer(storage.CommitResult{}, storage.ErrFuture)
	case r.revision <= a.writer.state.compacted:
		r.answer(storage.CommitResult{}, storage.ErrCompacted)
	case r.revision <= a.state.compacted:
		a.wait(r, storage.CommitResult{}, storage.ErrCompacted)
	default:
		a.dirty = true
		a.state.compacted = r.revision
		a.wait(r, storage.CommitResult{}, nil)
	}
}

// scrub forgets at most limit changes, the oldest first. Forgetting one removes the value it replaced, and of a
// deletion every trace.
func (a *attempt) scrub(limit int) error {
	olds, err := a.outdatedChanges(limit)
	if err != nil {
		return err
	}
	for _, o := range olds {
		if o.prev != 0 {
			if err := a.drop(o.key, o.prev); err != nil {
				return err
			}
		}
		if o.deleted {
			if err := a.drop(o.key, o.revision); err != nil {
				return err
			}
		}
		a.state.scrubbed, a.state.scrubbedTotal = o.revision, o.total
		a.state.compacted = max(a.state.compacted, o.revision)
		a.dirty = true
	}
	a.scrubbed = len(olds)
	return nil
}

// old is a change to be forgotten.
type old struct {
	entry
	revision int64
}

// outdatedChanges collects them first: a cursor must not be used while its bucket changes.
func (a *attempt) outdatedChanges(limit int) (olds []old, err error) {
	durable := a.writer.state.revision
	outdated := min(a.outdated(a.state), durable)
	kept := a.state.total - a.state.scrubbedTotal
	if a.state.scrubbed >= outdated && kept <= a.b.opts.WindowBytes {
		return nil, nil
	}
	c := a.log.Cursor()
	for k, v := c.Seek(revisionKey(a.state.scrubbed + 1)); k != nil && len(olds) < limit; k, v = c.Next() {
		revision := int64(binary.BigEndian.Uint64(k))
		tooMuch := kept > a.b.opts.WindowBytes && revision < durable
		if revision > outdated && !tooMuch {
			break
		}
		e, err := decodeEntry(v)
		if err != nil {
			return nil, err
		}
		kept = a.state.total - e.total
		e.key, e.value = bytes.Clone(e.key), nil
		olds = append(olds, old{e, revision})
	}
	return olds, nil
}
