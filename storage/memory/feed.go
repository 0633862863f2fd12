package memory

import (
	"context"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/storage"
)

// maxBatch is the maximum number of changes that one Next returns.
const maxBatch = 1000

// feed is a storage.Feed: a position in the log.
type feed struct {
	b      *Backend
	w      storage.WatchRange
	ctx    context.Context // the context given to Watch, with which the feed ends
	wake   chan struct{}   // capacity 1: there may be something new
	closed chan struct{}   // closed by Close
	once   sync.Once       // closes closed

	// Guarded by b.mu.
	first    int64       // revision of the first unread change that concerns the feed; 0: none, and the feed is in b.idle
	progress bool        // a progress mark was requested
	ended    error       // the error of every later Next
	onWake   func()      // the func given to Wake that was not called yet; if it is set there is nothing to read, and the feed is in b.idle
	detach   func() bool // stops watching ctx for onWake; nil: ctx is not watched
}

var _ storage.Waker = (*feed)(nil)

// Watch implements storage.Backend.
func (b *Backend) Watch(ctx context.Context, w storage.WatchRange) (storage.Feed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.done:
		return nil, storage.ErrClosed
	case w.From < b.log.floor:
		return nil, b.log.expired(w.From)
	}
	f := &feed{b: b, w: w, ctx: ctx, wake: make(chan struct{}, 1), closed: make(chan struct{})}
	f.settle(w.From)
	return f, nil
}

// Next implements storage.Feed.
func (f *feed) Next(ctx context.Context) (storage.Changes, error) {
	for {
		changes, ready, err := f.read()
		if ready || err != nil {
			return changes, err
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return storage.Changes{}, ctx.Err()
		case <-f.ctx.Done():
		case <-f.closed:
		case <-f.b.closed:
		}
	}
}

// read returns what can be read now.
func (f *feed) read() (out storage.Changes, ready bool, err error) {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	if f.ended == nil {
		f.ended = f.over()
	}
	if f.ended != nil {
		f.leave()
		return out, false, f.ended
	}
	if f.first == 0 {
		if !f.progress {
			return out, false, nil
		}
		f.progress = false
		return storage.Changes{Progress: f.b.revision}, true, nil
	}
	f.progress = false
	reached := f.first - 1
	for i, entries := 0, f.b.log.after(reached); i < len(entries) && len(out.Changes) < maxBatch; i++ {
		e := &entries[i]
		if strings.HasPrefix(e.item.key, f.w.Prefix) {
			out.Changes = append(out.Changes, e.change(f.w.Prev))
		}
		reached = e.revision
	}
	out.Progress = f.settle(reached)
	return out, true, nil
}

// Wake implements storage.Waker.
func (f *feed) Wake(fn func()) bool {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	if f.ended != nil || f.first != 0 || f.progress || f.over() != nil {
		return false
	}
	f.onWake = fn
	if f.detach == nil {
		f.detach = context.AfterFunc(f.ctx, f.expire)
	}
	return true
}

// expire wakes the reader after the context has ended.
func (f *feed) expire() {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	f.nudge()
}

// over returns the error with which the feed has ended, or nil. The caller holds b.mu.
func (f *feed) over() error {
	select {
	case <-f.closed:
		return storage.ErrClosed
	default:
	}
	switch {
	case f.b.done:
		return storage.ErrClosed
	case f.ctx.Err() != nil:
		return f.ctx.Err()
	case f.first != 0 && f.first <= f.b.log.floor:
		return f.b.log.expired(f.first - 1)
	}
	return nil
}

// settle sets the position of a feed that has read up to a revision: at its next unread change, or, if there is none, among
// the idle feeds. It returns the progress of the feed. The caller holds b.mu.
func (f *feed) settle(reached int64) int64 {
	f.first = 0
	if reached < f.b.revision {
		entries := f.b.log.after(reached)
		for i := range entries {
			if strings.HasPrefix(entries[i].item.key, f.w.Prefix) {
				f.first = entries[i].revision
				return f.first - 1
			}
		}
	}
	f.b.idle.add(f)
	return f.b.revision
}

// RequestProgress implements storage.Feed.
func (f *feed) RequestProgress() {
	f.b.mu.Lock()
	defer f.b.mu.Unlock()
	f.progress = true
	f.nudge()
}

// Close implements storage.Feed.
func (f *feed) Close() {
	f.once.Do(func() {
		close(f.closed)
		f.b.mu.Lock()
		defer f.b.mu.Unlock()
		f.leave()
		f.nudge()
	})
}

// leave removes the feed, which has ended, from all lists. The caller holds b.mu.
func (f *feed) leave() {
	f.b.idle.remove(f)
	if f.detach != nil {
		f.detach()
	}
}

// nudge wakes a waiting Next, or calls the func given to Wake. The caller holds b.mu.
func (f *feed) nudge() {
	if fn := f.onWake; fn != nil {
		f.onWake = nil
		go fn() // the caller of Wake waits for this goroutine
		return
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// idle has the feeds without unread changes, by prefix. Its zero value is empty.
type idle struct {
	prefixes map[string]map[*feed]struct{}
	lengths  map[int]int // number of prefixes of each length
}

func (q *idle) add(f *feed) {
	feeds := q.prefixes[f.w.Prefix]
	if feeds == nil {
		if q.prefixes == nil {
			q.prefixes, q.lengths = map[string]map[*feed]struct{}{}, map[int]int{}
		}
		feeds = map[*feed]struct{}{}
		q.prefixes[f.w.Prefix] = feeds
		q.lengths[len(f.w.Prefix)]++
	}
	feeds[f] = struct{}{}
}

func (q *idle) remove(f *feed) {
	feeds, ok := q.prefixes[f.w.Prefix]
	if !ok {
		return
	}
	delete(feeds, f)
	if len(feeds) == 0 {
		q.forget(f.w.Prefix)
	}
}

func (q *idle) forget(prefix string) {
	delete(q.prefixes, prefix)
	if q.lengths[len(prefix)]--; q.lengths[len(prefix)] == 0 {
		delete(q.lengths, len(prefix))
	}
}

// wake gives the change of a key to the idle feeds that it concerns: those that begin before this revision. They are not idle
// any more.
func (q *idle) wake(key string, revision int64) {
	for n := range q.lengths {
		if n > len(key) {
			continue
		}
		prefix := key[:n]
		feeds, ok := q.prefixes[prefix]
		if !ok {
			continue
		}
		for f := range feeds {
			if revision <= f.w.From {
				continue
			}
			f.first = revision
			f.nudge()
			delete(feeds, f)
		}
		if len(feeds) == 0 {
			q.forget(prefix)
		}
	}
}

// nudgeAll wakes all idle feeds.
func (q *idle) nudgeAll() {
	for _, feeds := range q.prefixes {
		for f := range feeds {
			f.nudge()
		}
	}
}
