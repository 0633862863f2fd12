package filters

import (
	"errors"
	"net/http"

	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/impersonation"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Impersonate makes a request that has impersonation headers one of the user whom they name, if a allows it by the rules of package
// impersonation. The answer is 403 if a does not, and 500 if a fails and no mode allows it. The filters and handlers behind
// Impersonate see the other user, and a request without these headers. The audit events have both users. Bounds still count the
// request for the user who made it ([request.HolderFrom]). The filter belongs directly behind [Authenticate] and [Audit].
//
// The answer is 400 if the headers name no user. Unlike that of kube-apiserver, its message does not have the headers in it. It is
// also 400 if there are more than 1,000 groups and values of extra attributes, since each is authorized on its own; kube-apiserver has
// no such limit.
func Impersonate(a authz.Authorizer) Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		wanted, err := impersonated(p.r.Header)
		if err != nil {
			response.Error(p.w, p.r, err)
			return false
		}
		p.r.Header = withoutImpersonation(p.r.Header)
		if wanted == nil {
			return true
		}
		info, ok := p.info()
		if !ok {
			return false
		}
		granted, err := impersonation.Check(p.r.Context(), a, Attributes(p.user(), info), *wanted)
		if refused := apierrors.APIStatus(nil); errors.As(err, &refused) {
			p.w.Header().Set("X-Content-Type-Options", "nosniff")
			response.Error(p.w, p.r, err)
			return false
		}
		if err != nil {
			response.SetCause(p.w, err)
			internalError(p.w, p.r, authz.Shorten(err.Error()))
			return false
		}
		p.values.Recording.Impersonated(&granted.User, granted.Constraint)
		p.who = &granted.User
		return true
	})
}
