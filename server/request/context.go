package request

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/flowcontrol"
)

// Values are what the context of a request carries of it, as far as it is known. A context that has its own returns a
// pointer to them for the keys that IsValuesKey reports, and nothing of them changes any more once others than the filters
// of a chain have the context.
type Values struct {
	Info     *Info     // what it wants; nil: nobody has looked
	AuditID  string    // see WithAuditID
	Received time.Time // see WithReceived; zero: not known
	Warnings *Warnings // of its answer; nil: they are dropped
	// Annotations are those of its audit event; nil: they are dropped, as in a server, which makes no audit events yet.
	Annotations *Annotations
	// Policy is what decides about the request, taken once for all of it; nil: each decision takes its own.
	Policy *admission.Policy
	// Holder is for whom what the request takes counts, as far as that is known: see HolderFrom.
	Holder flowcontrol.Holder
}

type valuesKey struct{}

// IsValuesKey reports whether key asks a context for its *Values. It is for the method Value of contexts that have them.
func IsValuesKey(key any) bool {
	_, is := key.(valuesKey)
	return is
}

// ValuesFrom returns a copy of the Values of a context, zero when there are none.
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

// carrier is a context with Values of its own.
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

// with returns a context whose Values are those of ctx, to be completed.
func with(ctx context.Context) *carrier { return &carrier{ctx, ValuesFrom(ctx)} }

// WithAuditID returns a context that carries the request's audit ID, which names the request in logs, in audit
// events and in the Audit-Id header of the answer.
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

// WithReceived returns a context that carries when the request was received; deadlines count from then.
func WithReceived(ctx context.Context, at time.Time) context.Context {
	c := with(ctx)
	c.values.Received = at
	return c
}

// ReceivedFrom returns when the request of a context was received, and whether that is known.
func ReceivedFrom(ctx context.Context) (time.Time, bool) {
	if v := valuesOf(ctx); v != nil {
		return v.Received, !v.Received.IsZero()
	}
	return time.Time{}, false
}

// WithHolder returns a context that says for whom what the request takes counts; see [HolderFrom].
func WithHolder(ctx context.Context, h flowcontrol.Holder) context.Context {
	c := with(ctx)
	c.values.Holder = h
	return c
}

// WithInfo returns a context that carries info.
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

// WithWarnings returns a context whose warnings go to w.
func WithWarnings(ctx context.Context, w *Warnings) context.Context {
	c := with(ctx)
	c.values.Warnings = w
	return c
}

// WithAnnotations returns a context whose audit annotations go to a.
func WithAnnotations(ctx context.Context, a *Annotations) context.Context {
	c := with(ctx)
	c.values.Annotations = a
	return c
}

// WarningsFrom returns the recorder of a context, or nil.
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
