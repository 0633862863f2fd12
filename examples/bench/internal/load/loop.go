package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Op is one operation. worker is the number of the client and n the number of the client's operation, both from 0.
type Op func(ctx context.Context, c *Client, worker, n int) error

// Limit limits a loop. No operation begins after For, unless fewer than Least have begun. No operation begins after Most have (0
// means no such limit). Operations in flight are waited for.
type Limit struct {
	// For is the duration of the loop.
	For time.Duration
	// Least and Most bound the number of operations.
	Least, Most int
}

// Result is the result of a loop.
type Result struct {
	// Ops is the number of operations.
	Ops int
	// Elapsed is the duration of the loop.
	Elapsed   time.Duration
	Latencies []time.Duration // one per operation, sorted
}

// Loop makes each client execute one operation after another. The first error ends the loop.
func Loop(ctx context.Context, clients []*Client, limit Limit, op Op) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		begun     atomic.Int64
		wait      sync.WaitGroup
		latencies = make([][]time.Duration, len(clients))
		start     = time.Now()
		deadline  = start.Add(limit.For)
	)
	for worker, c := range clients {
		wait.Go(func() { // ends by the limit
			for n := 0; ctx.Err() == nil; n++ {
				before := time.Now()
				i := begun.Add(1)
				if before.After(deadline) && i > int64(limit.Least) || limit.Most > 0 && i > int64(limit.Most) {
					return
				}
				if err := op(ctx, c, worker, n); err != nil {
					cancel(err)
					return
				}
				latencies[worker] = append(latencies[worker], time.Since(before))
			}
		})
	}
	wait.Wait()
	r := Result{Elapsed: time.Since(start), Latencies: slices.Concat(latencies...)}
	r.Ops = len(r.Latencies)
	slices.Sort(r.Latencies)
	return r, context.Cause(ctx)
}

// Quantile returns the value that a share q of the sorted latencies does not exceed, or 0 for no latencies.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
