package filters

import (
	"net/http"

	"github.com/keelson-dev/keelson/authn"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Authenticate finds out who asks and puts the user in the context. A request that a fails for, or has no opinion of,
// is answered with 401; it is not told why. Behind the filter the request has no credentials any more
// ([authn.StripCredentials]). On HTTP/2, an answer to somebody unknown or anonymous ends the connection, so that who
// opens streams only to cancel them pays for a connection each time (CVE-2023-44487).
func Authenticate(a authn.Authenticator) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		resp, err := a.Authenticate(p.r)
		known := err == nil && resp != nil
		if p.r.ProtoMajor == 2 && (!known || resp.User.Name == authn.AnonymousUser) {
			p.w.Header().Set("Connection", "close")
		}
		if !known {
			WriteStatus(p.w, p.r, apierrors.NewUnauthorized("Unauthorized"))
			return false
		}
		p.who = &resp.User
		p.r.Header = authn.StripCredentials(p.r.Header)
		return true
	})
}
