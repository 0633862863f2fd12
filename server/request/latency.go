package request

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// Part is a part of the work of a request whose time is measured.
type Part int

// The parts, in the order in which a write has them. Parts may lie within others: a part counts the time of all that it calls, such
// as the reads of the storage that an admission plug-in makes.
const (
	Authentication Part = iota // finding out who sends the request
	Queueing                   // waiting for a turn
	Authorization              // deciding whether the user may do it
	Receiving                  // waiting for the body
	Decoding                   // making an object of the body
	Mutating                   // admission plug-ins that change the object
	Validating                 // admission plug-ins that judge the object
	Converting                 // waiting for conversion webhooks
	Storing                    // waiting for the storage, reads included
	Encoding                   // making the answer of an object
	Writing                    // waiting for the client to take the answer
	parts                      // their number
)

// String returns the name of the part.
func (p Part) String() string {
	names := [parts]string{
		"authentication", "queue", "authorization", "body", "decode", "mutating-admission", "validating-admission", "conversion-webhook", "storage",
		"encode", "write",
	}
	if p < 0 || p >= parts {
		return "unknown"
	}
	return names[p]
}

// Latency is a record of where the time of a request went. The zero Latency is empty. A nil Latency records nothing and has nothing.
// All methods may be called concurrently, also when the request has ended.
type Latency struct {
	took [parts]atomic.Uint32 // microseconds
}

// Add adds time to a part, in microseconds, rounded up. The most is an hour.
func (l *Latency) Add(p Part, took time.Duration) {
	if l == nil || p < 0 || p >= parts || took <= 0 {
		return
	}
	more := uint32((min(took, time.Hour) + time.Microsecond - 1) / time.Microsecond) //nolint:gosec // at most 3.6e9
	for {
		was := l.took[p].Load()
		if l.took[p].CompareAndSwap(was, was+min(more, math.MaxUint32-was)) {
			return
		}
	}
}

// Of returns the time of a part.
func (l *Latency) Of(p Part) time.Duration {
	if l == nil || p < 0 || p >= parts {
		return 0
	}
	return time.Duration(l.took[p].Load()) * time.Microsecond
}

// All calls yield with each part that took time, in the order of the parts.
func (l *Latency) All(yield func(Part, time.Duration) bool) {
	for p := range parts {
		if took := l.Of(p); took > 0 && !yield(p, took) {
			return
		}
	}
}

// LatencyFrom returns the Latency of the request of a context, or nil if the request has none, as watches and other requests that
// last have none.
func LatencyFrom(ctx context.Context) *Latency {
	if v := valuesOf(ctx); v != nil {
		return v.Latency
	}
	return nil
}

// WithLatency returns a context whose request records its times in l.
func WithLatency(ctx context.Context, l *Latency) context.Context {
	c := with(ctx)
	c.values.Latency = l
	return c
}

// Took adds the time since began to a part of the request of ctx. It does nothing if the request has no Latency.
func Took(ctx context.Context, p Part, began time.Time) {
	if l := LatencyFrom(ctx); l != nil {
		l.Add(p, time.Since(began))
	}
}
