package filters

import (
	"context"
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
)

// step is a filter whose function may return before the handler behind it begins. Successive steps run in a loop, and do not call
// each other. Most filters of a watch, which lasts for minutes, are steps, and keep no frames on its stack. If they called each
// other, their frames would be half of the stack, and could double its size, which is rounded up.
type step struct {
	do   stepFunc
	next http.Handler
}

// stepFunc reports whether next is to serve the request. If it returns false, it has answered the request, or has itself called
// next, to do something afterwards.
type stepFunc func(p *passage, next http.Handler) bool

// steps makes a filter of do.
func steps(do stepFunc) Filter {
	return func(next http.Handler) http.Handler { return &step{do, next} }
}

// ServeHTTP implements http.Handler.
func (s *step) ServeHTTP(w http.ResponseWriter, r *http.Request) { begin(w, r).to(s) }

// around is a filter that also does something after the handlers behind it. serve gets the passage of the filters before it, and
// calls the handlers behind it.
type around interface{ serve(p *passage) }

// passage is one request in successive filters of this package, in one goroutine. It is also the context of the request, so that
// all results of the filters are in one place. Filters behind a filter of another package, or behind a [Timeout], have another
// passage.
type passage struct {
	context.Context                     // the context of the request that begin was called with
	w               http.ResponseWriter // for the next filter or handler
	r               *http.Request       // a copy that filters may change, except for what its fields refer to; see letGo
	values          request.Values
	who             *authn.User        // nil: the user was not authenticated in this passage
	authentication  time.Duration      // how long that took
	group           *WaitGroup         // counts the request; nil: no WaitGroup in this passage
	panics          *zap.Logger        // the log of the Recover that began the passage
	share           *flowcontrol.Share // released by the Recover; nil: none
	came            *http.Request      // the request of that Recover, or of the Timeout that began the passage
	answer          recorder           // w refers to it after watch
	until           deadlineContext
	header          *[2]string // values of header fields of the answer; nil: none so far
}

// value returns the values of a header field of the answer, which is v. at is the place of the field in p.header, which is not a part
// of p: net/http keeps the header until the client has received the answer, and must not keep the request with it.
func (p *passage) value(at int, v string) []string {
	if p.header == nil {
		p.header = new([2]string)
	}
	p.header[at] = v
	return p.header[at : at+1 : at+1]
}

// begin begins a passage with a new copy of the request.
func begin(w http.ResponseWriter, r *http.Request) *passage {
	p := new(passage)
	p.begin(w, r)
	return p
}

func (p *passage) begin(w http.ResponseWriter, r *http.Request) {
	p.Context, p.w = r.Context(), w
	p.values = request.ValuesFrom(p.Context)
	p.r = r.WithContext(p)
}

// to calls next, and returns when next has served the request.
func (p *passage) to(next http.Handler) {
	for {
		switch h := next.(type) {
		case *step:
			if !h.do(p, h.next) {
				return
			}
			next = h.next
		case around:
			h.serve(p)
			return
		default:
			h.ServeHTTP(p.w, p.letGo())
			return
		}
	}
}

// letGo returns the request for the handler behind the filters of p. For a long-running request it sets p.r to nil, so that the
// request is not kept in memory as long as a watch lasts.
func (p *passage) letGo() *http.Request {
	r := p.r
	if request.IsLongRunning(p.values.Info) {
		p.r = nil
		if taken := p.values.Policy; taken != nil && p.values.Info.Verb == "watch" {
			// The policy has decided. A watch must not keep its roles in memory, which may be outdated.
			p.values.Policy = &admission.Policy{Installed: taken.Installed}
		}
	}
	return r
}

// Value implements context.Context.
func (p *passage) Value(key any) any {
	switch key.(type) {
	case groupKey:
		if p.group != nil {
			return p.group
		}
	case reportKey:
		if p.panics != nil {
			return p
		}
	default:
		switch {
		case request.IsValuesKey(key):
			return &p.values
		case authn.IsUserKey(key) && p.who != nil:
			return p.who
		}
	}
	return p.Context.Value(key)
}

// user returns the authenticated user, or nil if no user was authenticated.
func (p *passage) user() *authn.User {
	if p.who != nil {
		return p.who
	}
	return authn.UserFrom(p.Context)
}

// setContext sets the context of r. It does what r.WithContext does, without a new request.
func setContext(r *http.Request, ctx context.Context) { *r = *r.WithContext(ctx) }
