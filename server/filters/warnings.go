package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/request"
)

// Warnings shows what is warned of with [request.Warn] in Warning headers of the answer.
func Warnings() Filter {
	return steps(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		setContext(r, request.WithWarnings(r.Context(), request.NewWarnings(w.Header())))
		return true
	})
}
