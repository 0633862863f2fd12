package crd

import (
	"context"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// doubling is how long to wait before the next attempt: twice as long each time, within bounds.
func doubling(most time.Duration) wait.Backoff {
	return wait.Backoff{Duration: leastWait, Factor: 2, Steps: math.MaxInt, Cap: most}
}
