package filters

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/keelson-dev/keelson/runtime/excerpt"
	"github.com/keelson-dev/keelson/server/response"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RefuseImpersonation refuses requests that impersonate another user, by the header Impersonate-User and others of
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation. The answer is 403, as to a user who
// may not impersonate, or 400 if the headers name no user. Without this filter the server would ignore the headers, and answer
// with the permissions of the user who sent the request. The filter belongs behind [Authenticate].
func RefuseImpersonation() Filter {
	return steps(func(p *passage, _ http.Handler) bool {
		as, asked := "", false
		for name, values := range p.r.Header {
			switch {
			case name == "Impersonate-User" && len(values) > 0 && values[0] != "":
				as, asked = excerpt.Of(values[0], excerpt.Name), true
			case name == "Impersonate-User", name == "Impersonate-Uid", name == "Impersonate-Group", strings.HasPrefix(name, "Impersonate-Extra-"):
				asked = true
			}
		}
		switch {
		case !asked:
			return true
		case as == "":
			response.Error(p.w, p.r, apierrors.NewBadRequest("the request has impersonation headers without impersonating a user name; set Impersonate-User, or remove them"))
		default:
			who := "system:anonymous"
			if u := p.user(); u != nil {
				who = excerpt.Of(u.Name, excerpt.Name)
			}
			why := fmt.Sprintf("User %q cannot impersonate resource %q in API group %q at the cluster scope: this server knows no impersonation", who, "users", "")
			response.Error(p.w, p.r, apierrors.NewForbidden(schema.GroupResource{Resource: "users"}, as, errors.New(why)))
		}
		return false
	})
}
