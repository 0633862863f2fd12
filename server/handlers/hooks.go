package handlers

import "context"

// Hooks are functions that a Resource and its subresources call, for metrics and logs. Each may be nil. They are called from many
// goroutines at once while requests are served, so they must return quickly.
type Hooks struct {
	// Untracked is called when a change is made whose effect on metadata.managedFields could not be computed. err is the reason,
	// which clients do not learn, and may contain texts of any length that clients chose. ctx is the request's context.
	Untracked func(ctx context.Context, err error)
	// Body is called for each request body that was read to its end, even an empty one. verb is the verb of the request.Info,
	// size is the length of the body in bytes.
	Body func(verb string, size int)
	// Event is called for each event that is written to a watch. size is the length of the event in the stream, in bytes.
	Event func(size int)
	// InitialEnd is called when a watch that asked for initial events has written the bookmark that ends them. ctx is the
	// request's context, with its request.Info.
	InitialEnd func(ctx context.Context)
}
