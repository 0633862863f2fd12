package filters

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// defaultDeadline is the longest time of a request by default.
const defaultDeadline = 60 * time.Second

// Deadline gives the context of each request a deadline: the time longest after the request was received, or the timeout of its
// query (?timeout=10s) after that, if the timeout is shorter. If longest is 0, it is 60 s. A timeout of zero or less has no
// effect. If the timeout is not a duration, the answer is 400 (Bad Request). Long-running requests ([request.IsLongRunning]) have
// no deadline. The filter does not answer when the deadline passes: [Timeout] does. Each of answered is called for a request that
// is answered with 400, with the error that is the answer.
func Deadline(longest time.Duration, answered ...func(r *http.Request, answer error)) Filter {
	if longest <= 0 {
		longest = defaultDeadline
	}
	return steps(func(p *passage, next http.Handler) bool {
		info, ok := p.info()
		if !ok {
			return false
		}
		if request.IsLongRunning(info) {
			return true
		}
		timeout, err := requestedTimeout(p.r, longest)
		if err != nil {
			for _, f := range answered {
				f(p.r, err)
			}
			response.Error(p.w, p.r, err)
			return false
		}
		from := p.values.Received
		if from.IsZero() {
			from = time.Now()
		}
		ctx := p.ends(from.Add(timeout))
		defer ctx.end()
		setContext(p.r, ctx)
		p.to(next)
		return false
	})
}

// requestedTimeout returns the timeout of the query, but at most longest.
func requestedTimeout(r *http.Request, longest time.Duration) (time.Duration, error) {
	if !strings.Contains(r.URL.RawQuery, "timeout") { // avoids parsing; no client encodes "timeout"
		return longest, nil
	}
	value := r.URL.Query().Get("timeout")
	if value == "" {
		return longest, nil
	}
	timeout, err := time.ParseDuration(value)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("invalid timeout specified in the request URL - %v", err))
	}
	if timeout <= 0 {
		return longest, nil
	}
	return min(timeout, longest), nil
}
