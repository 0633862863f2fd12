package flowcontrol

import "sync/atomic"

// peak remembers the highest number that was noted in the current second and in the one before. The zero peak has been
// told nothing.
type peak struct{ current, before atomic.Uint64 } // a second, and in the low peakBits the highest number in it

const (
	peakBits = 24
	peakMask = 1<<peakBits - 1
)

// note is told a number. Seconds may come out of order by one: the earlier is then taken for the later.
func (p *peak) note(second, n int64) {
	mine := uint64(second)<<peakBits | uint64(min(n, peakMask))
	for {
		c := p.current.Load()
		switch {
		case mine <= c: // a higher number in the same second, or a later second
			return
		case !p.current.CompareAndSwap(c, mine):
		case c>>peakBits != uint64(second):
			p.before.Store(c)
			return
		default:
			return
		}
	}
}

// within returns the highest number in a second and the one before, now included.
func (p *peak) within(second, now int64) int {
	most := uint64(now)
	for _, slot := range []uint64{p.current.Load(), p.before.Load()} {
		if int64(slot>>peakBits) >= second-1 {
			most = max(most, slot&peakMask)
		}
	}
	return int(most)
}
