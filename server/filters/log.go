package filters

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
)

// Log writes a line for each answer with a code of 500 or more, and none for all others, nor for one that nobody
// waits for because the client has gone; panics are [Recover]'s. The line has method, URI, code, duration, audit ID
// and user agent. A nil log is silent.
func Log(log *zap.Logger) Filter {
	if log == nil {
		return func(next http.Handler) http.Handler { return next }
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rw := watch(w)
			start := time.Now()
			next.ServeHTTP(rw, r)
			if code := rw.seen().code; code >= 500 && !errors.Is(r.Context().Err(), context.Canceled) {
				log.Error("a request failed", zap.String("method", r.Method), zap.String("uri", r.URL.RequestURI()), zap.Int("code", code),
					zap.Duration("duration", time.Since(start)), zap.String("auditID", request.AuditIDFrom(r.Context())),
					zap.String("userAgent", r.UserAgent()))
			}
		})
	}
}
