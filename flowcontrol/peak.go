package flowcontrol

import "sync/atomic"

// peak stores the highest numbers of the current second and of the second before. The zero peak is empty.
type peak struct{ current, before atomic.Uint64 } // a second, and in the low peakBits bits the highest number in it

const (
	peakBits = 24
	peakMask = 1<<peakBits - 1
)

// note adds a number. A number of an earlier second than the current one is dropped. Concurrent calls may come out of order by
// one second.
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

// within returns the highest number in a second and in the one before, or now if it is higher.
func (p *peak) within(second, now int64) int {
	most := uint64(now)
	for _, slot := range []uint64{p.current.Load(), p.before.Load()} {
		if int64(slot>>peakBits) >= second-1 {
			most = max(most, slot&peakMask)
		}
	}
	return int(most)
}
