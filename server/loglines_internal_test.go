package server

import (
	"testing"
	"time"
)

func TestLineLimit(t *testing.T) {
	var l lineLimit
	now := time.Now()
	taken := func(at time.Time, times int) (lines int, dropped int64) {
		for range times {
			if n, ok := l.take(at); ok {
				lines, dropped = lines+1, dropped+n
			}
		}
		return lines, dropped
	}
	for _, tc := range []struct {
		after   time.Duration
		times   int
		lines   int
		dropped int64
	}{{0, 25, maxLines, 0}, {999 * time.Millisecond, 5, 0, 0}, {time.Second, 3, 3, 20}, {time.Hour, 1, 1, 0}} {
		if lines, dropped := taken(now.Add(tc.after), tc.times); lines != tc.lines || dropped != tc.dropped {
			t.Errorf("after %v: %d lines, which tell of %d dropped; want %d and %d", tc.after, lines, dropped, tc.lines, tc.dropped)
		}
	}
}

func TestARepeatedReasonIsLoggedEachMinute(t *testing.T) {
	var r repeated
	began := time.Now()
	for _, c := range []struct {
		after  time.Duration
		reason string
		want   bool
	}{
		{0, "a", true}, {time.Second, "a", false}, {2 * time.Second, "b", true}, {time.Minute, "b", false},
		{time.Minute + 2*time.Second, "b", true}, {time.Minute + 3*time.Second, "b", false},
	} {
		if got := r.take(began.Add(c.after), c.reason); got != c.want {
			t.Errorf("%s after %s: %v", c.reason, c.after, got)
		}
	}
}
