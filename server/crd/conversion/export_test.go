package conversion

import (
	"context"
	"runtime"
)

// Waiting returns a channel that is closed when n calls wait for a webhook, or when ctx ends.
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

// Queued returns the number of queued calls.
func Queued(w *Webhook) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue)
}

// Flights returns the number of objects in queued calls and calls in flight.
func Flights(w *Webhook) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.flights)
}

// Remembered returns the size of the remembered answers.
func Remembered(f *Factory) (bytes, n int) {
	f.memory.mu.Lock()
	defer f.memory.mu.Unlock()
	return f.memory.bytes, len(f.memory.byKey)
}
