package cacher

import (
	"testing"
	"time"
)

// The longer a cache is empty, the later its readers should try again, as in kube-apiserver.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct{ empty, want time.Duration }{
		{0, 1}, {3, 1}, {11, 1}, {12, 2}, {30, 6}, {56, 28}, {57, 30}, {10000, 30}, {-1, 1},
	} {
		if got := retryAfter(c.empty * time.Second); got != c.want*time.Second {
			t.Errorf("after %d s: %v, want %d s", c.empty, got, c.want)
		}
	}
}
