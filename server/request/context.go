package request

import (
	"context"
	"time"
)

type (
	auditIDKey  struct{}
	receivedKey struct{}
)

// WithAuditID returns a context that carries the request's audit ID, which names the request in logs, in audit
// events and in the Audit-Id header of the answer.
func WithAuditID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, auditIDKey{}, id)
}

// AuditIDFrom returns the audit ID of a context, or "".
func AuditIDFrom(ctx context.Context) string {
	id, _ := ctx.Value(auditIDKey{}).(string)
	return id
}

// WithReceived returns a context that carries when the request was received; deadlines count from then.
func WithReceived(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, receivedKey{}, at)
}

// ReceivedFrom returns when the request of a context was received, and whether that is known.
func ReceivedFrom(ctx context.Context) (time.Time, bool) {
	at, ok := ctx.Value(receivedKey{}).(time.Time)
	return at, ok
}
