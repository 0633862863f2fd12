package cacher

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/keelson-dev/keelson/storage"
)

// change is one change of one key. It is immutable.
type change struct {
	revision int64
	was, is  *entry         // nil: the key did not exist before, or does not exist after
	forms    *storage.Forms // forms of is, and of was as a deleted record
}

func (ch *change) key() string {
	if ch.is != nil {
		return ch.is.Key
	}
	return ch.was.Key
}

// A segment of the log is closed when it has this many changes, or this share of the bytes that the log may have.
const (
	segmentChanges = 256
	segmentShare   = 8
)

// changeBytes is about the memory of a change besides the value that it replaced: the change itself, and its part of the
// nodes of the older state.
const changeBytes = 700

// segment is a part of the log: a state, and the changes after it.
type segment struct {
	base    *snapshot
	changes []*change
	began   int64 // when the first change came, in nanoseconds
	at      int64 // when the last change came
	bytes   int64
	values  int64         // bytes of the new values, which take additional memory only once they are replaced
	forms   atomic.Int64  // bytes of the forms of its changes
	formed  *atomic.Int64 // the same for all segments, including removed ones
	grown   func(bytes int)
}

// changelog has the last changes, in order: all after floor. It uses no clock and no lock; its owner does.
type changelog struct {
	segments []*segment
	floor    int64
	last     int64 // revision of the last change; floor if there is none
	count    int   // number of changes
	size     int64 // size of the segments without forms
	formed   *atomic.Int64
}

// reset empties the log and sets its floor.
func (l *changelog) reset(floor int64) {
	*l = changelog{floor: floor, last: floor, formed: new(atomic.Int64)}
}

// open returns the segment for a change at a revision. If that is a new segment, base is called for the state before it. most
// is the maximum number of bytes of the log.
func (l *changelog) open(revision, most int64, base func() *snapshot) *segment {
	if n := len(l.segments); n > 0 {
		s := l.segments[n-1]
		full := len(s.changes) >= segmentChanges || s.bytes+s.values+s.forms.Load() >= most/segmentShare
		if !full || revision == l.last {
			return s
		}
	}
	s := &segment{base: base(), formed: l.formed}
	s.grown = s.grow
	l.segments = append(l.segments, s)
	return s
}

// add appends a change to the segment that open returned for it, and returns about how many bytes that takes.
func (l *changelog) add(s *segment, ch *change, now int64) (bytes int64) {
	n := changeBytes + ch.was.bytes()
	if len(s.changes) == 0 {
		s.began = now
	}
	s.changes = append(s.changes, ch)
	s.at, s.bytes, s.values = now, s.bytes+n, s.values+ch.is.bytes()
	l.last, l.count, l.size = ch.revision, l.count+1, l.size+n
	return n
}

// grow adds the bytes of a form of one of the segment's changes.
func (s *segment) grow(bytes int) {
	s.forms.Add(int64(bytes))
	s.formed.Add(int64(bytes))
}

// bytes returns about how many bytes the log takes in memory.
func (l *changelog) bytes() int64 {
	n := l.size
	for _, s := range l.segments {
		n += s.forms.Load()
	}
	return n
}

// trim drops the segments whose changes are all before since, and then the oldest ones until the log has at most most bytes.
// The last segment is not dropped because of its bytes. released is called with each dropped change.
func (l *changelog) trim(since, most int64, released func(*change)) {
	over := l.bytes() - most
	n := 0
	for ; n < len(l.segments); n++ {
		s := l.segments[n]
		if s.at >= since && (over <= 0 || n == len(l.segments)-1) {
			break
		}
		over -= s.bytes + s.forms.Load()
		l.size -= s.bytes
		l.count -= len(s.changes)
		l.floor = s.changes[len(s.changes)-1].revision
		for _, ch := range s.changes {
			released(ch)
		}
	}
	l.segments = slices.Delete(l.segments, 0, n)
}

// place returns the segment and the position in it of the first change after a revision, which must be at or above floor.
func (l *changelog) place(revision int64) (seg, i int) {
	seg, _ = slices.BinarySearchFunc(l.segments, revision, func(s *segment, revision int64) int {
		if s.changes[len(s.changes)-1].revision <= revision {
			return -1
		}
		return 1
	})
	if seg == len(l.segments) {
		return seg, 0
	}
	return seg, after(l.segments[seg].changes, revision)
}

// after returns the position of the first change with a greater revision.
func after(changes []*change, revision int64) int {
	i, _ := slices.BinarySearchFunc(changes, revision, func(ch *change, revision int64) int {
		if ch.revision <= revision {
			return -1
		}
		return 1
	})
	return i
}

// read appends to dst about most changes after a revision. It appends more than most if that is needed to keep the changes of
// one revision together.
func (l *changelog) read(dst []*change, revision int64, most int) []*change {
	for seg, i := l.place(revision); seg < len(l.segments); seg, i = seg+1, 0 {
		for _, ch := range l.segments[seg].changes[i:] {
			if len(dst) >= most && ch.revision != dst[len(dst)-1].revision {
				return dst
			}
			dst = append(dst, ch)
		}
	}
	return dst
}

// next returns the revision of the first change after a revision; 0 if there is none.
func (l *changelog) next(revision int64) int64 {
	if revision >= l.last || len(l.segments) == 0 {
		return 0
	}
	seg, i := l.place(revision)
	return l.segments[seg].changes[i].revision
}

// at returns the state before the segment in which a revision is, and the changes up to that revision. The revision must be
// at or above floor and below last.
func (l *changelog) at(revision int64) (base *snapshot, changes []*change) {
	seg, _ := slices.BinarySearchFunc(l.segments, revision, func(s *segment, revision int64) int {
		return cmp.Or(cmp.Compare(s.base.changed, revision), -1)
	})
	s := l.segments[seg-1]
	return s.base, slices.Clone(s.changes[:after(s.changes, revision)])
}

// span returns the times of the first and the last change in the log, 0 when it is empty.
func (l *changelog) span() (first, last int64) {
	if len(l.segments) == 0 {
		return 0, 0
	}
	return l.segments[0].began, l.segments[len(l.segments)-1].at
}
