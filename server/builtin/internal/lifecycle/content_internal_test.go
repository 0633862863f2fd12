package lifecycle

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// The sweeps of many namespaces do not all run at the same time.
func TestSweepsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &Lifecycle{gate: &gate{}, passes: make(chan struct{}, 1)}
		l.passes <- struct{}{}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.sweepOnce(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want that it was not its turn", err)
		}
	})
}
