package filters

import (
	"crypto/rand"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxAuditID bounds the ID that a client gives its request, in bytes. kube-apiserver has no bound, and logs the first 64 bytes.
const maxAuditID = 256

// AuditID gives each request an ID: that of its Audit-ID header, or a new UUID. It puts the ID in the context and in the Audit-Id
// header of the answer, so that the lines of a log about a request can be found by the ID that the client has. A request whose
// own ID is longer than 256 bytes is answered with 400, since every line about the request in logs and audit would have the ID.
func AuditID() Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		given := p.r.Header.Get("Audit-Id")
		id := given
		if given == "" || len(given) > maxAuditID {
			id = newID()
		}
		p.w.Header()["Audit-Id"] = p.value(0, id)
		p.values.AuditID = id
		if len(given) > maxAuditID {
			response.Error(p.w, p.r, apierrors.NewBadRequest(fmt.Sprintf("the Audit-ID header has %d bytes: it may have at most %d", len(given), maxAuditID)))
			return false
		}
		return true
	})
}

// newID returns what uuid.NewString returns, without an allocation for the bytes.
func newID() string {
	var id uuid.UUID
	_, _ = rand.Read(id[:]) // never fails
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80 // RFC 9562: version 4, variant 10
	return id.String()
}
