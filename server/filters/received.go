package filters

import (
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/server/request"
)

// ReceivedAt notes in the context when a request came, so that deadlines and durations count from there however
// long the filters between take. A nil now is time.Now.
func ReceivedAt(now func() time.Time) Filter {
	if now == nil {
		now = time.Now
	}
	return steps(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		setContext(r, request.WithReceived(r.Context(), now()))
		return true
	})
}
