package conversion

import (
	"context"
	"runtime"
)

// Waiting is closed when n wait for a webhook, or ctx ends.
func Waiting(ctx context.Context, w *Webhook, n int) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			w.mu.Lock()
			waiting := w.waiting
			w.mu.Unlock()
			if waiting == n {
				return
			}
			runtime.Gosched()
		}
	}()
	return done
}

// Queued is how many calls wait for their turn.
func Queued(w *Webhook) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// Flights is how many objects are with a webhook, or wait for that.
func Flights(w *Webhook) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.flights)
}

// Remembered is how much is.
func Remembered(f *Factory) (bytes, n int) {
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	return f.memory.bytes, len(f.memory.byKey)
}
