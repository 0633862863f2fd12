package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/request"
)

// Warnings shows what is warned of with [request.Warn] in Warning headers of the answer.
func Warnings() Filter {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			warnings := request.NewWarnings(w.Header())
			next.ServeHTTP(w, r.WithContext(request.WithWarnings(r.Context(), warnings)))
		})
	}
}
