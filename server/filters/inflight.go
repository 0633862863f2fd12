package filters

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

// InFlight bounds how many requests are served at the same time, reads and writes apart, and answers those beyond
// with 429 and Retry-After. 0 is 400 reads and 200 writes, a negative number no bound. Members of system:masters
// are never turned away, and long-running requests are not counted.
func InFlight(reads, writes int) Filter { return FlowControl(flowcontrol.NewInFlight(reads, writes)) }

// FlowControl lets requests pass when it is their turn, and answers those that are turned away with 429 and
// Retry-After. Long-running requests pass at once. turns is
// given the attributes of the request without selectors. Each of onReject is called for a request that is turned away.
func FlowControl(turns flowcontrol.Controller, onReject ...func(r *http.Request)) Filter {
	return steps(func(p *passage, next http.Handler) bool {
		info, ok := p.info()
		if !ok {
			return false
		}
		if request.IsLongRunning(info) {
			return true
		}
		release, err := turns.Admit(p.r.Context(), info.Attributes(p.user()))
		if err != nil {
			turnAway(p.w, p.r, err, onReject)
			return false
		}
		defer release()
		p.to(next)
		return false
	})
}

// turnAway answers in plain text, as kube-apiserver does: under load not even a Status is made.
func turnAway(w http.ResponseWriter, r *http.Request, err error, onReject []func(*http.Request)) {
	var rejection *flowcontrol.RejectedError
	if !errors.As(err, &rejection) {
		response.Error(w, r, err)
		return
	}
	callEach(onReject, r)
	w.Header().Set("Retry-After", strconv.Itoa(rejection.Seconds()))
	http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
}
