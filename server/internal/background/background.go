// Package background is what work in the background of a server is made of: it goes on until its context ends, whatever fails.
//
// [Follow] shows every change of the records of a kind. [Panics] makes errors of panics. [Doubling] and [Pause] wait between
// attempts.
package background

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Doubling is how long to wait before the next attempt: twice as long each time, from least to most.
func Doubling(least, most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: least, Factor: 2, Steps: math.MaxInt, Cap: most}
}

// Pause waits for d, or until ctx ends, which it reports as false.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
