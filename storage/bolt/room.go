package bolt

import (
	"fmt"
	"math"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
)

const (
	// keepFree is the maximum number of bytes of the disk that are left to other files; at most a sixteenth of the disk is
	// left.
	keepFree = 64 << 20
	// leastRoom is the number of bytes that must be free, besides those of the write, for a write that makes the store grow.
	leastRoom = 128 << 10
	// roomTime is how long a measured room is used.
	roomTime = 100 * time.Millisecond
)

// growth returns by how many bytes a file with pages of size bytes may grow, on the disk and by the quota. It is negative if
// the holes need more bytes than the disk has, or if the file is larger than its quota. A file can become larger than its
// quota when its free pages are too scattered for what is written.
func (b *Backend) growth(size int64) int64 {
	left := b.diskGrowth(size)
	if q := b.opts.Quota; q > 0 {
		left = min(left, q-size)
	}
	return left
}

// diskGrowth returns by how many bytes a file with pages of size bytes may grow on the disk: by the free bytes of the disk,
// minus those left to other files, minus those that the holes in the file will need. Holes are pages that were never written.
// A full file may also use the bytes that are left to other files: see bound. Where the system does not report the free
// bytes, they are no bound.
func (b *Backend) diskGrowth(size int64) int64 {
	left := int64(math.MaxInt64 / 4)
	if available, capacity, ok := diskRoom(b.file); ok {
		left = max(available-min(capacity/16, keepFree), 0) - holes(b.file, size)
	}
	if limit, ok := sizeLimit(); ok {
		left = min(left, max(limit-size, 0))
	}
	return left
}

// room returns how many bytes of pages can be written: the free ones in the file, and those by which it may grow.
func (b *Backend) room() int64 {
	size, free := b.pages()
	return free + b.growth(size)
}

// pages returns the size of the file and of its free pages in bytes; both are 0 after Close.
func (b *Backend) pages() (size, free int64) {
	err := b.db.View(func(tx *bbolt.Tx) error {
		size, free = tx.Size(), int64(tx.DB().Info().PageSize) // within the transaction the file is mapped, and not mapped anew
		return nil
	})
	if err != nil {
		return 0, 0
	}
	return size, int64(b.freePages()) * free
}

// Size implements storage.Sizer. The bytes that may be used are bounded by Options.Quota and by the disk; see Options.
func (b *Backend) Size() (used, limit int64) {
	size, free := b.pages()
	if size == 0 {
		return 0, 0
	}
	used = size - free
	left := free + b.growth(size)
	if left >= math.MaxInt64/4 {
		return used, -1
	}
	return used, used + max(left, 0)
}

// freePages returns how many pages of the file will be free when the next transaction begins, if no reader keeps them.
func (b *Backend) freePages() int {
	s := b.db.Stats()
	return s.FreePageN + s.PendingPageN
}

// gauge keeps the result of room for roomTime. Its fields belong to the writer's goroutine.
type gauge struct {
	left int64
	at   time.Time
}

// takes reports whether there is room for size bytes of keys and values besides the bytes that wait to be written. Pages take
// twice as many bytes as the keys and values in them.
func (g *gauge) takes(b *Backend, waiting, size int64) bool {
	need := 2*(waiting+size) + leastRoom
	if now := time.Now(); g.left < need || now.Sub(g.at) > roomTime {
		g.left, g.at = b.room(), now
	}
	if g.left < need {
		return false
	}
	g.left -= 2 * size
	return true
}

// errFull returns the error for a commit that makes the store grow when the file has no room.
func (b *Backend) errFull() error {
	why := "the disk is full"
	if b.opts.Quota > 0 {
		why = "the disk is full or the quota is reached"
	}
	return &storage.FileError{Op: "bolt: write", Path: b.path, Err: fmt.Errorf("%w: %s: deletions go on", storage.ErrNoSpace, why)}
}
