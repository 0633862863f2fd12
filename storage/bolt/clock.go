package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"
)

// clock is the clock for the expiry of keys. It is the wall clock, but never goes back: if the wall clock was set back below
// the last time that the clock returned, time continues from there. So no key lives longer than its TTL while the file is
// open. If the wall clock is set forward, keys expire early. The file stores the last time, so that all this holds across a
// restart too. A clock must be used by one goroutine only.
type clock struct {
	wall func() time.Time // for tests; nil is time.Now
	last time.Time        // the last time returned
	at   time.Time        // when that was, by the monotonic clock
}

// newClock returns a clock that continues from the given second since 1970.
func newClock(wall func() time.Time, second int64) clock {
	return clock{wall: wall, last: time.Unix(second, 0), at: time.Now()}
}

func (c *clock) tell() time.Time {
	now := time.Now()
	wall := now.Round(0) // without the monotonic reading
	if c.wall != nil {
		wall = c.wall()
	}
	c.last, c.at = c.last.Add(now.Sub(c.at)), now
	if wall.After(c.last) {
		c.last = wall
	}
	return c.last
}

// deadline returns the first full second since 1970 at or after the end of a TTL. Many keys have the same second, so that one
// transaction deletes them.
func deadline(now time.Time, ttl time.Duration) int64 {
	at := now.Add(ttl)
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}

// clock returns the last time that the file has stored, in seconds since 1970.
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
