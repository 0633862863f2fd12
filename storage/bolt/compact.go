package bolt

import (
	"bytes"
	"encoding/binary"
	"time"

	"github.com/keelson-dev/keelson/storage"
)

// stepChanges is the maximum number of changes that a transaction for compaction alone removes. A commit waits for at most
// one such transaction.
const stepChanges = 512

// history records roughly when revisions were committed.
type history struct {
	window  time.Duration
	expired int64 // the newest revision that is known to be older than the window
	marks   []mark
}

// mark records that revision was the newest one at a time.
type mark struct {
	at       time.Time
	revision int64
}

// grain is the minimum time between two marks.
func (h *history) grain() time.Duration { return h.window/64 + 1 }

func (h *history) newest() mark {
	if len(h.marks) == 0 {
		return mark{revision: h.expired}
	}
	return h.marks[len(h.marks)-1]
}

// note records that revision is the newest one now, and updates expired.
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

// next returns when note must be called even if nothing is committed.
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

// outdated returns the revision up to which history was compacted, is too old, or is too long.
func (o *Options) outdated(s state, expired int64) int64 {
	return max(s.compacted, expired, s.revision-o.WindowChanges)
}

// due reports whether there is history to remove.
func (w *writer) due() bool {
	s := w.state
	return s.scrubbed < min(w.b.opts.outdated(s, w.history.expired), s.revision) ||
		s.scrubbed < s.revision-1 && s.total-s.scrubbedTotal > w.b.opts.WindowBytes
}

// compact applies a request for compaction.
func (a *attempt) compact(r *request) {
	switch {
	case r.revision > a.head:
		r.answer(storage.CommitResult{}, storage.ErrFuture)
	case r.revision <= a.durable.compacted:
		r.answer(storage.CommitResult{}, storage.ErrCompacted)
	case r.revision <= a.state.compacted:
		a.wait(r, storage.CommitResult{}, storage.ErrCompacted)
	default:
		a.dirty = true
		a.state.compacted = r.revision
		a.wait(r, storage.CommitResult{}, nil)
	}
}

// scrub removes at most limit changes from the history, the oldest first. Removing a change removes the value it replaced;
// for a deletion it removes the deletion, too.
func (a *attempt) scrub(limit int) error {
	olds, reached, err := a.outdatedChanges(limit)
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
		a.state.scrubbedTotal = o.total
	}
	if reached > a.state.scrubbed {
		a.state.scrubbed = reached
		a.state.compacted = max(a.state.compacted, reached)
		a.dirty = true
	}
	a.scrubbed = len(olds)
	return nil
}

// old is a change to be removed.
type old struct {
	entry
	revision int64
}

// outdatedChanges collects the changes to be removed. It does so before any is removed, because a cursor must not be used
// while its bucket changes. reached is the revision up to which nothing else has to be removed. After a gap in the revisions,
// reached may be a revision without a change.
func (a *attempt) outdatedChanges(limit int) (olds []old, reached int64, err error) {
	durable := a.durable.revision
	outdated := min(a.opts.outdated(a.state, a.outdated), durable)
	kept := a.state.total - a.state.scrubbedTotal
	reached = a.state.scrubbed
	if reached >= outdated && kept <= a.opts.WindowBytes {
		return nil, reached, nil
	}
	c := a.log.Cursor()
	for k, v := c.Seek(revisionKey(a.state.scrubbed + 1)); k != nil; k, v = c.Next() {
		revision := int64(binary.BigEndian.Uint64(k))
		tooMuch := kept > a.opts.WindowBytes && revision < durable
		if revision > outdated && !tooMuch {
			break
		}
		if len(olds) == limit {
			return olds, reached, nil
		}
		e, err := decodeEntry(revision, v)
		if err != nil {
			return nil, 0, err
		}
		kept = a.state.total - e.total
		e.key, e.value = bytes.Clone(e.key), nil
		olds, reached = append(olds, old{e, revision}), revision
	}
	return olds, max(reached, outdated), nil
}
