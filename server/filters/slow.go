package filters

import (
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// slowLines bounds the lines of Slow in a second.
const slowLines = 10

// Slow writes a line for each request that takes a time of least or more, from the time at which it was received, with the parts in
// which the time went ([request.Latency]). It records these times for all requests except long-running ones
// ([request.IsLongRunning]), about which it writes nothing. It also writes nothing about a panic, which [Recover] logs. The line has
// the method, URI, user agent, audit ID, code and duration. A long text is cut to its first KiB, and the URI has no value of a
// parameter that the API does not have. Slow writes at most 10 lines a second. If log is nil or writes no lines of the
// level Info, or least is 0 or less, it does nothing.
func Slow(log *zap.Logger, least time.Duration) Filter {
	if log == nil || least <= 0 || !log.Core().Enabled(zapcore.InfoLevel) {
		return func(next http.Handler) http.Handler { return next }
	}
	log = log.WithOptions(zap.WrapCore(func(c zapcore.Core) zapcore.Core {
		return zapcore.NewSamplerWithOptions(c, time.Second, slowLines, 0)
	}))
	return steps(func(p *passage, next http.Handler) bool {
		if request.IsLongRunning(p.values.Info) {
			return true
		}
		began := p.values.Received
		if began.IsZero() {
			began = time.Now()
		}
		if p.values.Latency == nil {
			p.values.Latency = new(request.Latency)
		}
		rw, r, latency := p.watch(), p.r, p.values.Latency
		rw.seen().latency = latency
		p.to(next)
		if took := time.Since(began); took >= least {
			slow(log, r, rw.seen().final(r.Context()), took, latency)
		}
		return false
	})
}

// slow writes the line about a request.
func slow(log *zap.Logger, r *http.Request, code int, took time.Duration, latency *request.Latency) {
	fields := []zap.Field{
		zap.String("method", authz.Shorten(r.Method)), zap.String("uri", authz.Shorten(shownURI(r.URL))), zap.Int("code", code), zap.Duration("duration", took),
		zap.String("auditID", request.AuditIDFrom(r.Context())), zap.String("userAgent", authz.Shorten(r.UserAgent())),
	}
	var spent []zap.Field
	for part, d := range latency.All {
		spent = append(spent, zap.Duration(part.String(), d))
	}
	log.Info("a request was slow", append(fields, zap.Dict("spent", spent...))...)
}
