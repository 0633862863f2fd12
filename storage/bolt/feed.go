package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"

	"github.com/keelson-dev/keelson/storage"
)

// nextChanges and nextBytes are about how much one Next returns, and reads.
const (
	nextChanges = 1024
	nextBytes   = 1 << 20
)

// feed is a position in the history. Recent changes are read from the tail, which all feeds share, and older ones from the
// file.
type feed struct {
	b      *Backend
	tail   *tail
	prefix string
	prev   bool
	wake   chan struct{} // holds one token when there is something to read for a waiting Next
	detach func() bool   // stops watching the context given to Watch
	ahead  *glance       // the result of a look by Wake, for the next Next; used only by these two

	// Guarded by tail.mu:
	pos      int64  // everything up to here has been delivered or does not concern this feed
	idle     bool   // nothing that concerns this feed is published and undelivered
	progress bool   // a progress mark was requested and not given yet
	err      error  // why the feed has ended
	onWake   func() // the func given to Wake that was not called yet
}

var _ storage.Waker = (*feed)(nil)

// glance is the result of a look.
type glance struct {
	found  []*change
	answer storage.Changes
	err    error
}

// Watch implements storage.Backend.
func (b *Backend) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := &feed{b: b, tail: b.tail, prefix: w.Prefix, prev: w.Prev, pos: w.From, wake: make(chan struct{}, 1)}
	t := b.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, storage.ErrClosed
	}
	if w.From < t.shown.floor {
		return nil, expired(w.From, t.shown.floor)
	}
	f.idle = w.From >= t.shown.revision
	t.feeds[f] = struct{}{}
	f.detach = context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		f.end(ctx.Err())
	})
	return f, nil
}

// Next implements storage.Feed.
func (f *feed) Next(ctx context.Context) (storage.Changes, error) {
	for {
		if err := ctx.Err(); err != nil {
			return storage.Changes{}, err
		}
		found, answer, err := f.take()
		if err == nil && len(found) > 0 {
			answer.Changes, err = f.show(found)
		}
		if err != nil {
			return storage.Changes{}, f.fail(err)
		}
		if len(answer.Changes) > 0 {
			return answer, nil
		}
		if answer.Progress != 0 {
			return answer, nil
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
		}
	}
}

// take returns the result of look, or of the look that Wake has done already.
func (f *feed) take() (found []*change, answer storage.Changes, err error) {
	seen := f.ahead
	if seen == nil {
		return f.look()
	}
	f.ahead = nil
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()
	if f.err != nil {
		return nil, answer, f.err
	}
	return seen.found, seen.answer, seen.err
}

// Wake implements storage.Waker. It must look at new changes to find out whether they concern the feed.
func (f *feed) Wake(again func()) bool {
	for f.ahead == nil {
		found, answer, err := f.look()
		if err != nil || len(found) > 0 || answer.Progress != 0 {
			f.ahead = &glance{found, answer, err}
		} else if f.sleep(again) {
			return true
		}
	}
	return false
}

// sleep stores a func to be called when there is something to read. It returns false when there is something new since the
// last look.
func (f *feed) sleep(again func()) bool {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()
	if f.err != nil || f.progress || !f.idle {
		return false
	}
	f.onWake = again
	return true
}

// look returns the changes that come next. An answer without changes but with a progress mark was requested. An empty answer
// means that Next has to wait (or, with a token in wake, to look again).
func (f *feed) look() (found []*change, answer storage.Changes, err error) {
	t := f.tail
	t.mu.Lock()
	defer t.mu.Unlock()
	for f.err == nil {
		switch {
		case f.pos < t.shown.floor:
			err = expired(f.pos, t.shown.floor)
		case f.pos < t.base:
			found, err = f.lookInFile()
		default:
			found = f.lookInTail()
		}
		if err != nil {
			return nil, answer, err
		}
		atHead := f.pos >= t.shown.revision
		if len(found) > 0 || atHead && f.progress {
			f.progress = f.progress && len(found) > 0
			return found, storage.Changes{Progress: min(f.pos, t.shown.revision)}, nil
		}
		if atHead {
			f.idle = true
			return nil, answer, nil
		}
	}
	return nil, answer, f.err
}

// lookInTail moves the position over changes in memory. The caller holds tail.mu.
func (f *feed) lookInTail() (found []*change) {
	size := 0
	for _, c := range f.tail.after(f.pos) {
		if len(found) == nextChanges || size > nextBytes {
			return found
		}
		f.pos = c.revision
		if strings.HasPrefix(c.key, f.prefix) {
			found = append(found, c)
			size += c.size()
		}
	}
	f.pos = max(f.pos, f.tail.shown.revision)
	f.idle = true
	return found
}

// lookInFile moves the position over a portion of the log. The caller holds tail.mu, which is released while the file is
// read.
func (f *feed) lookInFile() (found []*change, err error) {
	from, upTo := f.pos, f.tail.base
	f.tail.mu.Unlock()
	pos := upTo
	err = f.b.view(func(t txn) error {
		s, err := t.state()
		if err != nil {
			return err
		}
		if from < s.compacted {
			return expired(from, s.compacted)
		}
		size, visited, c := 0, 0, t.log.Cursor()
		for k, v := c.Seek(revisionKey(from + 1)); k != nil; k, v = c.Next() {
			revision := int64(binary.BigEndian.Uint64(k))
			if revision > upTo {
				break
			}
			if visited++; visited > nextChanges || size > nextBytes {
				pos = revision - 1
				break
			}
			e, err := decodeEntry(revision, v)
			if err != nil {
				return err
			}
			size += len(e.key)
			if !bytes.HasPrefix(e.key, []byte(f.prefix)) {
				continue
			}
			ch, err := t.newChange(e, revision)
			if err != nil {
				return err
			}
			size += len(ch.value)
			found = append(found, ch)
		}
		return nil
	})
	f.tail.mu.Lock()
	if err == nil {
		f.pos = pos
	}
	return found, err
}

// show makes the caller's slice of changes, with the previous values if the feed wants them.
func (f *feed) show(found []*change) ([]storage.Change, error) {
	if f.prev {
		if err := f.b.loadPrev(found); err != nil {
			return nil, err
		}
	}
	out := make([]storage.Change, len(found))
	for i, c := range found {
		out[i] = storage.Change{Key: c.key, Value: c.value, Revision: c.revision, Deleted: c.deleted, Expiring: c.expires != 0}
		if f.prev {
			out[i].Prev = c.prev.Load()
		}
	}
	return out, nil
}

// loadPrev reads the previous values that no feed has needed before.
func (b *Backend) loadPrev(changes []*change) error {
	var missing []*change
	for _, c := range changes {
		if c.prevAt != 0 && c.prev.Load() == nil {
			missing = append(missing, c)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return b.view(func(t txn) error {
		s, err := t.state()
		if err != nil {
			return err
		}
		if missing[0].revision <= s.compacted {
			return expired(missing[0].revision-1, s.compacted)
		}
		for _, c := range missing {
			kv, err := t.kvAt(c.key, c.prevAt)
			if err != nil {
				return err
			}
			c.prev.Store(&kv)
		}
		return nil
	})
}

// RequestProgress implements storage.Feed.
func (f *feed) RequestProgress() {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()
	f.progress = true
	f.signal()
}

// Close implements storage.Feed.
func (f *feed) Close() {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()
	f.end(storage.ErrClosed)
}

// fail ends the feed with err. It returns the error with which the feed has ended, which may be an earlier one.
func (f *feed) fail(err error) error {
	f.tail.mu.Lock()
	defer f.tail.mu.Unlock()
	f.end(err)
	return f.err
}
