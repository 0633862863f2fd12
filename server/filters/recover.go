package filters

import (
	"errors"
	"fmt"
	"log"
	"net/http"
	"runtime/debug"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"go.uber.org/zap"
)

// Recover recovers from a panic of a handler, so that only this request fails. The answer is 500 with a text. If the response has
// begun, the connection is aborted. Recover writes one line with the stack to log; the URI in it has no
// value of a parameter that the API does not have. A panic with http.ErrAbortHandler is passed
// on, since the handler wants to abort the connection; each of aborted is called for such a request. Panics of handlers that
// outlive a [Timeout] behind this filter are logged, too. A nil log logs nothing.
func Recover(log *zap.Logger, aborted ...func(r *http.Request)) Filter {
	if log == nil {
		log = zap.NewNop()
	}
	return func(next http.Handler) http.Handler { return &recovered{log, aborted, next} }
}

type recovered struct {
	log     *zap.Logger
	aborted []func(r *http.Request)
	next    http.Handler
}

// ServeHTTP implements http.Handler.
func (f *recovered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := begin(w, r)
	p.panics, p.came = f.log, r
	rw := p.watch()
	defer func() {
		if p.share != nil {
			p.share.Release()
		}
		if value := recover(); value != nil {
			f.panicked(value, p, rw)
		}
	}()
	p.to(f.next)
}

// panicked handles the panic that has ended a request.
func (f *recovered) panicked(value any, p *passage, rw watched) {
	if isAbort(value) {
		for _, tell := range f.aborted {
			tell(p.request())
		}
		panic(http.ErrAbortHandler)
	}
	if e, ok := value.(*panicError); ok {
		p.report(e.value, e.stack)
	} else {
		p.report(value, debug.Stack())
	}
	if rw.seen().begun() {
		panic(http.ErrAbortHandler)
	}
	http.Error(rw, "This request caused apiserver to panic. Look in the logs for details.", http.StatusInternalServerError)
}

// report logs a panic to the log of the Recover that began p.
func (p *passage) report(value any, stack []byte) {
	p.panics.Error("a handler panicked", zap.String("panic", excerpt.Of(fmt.Sprint(value), excerpt.Text)), zap.String("method", authz.Shorten(p.came.Method)),
		zap.String("uri", authz.Shorten(shownURI(p.came.URL))), zap.ByteString("stack", stack))
}

// request returns the request of a passage that a Recover or a Timeout has begun.
func (p *passage) request() *http.Request {
	if p.r == nil {
		return p.came.WithContext(p)
	}
	return p.r
}

// isAbort reports whether a handler has panicked to abort the connection.
func isAbort(value any) bool {
	err, ok := value.(error)
	return ok && errors.Is(err, http.ErrAbortHandler)
}

// reportKey is the key of the passage that a Recover has begun, in its context.
type reportKey struct{}

// reportPanic logs a panic of a goroutine whose request has ended. It uses the log of Recover, or else the log in which net/http
// would have written it.
func reportPanic(r *http.Request, p *panicError) {
	if began, ok := r.Context().Value(reportKey{}).(*passage); ok {
		began.report(p.value, p.stack)
		return
	}
	printf := log.Printf
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.ErrorLog != nil {
		printf = srv.ErrorLog.Printf
	}
	printf("http: panic serving %v after its deadline: %v", r.RemoteAddr, p)
}

// panicError is a panic that is passed from the goroutine of a handler to that of the request.
type panicError struct {
	value any
	stack []byte
}

// Error implements error, for a filter of the program that recovers the panic.
func (p *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }
