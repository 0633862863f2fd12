package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// unauthenticated logs why a request is answered with 401.
func (s *Server) unauthenticated(r *http.Request, err error) {
	if err != nil {
		s.logFew(&s.refusals, zap.InfoLevel, "unable to authenticate the request", err, auditID(r.Context()))
	}
}

// untracked logs why a change was made without bringing metadata.managedFields up to date.
func (s *Server) untracked(ctx context.Context, err error) {
	s.logFew(&s.losses, zap.InfoLevel, "metadata.managedFields could not be brought up to date", err, auditID(ctx))
}

// unrecorded logs that an audit backend has not recorded an event.
func (s *Server) unrecorded(backend string, err error) {
	s.logFew(&s.gaps, zap.ErrorLevel, "an audit event was not recorded", err, zap.String("backend", backend))
}

func auditID(ctx context.Context) zap.Field { return zap.String("audit-id", request.AuditIDFrom(ctx)) }

// logFew logs an error, and what it is about. Of many errors it logs a few each second, with the number of those that were not
// logged.
func (s *Server) logFew(few *lineLimit, level zapcore.Level, what string, err error, about zap.Field) {
	dropped, ok := few.take(time.Now())
	if !ok {
		return
	}
	fields := []zap.Field{about, zap.String("error", authz.Shorten(err.Error()))}
	if dropped > 0 {
		fields = append(fields, zap.Int64("dropped", dropped))
	}
	s.opts.Observe.Logger.Log(level, what, fields...)
}

// maxLines is the number of lines that a lineLimit allows each second.
const maxLines = 10

// lineLimit bounds how many lines clients can make the server log. The zero lineLimit is ready to use.
type lineLimit struct {
	mu      sync.Mutex // guards all below
	since   time.Time  // start of the current second
	lines   int        // lines in the current second
	dropped int64      // lines not allowed since the last one that was
}

// take reports whether a line may be logged now. dropped is the number of lines that were not allowed since the last one that
// was.
func (l *lineLimit) take(now time.Time) (dropped int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.since) >= time.Second {
		l.since, l.lines = now, 0
	}
	if l.lines == maxLines {
		l.dropped++
		return 0, false
	}
	l.lines++
	dropped, l.dropped = l.dropped, 0
	return dropped, true
}

// repeated bounds the log lines about a state that lasts: a reason for it is logged when it is another one than before, and again each
// minute. The zero repeated is ready to use, by one goroutine at a time.
type repeated struct {
	reason string
	logged time.Time
}

// take reports whether a line with the reason is to be logged now.
func (r *repeated) take(now time.Time, reason string) bool {
	if reason == r.reason && now.Sub(r.logged) < time.Minute {
		return false
	}
	r.reason, r.logged = reason, now
	return true
}

// watchSink counts and logs the events that the sink of a backend loses later, if the sink tells: see audit.Batch.OnFailure.
func (s *Server) watchSink(b audit.Backend) {
	if sink, ok := b.Sink.(interface{ OnFailure(func(error, int)) }); ok {
		sink.OnFailure(func(err error, events int) {
			s.metrics.NotRecorded(b.Name, events)
			s.unrecorded(b.Name, err)
		})
	}
}

// notRecorded counts and logs that a backend has not recorded an audit event.
func (s *Server) notRecorded(backend string, err error) {
	s.metrics.NotRecorded(backend, 1)
	s.unrecorded(backend, err)
}
