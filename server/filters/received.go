package filters

import (
	"net/http"
	"time"
)

// ReceivedAt notes in the context when a request came, so that deadlines and durations count from there however
// long the filters between take. A nil now is time.Now.
func ReceivedAt(now func() time.Time) Filter {
	if now == nil {
		now = time.Now
	}
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Received = now()
		return true
	})
}
