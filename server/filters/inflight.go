package filters

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

// InFlight bounds how many requests are served at the same time, separately for reads and writes. It answers requests above the
// bound with 429 and Retry-After. If reads is 0, it is 400. If writes is 0, it is 200. A negative number is no bound. Members of
// system:masters are never refused, and long-running requests are not counted.
func InFlight(reads, writes int) Filter { return FlowControl(flowcontrol.NewInFlight(reads, writes)) }

// FlowControl calls the Controller turns for each request, and answers a request that turns rejects with 429 and Retry-After. For
// long-running requests turns is not called. The attributes that turns is called with have no selectors. Each of onReject is
// called for a rejected request.
func FlowControl(turns flowcontrol.Controller, onReject ...func(r *http.Request)) Filter {
	return steps(func(p *passage, next http.Handler) bool {
		info, ok := p.info()
		if !ok {
			return false
		}
		if request.IsLongRunning(info) {
			return true
		}
		rec := p.values.Recording
		from := rec.Now()
		release, err := turns.Admit(p.r.Context(), info.Attributes(p.user()))
		if waited := time.Since(from); !from.IsZero() && waited >= time.Millisecond {
			rec.Took(audit.Queueing, waited)
		}
		if err != nil {
			turnAway(p.w, p.r, err, onReject)
			return false
		}
		defer release()
		p.to(next)
		return false
	})
}

// turnAway answers in plain text, as kube-apiserver does: under load it avoids the cost of a Status.
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
