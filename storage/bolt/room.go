package bolt

import (
	"fmt"
	"math"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"go.etcd.io/bbolt"
)

const (
	// keepFree bounds what a file leaves of the disk to others, of which a sixteenth is left at most.
	keepFree = 64 << 20
	// leastRoom is what must be left, besides what a write takes, for a write that makes the store grow.
	leastRoom = 128 << 10
	// roomTime is how long a measured room is believed.
	roomTime = 100 * time.Millisecond
)

// growth is how many bytes a file may grow whose pages take size bytes: below the quota, and below what the disk has without
// what is left to others. Where the system does not tell what the disk has it is not bounded by that. A file that is larger than
// its quota, since its free pages were no neighbours, has a negative growth.
func (b *Backend) growth(size int64) int64 {
	left := int64(math.MaxInt64 / 4)
	if available, capacity, ok := diskRoom(b.file); ok {
		left = max(available-min(capacity/16, keepFree), 0)
	}
	if limit, ok := sizeLimit(); ok {
		left = min(left, max(limit-size, 0))
	}
	if q := b.opts.Quota; q > 0 {
		left = min(left, q-size)
	}
	return left
}

// room is how many bytes of pages can be written: those that are free in the file, and those by which it may grow.
func (b *Backend) room() int64 {
	var size, page int64
	_ = b.db.View(func(tx *bbolt.Tx) error {
		size, page = tx.Size(), int64(tx.DB().Info().PageSize) // within, as the file is mapped then, and not anew
		return nil
	})
	return int64(b.freePages())*page + b.growth(size)
}

// freePages is how many pages of the file are free when the next transaction begins, if no reader keeps them.
func (b *Backend) freePages() int {
	s := b.db.Stats()
	return s.FreePageN + s.PendingPageN
}

// gauge believes a measured room for a while. Its fields belong to the writer's goroutine.
type gauge struct {
	left int64
	at   time.Time
}

// takes says that there is room for a number of bytes of keys and values, besides those that wait to be written. In pages
// they take twice as much.
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

// errFull says that the file has no room for what makes the store grow.
func (b *Backend) errFull() error {
	why := "the disk is full"
	if b.opts.Quota > 0 {
		why = "the disk is full or the quota is reached"
	}
	return &storage.FileError{Op: "bolt: write", Path: b.path, Err: fmt.Errorf("%w: %s: deletions go on", storage.ErrNoSpace, why)}
}
