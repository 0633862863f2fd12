package filters

import (
	"net/http"
	"time"
)

// ReceivedAt puts the time at which a request came in the context, so that deadlines and durations count from there, and include
// the time of the filters between. A nil now is time.Now.
func ReceivedAt(now func() time.Time) Filter {
	if now == nil {
		now = time.Now
	}
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Received = now()
		return true
	})
}
