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

// interceptor stands between the server and its clients, and between the server and its storage. While nothing is
// injected or recorded it costs an atomic load each time. Its zero value is ready. All methods may be called concurrently.
type interceptor struct {
	now atomic.Pointer[interception] // nil: nothing to do
	// Set before the server serves.
	ended   <-chan struct{} // closed when the server ends; nil: never
	maxBody int64           // bounds what is kept of a body; 0 is 3 MiB, what a server takes without an option

	mu sync.Mutex // held while now is replaced
}

// interception is what is injected and recorded at one moment. It is not changed once it is published.
type interception struct {
	faults     []*injected // in the order in which they were injected
	recordings []*Recording
	mistakes   []error // what was asked for and makes no sense
}

// change publishes what f makes of what is injected and recorded.
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

// mistaken tells of an Inject or a Record that makes no sense: from now on every request for a resource is answered with
// 500 and the reason, so that the test stops there, and not where it misses the fault. err has it too.
func (i *interceptor) mistaken(what string, err error) {
	const caller = 2 // of Inject or Record
	if _, file, line, ok := runtime.Caller(caller); ok {
		what = fmt.Sprintf("%s at %s:%d", what, filepath.Base(file), line)
	}
	err = fmt.Errorf("%s: %w", what, err)
	i.change(func(now *interception) { now.mistakes = append(now.mistakes, err) })
}

// err is what was asked for and makes no sense; nil: nothing.
func (i *interceptor) err() error {
	if now := i.now.Load(); now != nil {
		return errors.Join(now.mistakes...)
	}
	return nil
}

// filters adds those of recordings and faults to the chain of a server.
func (i *interceptor) filters(list []server.NamedFilter) []server.NamedFilter {
	// As soon as it is known what is wanted, so that the final code of every answer is seen, of refusals too.
	at := 1 + slices.IndexFunc(list, func(f server.NamedFilter) bool { return f.Name == "request-info" })
	list = slices.Insert(list, at, server.NamedFilter{Name: "record", Filter: i.unless((*interceptor).record)})
	// In the handler's place: who may not make a request is refused as ever, and the metrics count what is injected.
	return append(list, server.NamedFilter{Name: "faults", Filter: i.unless((*interceptor).befall)})
}

// intercepted is what a filter does with a request for a resource when something is injected or recorded.
type intercepted func(i *interceptor, now *interception, w http.ResponseWriter, r *http.Request, info *request.Info, next http.Handler)

// unless makes a filter that does nothing while nothing is injected or recorded: then it keeps next to nothing on the
// stack, on which a watch lies for as long as it lasts.
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
