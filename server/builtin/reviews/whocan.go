package reviews

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/server/response"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// WhoCanPath is the path at which a server with Options.Explain answers who may do something.
const WhoCanPath = "/debug/who-can"

// maxGrants is the maximum number of grants of an answer.
const maxGrants = 1000

// whoCan serves WhoCanPath.
type whoCan struct{}

// answer is the body of an answer.
type answer struct {
	Grants     []authz.Grant `json:"grants"`
	Incomplete bool          `json:"incomplete"`
}

// ServeHTTP implements http.Handler.
func (whoCan) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		response.Error(w, r, apierrors.NewMethodNotSupported(rbacv1.Resource("who-can"), r.Method))
		return
	}
	asked, err := askedBy(r.URL.Query())
	if err != nil {
		response.Error(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	policy, user := request.PolicyFrom(r.Context()), authn.UserFrom(r.Context())
	if policy == nil || policy.Authorizer == nil || user == nil || !mayListPolicy(r.Context(), policy.Authorizer, user) {
		response.Error(w, r, apierrors.NewForbidden(rbacv1.Resource("clusterroles"), "", fmt.Errorf(
			"who may do something is told to users who may list clusterroles, clusterrolebindings, roles and rolebindings in all namespaces")))
		return
	}
	all := authz.SubjectsOf(r.Context(), policy.Authorizer, asked, maxGrants)
	if all.Grants == nil {
		all.Grants = []authz.Grant{}
	}
	body, err := json.Marshal(answer(all))
	if err != nil {
		response.Error(w, r, apierrors.NewInternalError(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n'))
}

// askedBy returns the request that the parameters of a query describe, without a user.
func askedBy(query url.Values) (authz.Attributes, error) {
	names := []string{"verb", "group", "version", "resource", "subresource", "namespace", "name", "path"}
	for name, values := range query {
		if !slices.Contains(names, name) || len(values) > 1 {
			return authz.Attributes{}, fmt.Errorf("the parameter %.100q is not known or is given twice: want %q, each at most once", name, names)
		}
	}
	a := authz.Attributes{
		User: &authn.User{}, Verb: query.Get("verb"), APIGroup: query.Get("group"), APIVersion: query.Get("version"),
		Resource: query.Get("resource"), Subresource: query.Get("subresource"), Namespace: query.Get("namespace"), Name: query.Get("name"),
		Path: query.Get("path"),
	}
	a.ResourceRequest = a.Path == ""
	switch {
	case a.Verb == "" || a.ResourceRequest && a.Resource == "":
		return a, fmt.Errorf("who may do what? want the parameters verb and resource, or verb and path, such as ?verb=get&resource=secrets")
	case !a.ResourceRequest && len(query) > 2:
		return a, fmt.Errorf("a request for a path has the parameters verb and path only")
	}
	return a, nil
}
