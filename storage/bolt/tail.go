package bolt

import (
	"sort"
	"strings"
	"sync"

	"github.com/keelson-dev/keelson/storage"
)

// The tail keeps about this much of the newest history in memory, including values.
const (
	tailChanges = 4096
	tailBytes   = 4 << 20
)

// shown is the state that readers may see.
type shown struct {
	revision int64 // the newest revision
	floor    int64 // history below it is removed, even if it is still in the file
	flushed  int64 // later changes are in memory, and in the journal if there is one, but not in the trees of the file
	overlay  *overlay
}

// tail has the newest part of the history, and the state that readers may see.
type tail struct {
	mu      sync.Mutex // guards all fields below, and the position of every feed
	shown   shown
	base    int64 // the changes are those of (base, shown.revision]; base is at most shown.flushed
	changes []*change
	size    int // size of the changes
	feeds   map[*feed]struct{}
	closed  bool
}

func newTail(s state) *tail {
	return &tail{
		base:  s.revision,
		shown: shown{revision: s.revision, floor: s.compacted, flushed: s.revision},
		feeds: map[*feed]struct{}{},
	}
}

// see returns the state that readers may see, or ErrClosed.
func (t *tail) see() (shown, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return shown{}, storage.ErrClosed
	}
	return t.shown, nil
}

// publish shows changes, which follow the newest one, and the state after them to readers and feeds.
func (t *tail) publish(changes []*change, now shown) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = now
	for _, c := range changes {
		t.changes = append(t.changes, c)
		t.size += c.size()
	}
	for len(t.changes) > tailChanges || t.size > tailBytes {
		if t.changes[0].revision > now.flushed {
			break
		}
		t.base = t.changes[0].revision
		t.size -= t.changes[0].size()
		t.changes[0] = nil
		t.changes = t.changes[1:]
	}
	for f := range t.feeds {
		f.notice(changes)
	}
}

// restart shows a state whose history is not in memory.
func (t *tail) restart(s state) {
	t.publish(nil, shown{revision: s.revision, floor: s.compacted, flushed: s.revision})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.base, t.changes, t.size = s.revision, nil, 0
}

// after returns the changes after a revision, which is at or above base. The caller holds mu.
func (t *tail) after(revision int64) []*change {
	i := sort.Search(len(t.changes), func(i int) bool { return t.changes[i].revision > revision })
	return t.changes[i:]
}

// close ends all feeds and reads.
func (t *tail) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for f := range t.feeds {
		f.end(storage.ErrClosed)
	}
	t.changes = nil
}

// notice informs a feed about changes just published. A feed that has nothing unread moves on with the newest revision as
// long as no change concerns it, so it never leaves the window. The caller holds tail.mu.
func (f *feed) notice(changes []*change) {
	if !f.idle {
		return
	}
	for _, c := range changes {
		if c.revision > f.pos && strings.HasPrefix(c.key, f.prefix) {
			f.pos = c.revision - 1
			f.idle = false
			f.signal()
			return
		}
	}
	f.pos = max(f.pos, f.tail.shown.revision)
}

// end ends the feed with err, unless it has ended already. The caller holds tail.mu.
func (f *feed) end(err error) {
	if f.err != nil {
		return
	}
	f.err = err
	f.idle = false
	delete(f.tail.feeds, f)
	if f.detach != nil {
		f.detach()
	}
	f.signal()
}

// signal makes a waiting Next look again, or calls the func given to Wake. The caller holds tail.mu.
func (f *feed) signal() {
	if again := f.onWake; again != nil {
		f.onWake = nil
		go again() // the caller of Wake waits for this goroutine
		return
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}
