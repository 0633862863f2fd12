package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// clock tells the time by which keys expire. It is the wall clock made one that never goes back: while that is behind
// what was told already, since somebody has set it back, time goes on from there. So no key lives longer than its TTL,
// as long as the file is open, whatever becomes of the wall clock; when that is set forward, keys expire early. The
// file keeps what was told, so that it holds across a restart too. One goroutine uses a clock.
type clock struct {
	wall func() time.Time // for tests; nil is time.Now
	told time.Time        // last
	at   time.Time        // when that was, by the monotonic clock
}

// newClock goes on from the second since 1970 that was told last.
func newClock(wall func() time.Time, second int64) clock {
	return clock{wall: wall, told: time.Unix(second, 0), at: time.Now()}
}

func (c *clock) tell() time.Time {
	now := time.Now()
	wall := now.Round(0) // without the monotonic reading
	if c.wall != nil {
		wall = c.wall()
	}
	c.told, c.at = c.told.Add(now.Sub(c.at)), now
	if wall.After(c.told) {
		c.told = wall
	}
	return c.told
}

// deadline is the first second since 1970 that lies wholly behind a TTL: those of many keys are the same, so that one
// transaction deletes them.
func deadline(now time.Time, ttl time.Duration) int64 {
	at := now.Add(ttl)
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}

// clock returns the second since 1970 that the file has been told last.
func (t txn) clock() (int64, error) {
	b := t.meta.Get([]byte(clockKey))
	switch {
	case b == nil:
		return 0, nil
	case len(b) != 8+4 || crc32.Checksum(b[:8], castagnoli) != binary.BigEndian.Uint32(b[8:]):
		return 0, fmt.Errorf("%w: the checksum of the clock is wrong", errDamaged)
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

func (t txn) setClock(second int64) error {
	b := binary.BigEndian.AppendUint64(nil, uint64(second))
	return t.meta.Put([]byte(clockKey), binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)))
}
