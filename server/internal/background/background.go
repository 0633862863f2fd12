// Package background provides functions for work in the background of a server, which continues until its context ends, whatever
// fails.
//
// [Follow] passes on every change of the records of a kind. [Panics] turns panics into errors. [Doubling] and [Pause] wait
// between attempts.
package background

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Doubling returns the times to wait before the next attempt: each is twice the one before, from least to most.
func Doubling(least, most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: least, Factor: 2, Steps: math.MaxInt, Cap: most}
}

// Pause waits for d, and returns true. If ctx ends before, it returns false.
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
