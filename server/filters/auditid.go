package filters

import (
	"net/http"

	"github.com/google/uuid"
	"github.com/keelson-dev/keelson/server/request"
)

// AuditID gives each request an ID, that of its Audit-ID header or a new UUID, puts it in the context, and shows it
// in the Audit-Id header of the answer, so that a client can name the request to whoever reads logs.
func AuditID() Filter {
	return steps(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		id := r.Header.Get("Audit-Id")
		if id == "" {
			id = uuid.NewString()
		}
		w.Header().Set("Audit-Id", id)
		setContext(r, request.WithAuditID(r.Context(), id))
		return true
	})
}
