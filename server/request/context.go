package request

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/audit"
)

// Values are the values that this package stores in the context of a request. A context type with a field of type Values returns
// a pointer to it from its method Value for the key that IsValuesKey reports, which needs fewer contexts than one With function
// for each value. Only the filters of a chain may change the Values. They must not be changed any more after a handler, or a
// goroutine of a filter, has received the context.
type Values struct {
	Info     *Info     // what the request is for; nil: the request has not been resolved
	AuditID  string    // see WithAuditID
	Received time.Time // see WithReceived; zero: not known
	Warnings *Warnings // warnings for the answer; nil: warnings are dropped
	// Annotations are for the audit events of the request; nil: annotations are dropped, since there are no events.
	Annotations *Annotations
	// Authentication is how long it took to authenticate the request; 0: it is not known.
	Authentication time.Duration
	// Recording makes the audit events of the request; nil: there are none.
	Recording *audit.Recording
	// Policy decides about the request. It is taken once for the whole request. nil: each decision uses the current policy.
	Policy *admission.Policy
	// Holder is the user and the address that the request counts for, as far as they are known: see HolderFrom.
	Holder flowcontrol.Holder
	// Hold counts memory for the request: see the function Hold. nil: memory is not counted.
	Hold func(bytes int64) error
}

type valuesKey struct{}

// IsValuesKey reports whether key is the key of the *Values of a context. It is for the method Value of contexts that have
// Values.
func IsValuesKey(key any) bool {
	_, is := key.(valuesKey)
	return is
}

// ValuesFrom returns a copy of the Values of a context, or zero Values if there are none.
func ValuesFrom(ctx context.Context) Values {
	if v := valuesOf(ctx); v != nil {
		return *v
	}
	return Values{}
}

func valuesOf(ctx context.Context) *Values {
	v, _ := ctx.Value(valuesKey{}).(*Values)
	return v
}

// carrier is a context with its own Values.
type carrier struct {
	context.Context
	values Values
}

// Value implements context.Context.
func (c *carrier) Value(key any) any {
	if IsValuesKey(key) {
		return &c.values
	}
	return c.Context.Value(key)
}

// with returns a context with a copy of the Values of ctx, for the caller to change.
func with(ctx context.Context) *carrier { return &carrier{ctx, ValuesFrom(ctx)} }

// WithAuditID returns a context with the audit ID of the request. The ID identifies the request in logs, in audit events and in
// the Audit-Id header of the answer.
func WithAuditID(ctx context.Context, id string) context.Context {
	c := with(ctx)
	c.values.AuditID = id
	return c
}

// AuditIDFrom returns the audit ID of a context, or "".
func AuditIDFrom(ctx context.Context) string {
	if v := valuesOf(ctx); v != nil {
		return v.AuditID
	}
	return ""
}

// WithReceived returns a context with the time when the request was received, from which deadlines count.
func WithReceived(ctx context.Context, at time.Time) context.Context {
	c := with(ctx)
	c.values.Received = at
	return c
}

// ReceivedFrom returns the time when the request of a context was received, and whether it is known.
func ReceivedFrom(ctx context.Context) (time.Time, bool) {
	if v := valuesOf(ctx); v != nil {
		return v.Received, !v.Received.IsZero()
	}
	return time.Time{}, false
}

// WithHolder returns a context with the Holder that the request counts for; see [HolderFrom].
func WithHolder(ctx context.Context, h flowcontrol.Holder) context.Context {
	c := with(ctx)
	c.values.Holder = h
	return c
}

// WithHold returns a context with the function that [Hold] calls.
func WithHold(ctx context.Context, hold func(bytes int64) error) context.Context {
	c := with(ctx)
	c.values.Hold = hold
	return c
}

// Hold counts memory, in bytes, that the request of ctx takes until the request ends: see server.Limits.Bytes. Only the largest
// amount of all calls counts for the request. So if work has several steps, and each step frees the memory of the step before,
// only the largest step counts. The error is a TooManyRequests for the client. Hold does nothing if ctx is not the context of a
// request, or is that of a watch. It must be called in the goroutine of the request.
func Hold(ctx context.Context, bytes int64) error {
	if v := valuesOf(ctx); v != nil && v.Hold != nil {
		return v.Hold(bytes)
	}
	return nil
}

// WithInfo returns a context with info.
func WithInfo(ctx context.Context, info *Info) context.Context {
	c := with(ctx)
	c.values.Info = info
	return c
}

// InfoFrom returns the info of a context, or nil.
func InfoFrom(ctx context.Context) *Info {
	if v := valuesOf(ctx); v != nil {
		return v.Info
	}
	return nil
}

// WithWarnings returns a context whose warnings are added to w.
func WithWarnings(ctx context.Context, w *Warnings) context.Context {
	c := with(ctx)
	c.values.Warnings = w
	return c
}

// WithAnnotations returns a context whose audit annotations are added to a.
func WithAnnotations(ctx context.Context, a *Annotations) context.Context {
	c := with(ctx)
	c.values.Annotations = a
	return c
}

// WithRecording returns a context whose request is recorded by rec.
func WithRecording(ctx context.Context, rec *audit.Recording) context.Context {
	c := with(ctx)
	c.values.Recording = rec
	return c
}

// RecordingFrom returns what makes the audit events of the request of a context, or nil if there are none. The methods of a nil
// Recording do nothing.
func RecordingFrom(ctx context.Context) *audit.Recording {
	if v := valuesOf(ctx); v != nil {
		return v.Recording
	}
	return nil
}

// WarningsFrom returns the Warnings of a context, or nil.
func WarningsFrom(ctx context.Context) *Warnings {
	if v := valuesOf(ctx); v != nil {
		return v.Warnings
	}
	return nil
}

// PolicyFrom returns the policy of the request of a context, or nil.
func PolicyFrom(ctx context.Context) *admission.Policy {
	if v := valuesOf(ctx); v != nil {
		return v.Policy
	}
	return nil
}
