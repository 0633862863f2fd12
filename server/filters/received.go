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
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(request.WithReceived(r.Context(), now())))
		})
	}
}
