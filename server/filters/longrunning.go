package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

// LongRunning bounds the long-running requests ([request.IsLongRunning]) that are under way: each takes one of budget while it lasts.
// One beyond the bounds is answered with 429 and Retry-After. It counts for the user who was authenticated, whomever the request
// impersonates, and the address that it comes from ([request.HolderFrom]). Each of onReject is called for a request that is turned
// away. Behind [Authorize] the filter counts only those who may.
func LongRunning(budget *flowcontrol.Budget, onReject ...func(r *http.Request)) Filter {
	return steps(func(p *passage, next http.Handler) bool {
		info, ok := p.info()
		if !ok {
			return false
		}
		if !request.IsLongRunning(info) {
			return true
		}
		share, err := budget.Take(request.HolderFrom(p.r.Context()), 1)
		if err != nil {
			turnAwayLong(p.w, p.r, err)
			callEach(onReject, p.r)
			return false
		}
		if p.panics != nil { // a frame on the stack of each watch is saved
			p.share = &share
			return true
		}
		defer share.Release()
		p.to(next)
		return false
	})
}

// turnAwayLong is a function of its own so that it takes no room on the stack of a watch.
func turnAwayLong(w http.ResponseWriter, r *http.Request, err error) {
	response.Error(w, r, response.Rejected(err))
}
