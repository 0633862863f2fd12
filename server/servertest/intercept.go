package servertest

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
)

// interceptor is between the server and its clients, and between the server and its storage. While there is no fault and no
// recording it costs one atomic load per request. The zero value is ready. All methods may be called concurrently.
type interceptor struct {
	now atomic.Pointer[interception] // nil: nothing to do
	// The next two fields are set before the server serves.
	ended   <-chan struct{} // closed when the server ends; nil means never
	maxBody int64           // maximum size of the recorded body; 0 means 3 MiB, the default limit of a server

	mu sync.Mutex // held while now is replaced
}

// interception is the set of faults and recordings at one moment. It is immutable once it is published.
type interception struct {
	faults     []*injected // in the order of injection
	recordings []*Recording
	mistakes   []error // errors of mistaken calls
}

// change publishes a changed copy of the current interception.
func (i *interceptor) change(f func(*interception)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var next interception
	if now := i.now.Load(); now != nil {
		next = interception{slices.Clone(now.faults), slices.Clone(now.recordings), slices.Clone(now.mistakes)}
	}
	f(&next)
	if len(next.faults)+len(next.recordings)+len(next.mistakes) == 0 {
		i.now.Store(nil)
		return
	}
	i.now.Store(&next)
}

// mistaken records a mistaken call of Inject or Record. From then on every request for a resource is answered with 500 and the
// reason, so that the test fails there. The result of err includes the reason too.
func (i *interceptor) mistaken(what string, err error) {
	const caller = 2 // the caller of Inject or Record
	if _, file, line, ok := runtime.Caller(caller); ok {
		what = fmt.Sprintf("%s at %s:%d", what, filepath.Base(file), line)
	}
	err = fmt.Errorf("%s: %w", what, err)
	i.change(func(now *interception) { now.mistakes = append(now.mistakes, err) })
}

// err returns the errors of mistaken calls, or nil.
func (i *interceptor) err() error {
	if now := i.now.Load(); now != nil {
		return errors.Join(now.mistakes...)
	}
	return nil
}

// filters adds the filters for recordings and faults to the chain of a server.
func (i *interceptor) filters(list []server.NamedFilter) []server.NamedFilter {
	// The filter for recordings comes right after request-info, so that it sees the final code of every answer, also of refusals.
	at := 1 + slices.IndexFunc(list, func(f server.NamedFilter) bool { return f.Name == "request-info" })
	list = slices.Insert(list, at, server.NamedFilter{Name: "record", Filter: i.unless((*interceptor).record)})
	// The filter for faults comes last, in place of the handler: refusals happen as usual, and the metrics count injected
	// answers.
	return append(list, server.NamedFilter{Name: "faults", Filter: i.unless((*interceptor).befall)})
}

// intercepted is the work of a filter on a request for a resource while there are faults or recordings.
type intercepted func(i *interceptor, now *interception, w http.ResponseWriter, r *http.Request, info *request.Info, next http.Handler)

// unless returns a filter that does nothing while there is no fault and no recording. Then it uses little of the stack, which a
// watch holds as long as it lasts.
func (i *interceptor) unless(do intercepted) filters.Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now := i.now.Load()
			if now == nil {
				next.ServeHTTP(w, r)
				return
			}
			info := request.InfoFrom(r.Context())
			if info == nil || !info.ResourceRequest {
				next.ServeHTTP(w, r)
				return
			}
			do(i, now, w, r, info, next)
		})
	}
}
