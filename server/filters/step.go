package filters

import (
	"context"
	"net/http"

	"github.com/keelson-dev/keelson/admission"
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/request"
	"go.uber.org/zap"
)

// step is a filter that may be done with a request before the handler behind it begins. Such filters, one behind the
// other, run in a loop and not inside each other: a watch, which waits for minutes behind most of them, keeps none of
// their frames on its stack. Inside each other they would be half of it, and double what it is rounded up to.
type step struct {
	do   stepFunc
	next http.Handler
}

// stepFunc reports whether next is to serve the request; if not it has answered, or has let p go on to next itself to do
// something after it.
type stepFunc func(p *passage, next http.Handler) bool

// steps makes a filter of do.
func steps(do stepFunc) Filter {
	return func(next http.Handler) http.Handler { return &step{do, next} }
}

// ServeHTTP implements http.Handler.
func (s *step) ServeHTTP(w http.ResponseWriter, r *http.Request) { begin(w, r).to(s) }

// around is a filter that does something after the handlers behind it too, with the passage of the filters before it: serve goes
// on to them itself.
type around interface{ serve(p *passage) }

// passage is one request on its way through filters of this package that stand behind each other, in one goroutine. It is the
// context of the request too, so that what they find out takes one place and not one for each. What filters beyond one of
// somebody else, or beyond a [Timeout], find out has another.
type passage struct {
	context.Context                     // what the request came with
	w               http.ResponseWriter // for who comes next
	r               *http.Request       // the filters' own: they may change its fields, but not what these refer to; see letGo
	values          request.Values
	who             *authn.User        // nil: nobody has been authenticated here
	group           *WaitGroup         // that counts the request; nil: none here
	panics          *zap.Logger        // of a Recover that has begun the passage
	share           *flowcontrol.Share // that the Recover gives back; nil: none
	came            *http.Request      // what that was given; also of a Timeout's handlerRun
	answer          recorder           // what w is once it is watched
	until           deadlineContext
	header          [2]string // values of the header
}

// begin begins a passage with a request of its own.
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

// to goes on to next, and returns when that has served the request.
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

// letGo returns the request for who is behind the filters of p. A watch, which needs none once it is under way, must not keep it
// for as long as it lasts: p.r is nil then.
func (p *passage) letGo() *http.Request {
	r := p.r
	if request.IsLongRunning(p.values.Info) {
		p.r = nil
		if taken := p.values.Policy; taken != nil && p.values.Info.Verb == "watch" {
			// It has decided; a watch must not keep the roles of an hour ago in memory.
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

// user is who asks, nil when nobody was authenticated.
func (p *passage) user() *authn.User {
	if p.who != nil {
		return p.who
	}
	return authn.UserFrom(p.Context)
}

// setContext is r.WithContext without a new request.
func setContext(r *http.Request, ctx context.Context) { *r = *r.WithContext(ctx) }
