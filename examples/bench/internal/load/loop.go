package load

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Op is one operation. Worker counts the clients and n the operations of that client, both from 0.
type Op func(ctx context.Context, c *Client, worker, n int) error

// Limit says when a loop ends: no operation begins after For, unless fewer than Least have begun, and none after
// Most have (0 is no such limit). The operations under way are waited for.
type Limit struct {
	For         time.Duration
	Least, Most int
}

// Result is what a loop did.
type Result struct {
	Ops       int
	Elapsed   time.Duration
	Latencies []time.Duration // one per operation, sorted
}

// Loop lets each client do one operation after another. The first error ends it.
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

// Quantile returns the value that the share q of the sorted latencies does not exceed; 0 for none.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}
