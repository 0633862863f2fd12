package filters

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// AuthenticateOptions are options of Authenticate. The zero value is usable.
type AuthenticateOptions struct {
	// Audiences are the audiences that the server identifies as: see authn.WithAudiences. A credential that is valid only for
	// other audiences is refused. If Audiences is empty, the audiences of credentials are not checked. The slice must not be
	// changed afterwards.
	Audiences []string
	// Strip returns the headers of an authenticated request without its credentials. nil is authn.StripCredentials; for an authn.Live
	// it is the method Strip of what its Now returns.
	Strip func(r *http.Request) http.Header
	// Failed is called for each request that is answered with 401, with the reason, which the client does not get. A nil error
	// means that no authenticator has recognized a credential in the request. A nil Failed does nothing.
	Failed func(r *http.Request, err error)
	// Answered is called for each request that is answered with 401, with the error that is the answer, such as
	// [Auditor.Answered]. A nil Answered does nothing.
	Answered func(r *http.Request, answer error)
}

// Authenticate authenticates a request and puts the user in the context. It answers with 401, without the reason, if a returns an
// error or nil, or a user without a name. Warnings of the [authn.Response] are sent to the client, and its audit annotations are
// recorded ([request.Annotate]). Filters and handlers behind Authenticate see a request without credentials: see
// AuthenticateOptions.Strip. They see no trailers, which could have the names of such headers. From then on bounds count the request
// for the user ([request.HolderFrom]).
//
// On HTTP/2, an answer with 401, and any answer to system:anonymous, ends the connection. A client that opens streams only to
// cancel them then needs a new connection each time (CVE-2023-44487).
func Authenticate(a authn.Authenticator, o AuthenticateOptions) Filter {
	if o.Strip == nil {
		o.Strip = func(r *http.Request) http.Header { return authn.StripCredentials(r.Header) }
	}
	return steps(func(p *passage, _ http.Handler) bool {
		r := p.r
		if len(o.Audiences) > 0 {
			r = r.WithContext(authn.WithAudiences(r.Context(), o.Audiences))
		}
		began := time.Now()
		resp, err := a.Authenticate(r)
		p.authentication = time.Since(began)
		p.values.Latency.Add(request.Authentication, p.authentication)
		if err == nil && resp != nil && !meantFor(resp.Audiences, o.Audiences) {
			resp, err = nil, fmt.Errorf("the credential is valid for the audiences %q, and the server identifies as %q", resp.Audiences, o.Audiences)
		}
		if err == nil && resp != nil && resp.User.Name == "" {
			resp, err = nil, errors.New("an authenticator returned a user without a name")
		}
		known := err == nil && resp != nil
		if p.r.ProtoMajor == 2 && (!known || resp.User.Name == authn.AnonymousUser) {
			p.w.Header().Set("Connection", "close")
		}
		if !known {
			if o.Failed != nil {
				o.Failed(p.r, err)
			}
			unauthorized := apierrors.NewUnauthorized("Unauthorized")
			if o.Answered != nil {
				o.Answered(p.r, unauthorized)
			}
			response.Error(p.w, p.r, unauthorized)
			return false
		}
		if resp.User.Name != authn.AnonymousUser {
			transport.ConnOf(p.r.Context()).Know()
		}
		p.who, p.values.Holder.User = &resp.User, resp.User.Name
		for _, text := range resp.Warnings {
			request.Warn(p, text)
		}
		if len(resp.AuditAnnotations) > 0 && p.values.Annotations == nil {
			p.values.Annotations = new(request.Annotations) // for Audit, behind this filter
		}
		for key, value := range resp.AuditAnnotations {
			request.Annotate(p, key, value)
		}
		p.r.Header, p.r.Trailer = o.Strip(p.r), nil
		return true
	})
}

// meantFor reports whether a credential for the audiences of is valid for a server that identifies as own. If either is empty, it
// is.
func meantFor(of, own []string) bool {
	return len(of) == 0 || len(own) == 0 || slices.ContainsFunc(of, func(a string) bool { return slices.Contains(own, a) })
}
