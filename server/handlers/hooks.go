package handlers

import "context"

// Hooks are told what happens in a Resource and its subresources, for metrics. Any may be nil. They are called by many
// goroutines at once, in the middle of their work: they must be quick.
type Hooks struct {
	// Body is called for each request body that is read whole, be it empty, with the request's verb as request.Info has it
	// and the size in bytes.
	Body func(verb string, size int)
	// Event is called for each event that is written to a watch, with the size of its frame in bytes.
	Event func(size int)
	// InitialEnd is called when a watch that was asked for its initial events has been told that they end. ctx is the
	// request's, with its request.Info.
	InitialEnd func(ctx context.Context)
}
