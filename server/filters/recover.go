package filters

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"runtime/debug"

	"go.uber.org/zap"
)

// Recover turns a panic into one failed request: the answer is 500 with a text, or, when the response has begun, an
// aborted connection, and log gets one line with the stack. http.ErrAbortHandler passes on, as a handler's wish to
// abort the connection. It also hears of panics in handlers that outlived a [Timeout] behind it. A nil log is silent.
// Each of aborted is called for a request whose handler wishes that.
func Recover(log *zap.Logger, aborted ...func(r *http.Request)) Filter {
	if log == nil {
		log = zap.NewNop()
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			rw := watch(w)
			report := func(value any, stack []byte) {
				log.Error("a handler panicked", zap.String("panic", fmt.Sprint(value)), zap.String("method", r.Method),
					zap.String("uri", r.URL.RequestURI()), zap.ByteString("stack", stack))
			}
			defer func() {
				value := recover()
				if value == nil {
					return
				}
				if isAbort(value) {
					for _, tell := range aborted {
						tell(r)
					}
					panic(http.ErrAbortHandler)
				}
				if p, ok := value.(*panicError); ok {
					report(p.value, p.stack)
				} else {
					report(value, debug.Stack())
				}
				if rw.seen().begun() {
					panic(http.ErrAbortHandler)
				}
				http.Error(rw, "This request caused apiserver to panic. Look in the logs for details.", http.StatusInternalServerError)
			}()
			next.ServeHTTP(rw, r.WithContext(context.WithValue(r.Context(), reportKey{}, report)))
		})
	}
}

// isAbort reports whether a panic is a handler's wish to abort the connection.
func isAbort(value any) bool {
	err, ok := value.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

type reportKey struct{}

// reportPanic tells of a panic that can reach nobody up the stack: Recover's log, or else where net/http would have
// written it.
func reportPanic(r *http.Request, p *panicError) {
	if report, ok := r.Context().Value(reportKey{}).(func(any, []byte)); ok {
		report(p.value, p.stack)
		return
	}
	printf := log.Printf
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.ErrorLog != nil {
		printf = srv.ErrorLog.Printf
	}
	printf("http: panic serving %v after its deadline: %v", r.RemoteAddr, p)
}

// panicError is a panic on its way from the goroutine of a handler to that of the request.
type panicError struct {
	value any
	stack []byte
}

// Error implements error, for whoever recovers it.
func (p *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }
