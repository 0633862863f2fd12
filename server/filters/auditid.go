package filters

import (
	"crypto/rand"
	"net/http"

	"github.com/google/uuid"
)

// AuditID gives each request an ID, that of its Audit-ID header or a new UUID, puts it in the context, and shows it
// in the Audit-Id header of the answer, so that a client can name the request to whoever reads logs.
func AuditID() Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		id := p.r.Header.Get("Audit-Id")
		if id == "" {
			id = newID()
		}
		p.header[0] = id
		p.w.Header()["Audit-Id"] = p.header[0:1:1]
		p.values.AuditID = id
		return true
	})
}

// newID is uuid.NewString, whose bytes need no place on the heap.
func newID() string {
	var id uuid.UUID
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80 // RFC 9562: version 4, variant 10
	return id.String()
}
