package filters

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

// Timeout answers a request whose handler has not returned when the deadline of its context passes ([Deadline] sets it). The
// answer is 504. If the response has begun, the connection is aborted. If no time is left at the start, the handler is not
// called. Requests without a deadline and long-running requests pass unchanged: a watch with a deadline that another handler has
// set ends cleanly by itself.
//
// The handler runs in a goroutine of its own. After the deadline the context of the handler has ended, its writes return
// http.ErrHandlerTimeout, and its reads of the body fail, so that it should return soon. The filter does not wait for the
// handler, but a [WaitGroup] around the filter does. A panic of the handler is logged by the [Recover] around the filter. A
// handler that is writing an error at that time may finish. If the client has closed the connection, the request is not answered,
// and the filter waits for the handler.
//
// Each of onTimeout is called for a request that the filter answers or aborts.
func Timeout(onTimeout ...func(r *http.Request)) Filter {
	timers := new(sync.Pool) // *time.Timer values
	return steps(func(p *passage, next http.Handler) bool {
		w, r, ctx := p.w, p.r, p.r.Context()
		at, ok := ctx.Deadline()
		if !ok || request.IsLongRunning(p.values.Info) {
			return true
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // no time is left for the handler
			callEach(onTimeout, r)
			writeTimeout(w, r)
			return false
		}
		run := &handlerRun{done: make(chan struct{}), group: groupOf(ctx)}
		run.writer.init(w)
		run.behind.begin(run.writer.forHandler(), r) // with a copy of the request: r belongs to this goroutine
		run.behind.came = r
		if outer, ok := w.(watched); ok && outer.seen().latency != nil { // the handler's writes are measured also after the deadline
			run.behind.watch().seen().latency, outer.seen().latency = outer.seen().latency, nil
		}
		go run.serve(next)
		if !run.ends(timers, at) {
			select {
			case <-run.done:
			case <-ctx.Done():
				if errors.Is(ctx.Err(), context.DeadlineExceeded) && run.expire(w, r, onTimeout) {
					return false
				}
				<-run.done
			}
		}
		run.conclude(w, r)
		return false
	})
}

// handlerRun is one handler that runs in a goroutine of its own.
type handlerRun struct {
	writer deadlineWriter
	behind passage       // the passage in the filters behind this one
	group  *WaitGroup    // waits for a handler that outlives its request; may be nil
	done   chan struct{} // closed when the handler has returned
	// Written before done is closed, read after it.
	returned bool
	panicked *panicError
}

// ends waits for the handler, and reports whether it has returned before the time at. It does not use the context, since that
// would make another timer.
func (h *handlerRun) ends(timers *sync.Pool, at time.Time) bool {
	timer, ok := timers.Get().(*time.Timer)
	if ok {
		timer.Reset(time.Until(at))
	} else {
		timer = time.NewTimer(time.Until(at))
	}
	defer func() {
		timer.Stop()
		timers.Put(timer)
	}()
	select {
	case <-h.done:
		return true
	case <-timer.C:
		return false
	}
}

// serve runs the handler. It never panics.
func (h *handlerRun) serve(next http.Handler) {
	defer func() {
		if value := recover(); value != nil {
			h.panicked = &panicError{value: value, stack: debug.Stack()}
		}
		if h.writer.finish() {
			if h.panicked != nil && !isAbort(h.panicked.value) {
				reportPanic(h.behind.request(), h.panicked)
			}
			h.group.leave()
		}
		close(h.done)
	}()
	h.behind.to(next)
	h.returned = true
}

// conclude ends a request whose handler has finished in time.
func (h *handlerRun) conclude(w http.ResponseWriter, r *http.Request) {
	switch {
	case h.returned && h.writer.silent() && errors.Is(r.Context().Err(), context.DeadlineExceeded):
		response.Error(w, r, response.TimedOut()) // the handler gave up, which must not look like an empty success
	case h.returned:
		h.writer.flushHeader()
	case h.panicked == nil || isAbort(h.panicked.value): // runtime.Goexit: an unknown part of the answer is missing
		panic(http.ErrAbortHandler)
	default:
		panic(h.panicked)
	}
}

// expire takes the response away from the handler and answers in its place. It returns false if the handler has just returned, or
// is about to.
func (h *handlerRun) expire(w http.ResponseWriter, r *http.Request, onTimeout []func(*http.Request)) bool {
	begun, ok := h.writer.expire(h.group.hold)
	if !ok {
		return false
	}
	callEach(onTimeout, r)
	if begun {
		panic(http.ErrAbortHandler)
	}
	writeTimeout(w, r)
	return true
}

func callEach(fs []func(*http.Request), r *http.Request) {
	for _, f := range fs {
		f(r)
	}
}

// writeTimeout answers with 504.
func writeTimeout(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody {
		// The handler may be reading from a client that sends slowly or not at all. To keep the connection, net/http would read
		// the rest of the body before it writes the answer. For a connection that it does not keep, it writes the answer at once,
		// and then ends the handler's read.
		w.Header().Set("Connection", "close")
	}
	response.Error(w, r, response.TimedOut())
}
