package filters

import (
	"net/http"
	"time"
)

// ReceivedAt puts the time at which a request was received in the context. Deadlines and durations count from that time, and so
// include the time that filters take. If now is nil, it is time.Now.
func ReceivedAt(now func() time.Time) Filter {
	if now == nil {
		now = time.Now
	}
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Received = now()
		return true
	})
}
