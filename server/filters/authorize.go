package filters

import (
	"fmt"
	"net/http"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
)

// The audit annotations of a decision.
const (
	decisionAnnotation = "authorization.k8s.io/decision"
	reasonAnnotation   = "authorization.k8s.io/reason"
)

// Authorize passes on the requests that a allows, and answers all others with the code 403. The user is that of the context,
// where [Authenticate] has put it. If a returns an error and does not allow the request, the answer is 500. If the context has no
// user, a is called with the zero User. The zero User matches no rule that names users or groups. The decision and its reason are
// annotations of the audit events.
func Authorize(a authz.Authorizer) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		info, ok := p.info()
		if !ok {
			return false
		}
		attributes := Attributes(p.user(), info)
		began := time.Now()
		verdict, reason, err := a.Authorize(p.r.Context(), attributes)
		p.values.Latency.Add(request.Authorization, time.Since(began))
		switch {
		case verdict == authz.Allow:
			request.Annotate(p, decisionAnnotation, "allow")
			request.Annotate(p, reasonAnnotation, reason)
			return true
		case err != nil:
			request.Annotate(p, reasonAnnotation, "internal error")
			response.SetCause(p.w, err)
			internalError(p.w, p.r, authz.Shorten(err.Error()))
		default:
			request.Annotate(p, decisionAnnotation, "forbid")
			request.Annotate(p, reasonAnnotation, reason)
			p.w.Header().Set("X-Content-Type-Options", "nosniff")
			response.Error(p.w, p.r, authz.Forbidden(attributes, reason))
		}
		return false
	})
}

// internalError answers with 500 and a text, as kube-apiserver does for faults of its filters.
func internalError(w http.ResponseWriter, r *http.Request, reason string) {
	http.Error(w, authz.EscapeHTML(fmt.Sprintf("Internal Server Error: %q: %s", excerpt.Of(r.RequestURI, excerpt.Text), reason)), http.StatusInternalServerError)
}

// Attributes returns the attributes, for an authorizer, of the request that info describes and that user makes. A nil user is the
// zero User. Selectors that do not parse, or are too large, are left out, so that they allow nothing.
func Attributes(user *authn.User, info *request.Info) authz.Attributes {
	if user == nil {
		user = &authn.User{}
	}
	a := info.Attributes(user)
	byFields, byLabels := info.Selectors()
	if byFields != nil {
		a.FieldSelector = byFields.Requirements()
	}
	if byLabels != nil {
		a.LabelSelector, _ = byLabels.Requirements()
	}
	return a
}
