package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

// LongRunning bounds the concurrent long-running requests ([request.IsLongRunning]). Each takes 1 of budget until it ends. A
// request above the bounds is answered with 429 and Retry-After, and each of onReject is called for it. A request counts for the
// user who was authenticated, also if it impersonates another user, and for the address that it comes from
// ([request.HolderFrom]). The filter belongs behind [Authorize], so that it counts only authorized requests.
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
		if p.panics != nil { // saves a frame on the stack of each watch
			p.share = &share
			return true
		}
		defer share.Release()
		p.to(next)
		return false
	})
}

// turnAwayLong is a separate function, so that it takes no space on the stack of a watch.
func turnAwayLong(w http.ResponseWriter, r *http.Request, err error) {
	response.Error(w, r, response.Rejected(err))
}
