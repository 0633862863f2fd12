package filters

import (
	"context"
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/server/request"
)

// Meter counts requests. All methods may be called concurrently.
type Meter interface {
	// Served is called for a request that reaches its handler, before the handler is called. It returns the Serving whose methods
	// are called at the end of the request, or nil if the request is not counted.
	Served(r *http.Request, info *request.Info) Serving
}

// Serving counts the end of requests. One Serving may be used for many requests of the same kind.
type Serving interface {
	// Answered is called when the handler has returned, with the code of the answer and the number of bytes of the body, as they
	// were sent. A panic before the answer has begun counts as an answer with code 500. ctx is the context of the request.
	Answered(ctx context.Context, code int, size int64)
	// Over is called after Answered. If the handler aborts the connection before the answer has begun, Over is called without
	// Answered.
	Over()
}

// Metrics calls m for the requests that reach the handler behind it. Requests that filters around this filter refuse are not
// counted, and neither are requests without a [request.Info] in their context.
func Metrics(m Meter) Filter {
	return func(next http.Handler) http.Handler { return &metered{m, next} }
}

type metered struct {
	meter Meter
	next  http.Handler
}

// ServeHTTP implements http.Handler.
func (m *metered) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.serve(begin(w, r)) }

func (m *metered) serve(p *passage) {
	info := p.values.Info
	if info == nil {
		p.to(m.next)
		return
	}
	serving := m.meter.Served(p.r, info)
	if serving == nil {
		p.to(m.next)
		return
	}
	rw, ctx, returned := p.watch(), p.r.Context(), false
	defer func() {
		if !returned {
			unfinished(recover(), ctx, rw, serving)
		}
	}()
	p.to(m.next)
	returned = true
	serving.Answered(ctx, rw.seen().final(ctx), rw.seen().size)
	serving.Over()
}

// unfinished counts a request whose handler did not return, and continues the panic that ended it.
func unfinished(panicked any, ctx context.Context, w watched, serving Serving) {
	switch {
	case w.seen().begun():
		serving.Answered(ctx, w.seen().final(ctx), w.seen().size)
	case panicked != nil && !isAbort(panicked):
		serving.Answered(ctx, http.StatusInternalServerError, 0)
	}
	serving.Over()
	if panicked != nil {
		panic(panicked)
	}
}

// final returns the code of the answer of a handler that has returned.
func (r *recorder) final(ctx context.Context) int {
	switch {
	case r.code != 0:
		return r.code
	case r.hijacked:
		return http.StatusSwitchingProtocols
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // Timeout answers
		return http.StatusGatewayTimeout
	}
	return http.StatusOK
}
