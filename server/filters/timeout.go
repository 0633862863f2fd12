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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Timeout answers when the deadline of a request's context passes ([Deadline] sets it) before its handler has: with
// 504, or, when the response has begun, by aborting the connection. Where no time is left from the start the handler
// does not begin. Requests without a deadline are none of its business, nor are long-running ones: a watch under a
// deadline that somebody else has set ends by itself, cleanly.
//
// The handler runs in a goroutine of its own. When the deadline passes its context has ended, what it writes is
// refused with http.ErrHandlerTimeout and what it reads of the body fails, so that it should return soon; the filter
// does not wait for it, but a [WaitGroup] around the filter does, and a panic in it is told to the [Recover] around.
// A handler that is just writing an error may finish. A request whose client has gone is not answered, and its handler is waited for.
//
// Each of onTimeout is called for a request that the filter answers or aborts in its handler's place.
func Timeout(onTimeout ...func(r *http.Request)) Filter {
	timers := new(sync.Pool) // of *time.Timer
	return steps(func(p *passage, next http.Handler) bool {
		w, r, ctx := p.w, p.r, p.r.Context()
		at, ok := ctx.Deadline()
		if !ok || request.IsLongRunning(p.values.Info) {
			return true
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) { // spent before the handler could begin
			callEach(onTimeout, r)
			writeTimeout(w, r)
			return false
		}
		run := &handlerRun{done: make(chan struct{}), group: groupOf(ctx)}
		run.writer.init(w)
		run.behind.begin(run.writer.forHandler(), r) // with a request of its own: r is that of this goroutine
		run.behind.came = r
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

// handlerRun is one handler at work in a goroutine of its own.
type handlerRun struct {
	writer deadlineWriter
	behind passage       // through the filters behind this one
	group  *WaitGroup    // waits for a handler that outlives its request; may be nil
	done   chan struct{} // closed when the handler has returned
	// Written before done is closed, read after it.
	returned bool
	panicked *panicError
}

// ends waits for the handler, and reports whether it has returned before a time. It asks the context for nothing: that would
// make a timer of its own.
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
		response.Error(w, r, errTimeout()) // it gave up, which must not look like an empty success
	case h.returned:
		h.writer.flushHeader()
	case h.panicked == nil || isAbort(h.panicked.value): // runtime.Goexit: nobody knows what is missing
		panic(http.ErrAbortHandler)
	default:
		panic(h.panicked)
	}
}

// expire takes the response from the handler and answers in its place. false says that the
// handler has just finished, or is about to.
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

// writeTimeout answers 504.
func writeTimeout(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody {
		// The handler may be reading from a client that sends slowly or not at all. To keep the connection net/http
		// would read the rest itself, behind the handler's back, before it writes the answer; one that is not kept
		// it answers at once, and then ends the handler's read.
		w.Header().Set("Connection", "close")
	}
	response.Error(w, r, errTimeout())
}

func errTimeout() error {
	return apierrors.NewTimeoutError("request did not complete within the allotted timeout", 0)
}
