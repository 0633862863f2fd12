package bolt

import (
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
)

// The tail keeps about this much of the newest history in memory, values included.
const (
	tailChanges = 4096
	tailBytes   = 4 << 20
)

// change is a durable change as all feeds share it.
type change struct {
	key      string
	value    []byte
	revision int64
	deleted  bool
	prevAt   int64 // revision of the value before; 0 if there was none

	// prev is the value before, once a feed has needed it.
	prev atomic.Pointer[storage.KV]
}

func (c *change) size() int { return len(c.key) + len(c.value) }

// tail is the newest part of the history, and the revision that everybody may see.
type tail struct {
	mu      sync.Mutex // guards everything below, and the position of every feed
	base    int64      // the changes are those of (base, head]
	head    int64      // the newest durable revision
	floor   int64      // history below is forgotten, even if it is still here
	changes []*change
	size    int // of the changes
	feeds   map[*feed]struct{}
	closed  bool
}

func newTail(s state) *tail {
	return &tail{base: s.revision, head: s.revision, floor: s.compacted, feeds: map[*feed]struct{}{}}
}

// revision returns the newest durable revision, or ErrClosed.
func (t *tail) revision() (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0, storage.ErrClosed
	}
	return t.head, nil
}

// publish shows changes, which follow the head, and the state after them, which is durable, to readers and feeds.
func (t *tail) publish(changes []*change, s state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head, t.floor = s.revision, s.compacted
	for _, c := range changes {
		t.changes = append(t.changes, c)
		t.size += c.size()
	}
	for len(t.changes) > tailChanges || t.size > tailBytes {
		t.base = t.changes[0].revision
		t.size -= t.changes[0].size()
		t.changes[0] = nil
		t.changes = t.changes[1:]
	}
	for f := range t.feeds {
		f.notice(changes)
	}
}

// after returns the changes that follow a revision at or above base. The caller holds mu.
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

// notice tells a feed of changes just published. A feed that has nothing unread moves on with the head as long
// as nothing concerns it, so a quiet one never falls out of the window. The caller holds tail.mu.
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
	f.pos = max(f.pos, f.tail.head)
}
