package flowcontrol

import "testing"

func TestPeak(t *testing.T) {
	var p peak
	for _, step := range []struct {
		second int64
		note   []int64
		now    int64
		want   int
	}{
		{0, nil, 0, 0},
		{0, []int64{1, 3, 2}, 1, 3},
		{1, nil, 1, 3},
		{2, nil, 1, 1},           // the peak was two seconds ago, and one request is still being served
		{2, []int64{2, 5}, 0, 5}, // replaces that of second 0
		{3, []int64{4}, 0, 5},
		{4, []int64{1}, 0, 4},
		{9, nil, 0, 0},
		{9, []int64{1 << 40}, 0, peakMask},
	} {
		for _, n := range step.note {
			p.note(step.second, n)
		}
		if got := p.within(step.second, step.now); got != step.want {
			t.Errorf("second %d after %v: %d, want %d", step.second, step.note, got, step.want)
		}
	}
}
