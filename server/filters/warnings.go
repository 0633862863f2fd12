package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/request"
)

// Warnings makes [request.Warn] work: it collects the texts of a request, and sends them in Warning headers of the answer.
func Warnings() Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		p.values.Warnings = request.NewWarnings(p.w.Header())
		return true
	})
}
