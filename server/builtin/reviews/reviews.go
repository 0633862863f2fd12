// Package reviews serves the kinds with which clients ask a server about users and their permissions: TokenReview and
// SelfSubjectReview of authentication.k8s.io, and SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview and
// SelfSubjectRulesReview of authorization.k8s.io. They are those of
// https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/ and
// https://kubernetes.io/docs/reference/kubernetes-api/authorization-resources/.
//
//	err := srv.Install(reviews.New(reviews.Options{}))
//
// kubectl auth whoami sends a SelfSubjectReview, and kubectl auth can-i a SelfSubjectAccessReview or, with --list, a
// SelfSubjectRulesReview, which the members of system:authenticated may do: see [Authorizer]. Another server that has received a token
// sends a TokenReview to learn the user of the token, and a SubjectAccessReview to learn what a user may do. A user who may create
// TokenReviews can find out whether a token is valid, and one who may create SubjectAccessReviews what each user may do.
//
// An access review is answered by the authorizers that decide about requests, in the state of policy that was taken for the request of
// the review itself. Nothing is stored, but an audit event at the level Request has the token: see package audit for the rule of a
// policy.
//
// # Why
//
// With Options.Explain the reason of a SubjectAccessReview or LocalSubjectAccessReview has one more line, if its sender may list the
// four kinds of rbac.authorization.k8s.io in all namespaces: a JSON object of at most 4 KiB, in the form of authz.Explanation. Its
// fields are the name of the authorizer that decides, and the binding, role, subject and rule that allow the request. For a
// refusal it has the nearest grants that would have allowed the request, each with what it lacks. The reviews about oneself have no
// such line, because it would tell what others may do.
//
// For example:
//
//	echo '{"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"}}}' |
//		kubectl create --raw /apis/authorization.k8s.io/v1/subjectaccessreviews -f -
//
// In Go authz.Explain says the same of server.Host.Authorizer.
//
// With Options.Explain the server also answers who may do something, to those who may get the path and list the four kinds:
//
//	kubectl get --raw '/debug/who-can?verb=get&resource=secrets&namespace=default'
//
// The parameters are verb, group, version, resource, subresource, namespace and name, or verb and path. The answer is a JSON object with the
// grants, each with its subject, in the field grants, at most 1,000. The field incomplete is true if there are or may be others: those of an
// authorizer that does not list subjects, such as a webhook.
//
// # Differences from kube-apiserver
//
//   - The error of a TokenReview is always "invalid bearer token". The reasons of authenticators, which kube-apiserver shows, may
//     name other servers and files of this one.
//   - A review has no metadata.managedFields, and an error in the status of the request is not kept.
//   - A SelfSubjectRulesReview of a member of system:masters lists that everything is allowed, whether or not a role says so.
//   - An evaluationError has at most 1 KiB.
package reviews

import (
	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz/rbac"
	"github.com/keelson-dev/keelson/runtime/selector"
	"github.com/keelson-dev/keelson/server"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Authorizer is the name of the authorizer that lets the members of system:authenticated create the reviews about themselves, as the
// role system:basic-user of Kubernetes does. That role replaces it when package builtin/rbac is installed.
const Authorizer = "basic-user"

// Options are the options of New. The zero Options has the defaults.
type Options struct {
	// Explain adds to the reasons of access reviews why a request is allowed or refused, and serves WhoCanPath. See the doc of the
	// package for who sees it.
	Explain bool
}

// New returns the extension. Install it once in a server, before or while the server serves.
func New(o Options) server.Extension { return extension{o} }

type extension struct{ opts Options }

// Install implements server.Extension.
func (e extension) Install(h *server.Host) error {
	basic, err := basicUser()
	if err != nil {
		return err
	}
	if err := h.AuthorizeByDefault(Authorizer, basic); err != nil {
		return err
	}
	if e.opts.Explain {
		if err := h.Handle(WhoCanPath, whoCan{}); err != nil {
			return err
		}
	}
	r := reviewer{h.Tokens(), h.Audiences()}
	a := access{limit: selector.Limit(h.Limits().MaxSelectorRequirements), explain: e.opts.Explain}
	return h.Serve(
		server.Group{Name: authenticationv1.GroupName, Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("SelfSubjectReview", server.KindOptions[*authenticationv1.SelfSubjectReview]{
				ClusterScoped: true, Computed: &server.Computed[*authenticationv1.SelfSubjectReview]{Create: whoAmI},
			}),
			server.Kind("TokenReview", server.KindOptions[*authenticationv1.TokenReview]{
				ClusterScoped: true, Computed: &server.Computed[*authenticationv1.TokenReview]{Create: r.reviewToken},
			}),
		}}}},
		server.Group{Name: authorizationv1.GroupName, Versions: []server.Version{{Name: "v1", Resources: []server.Resource{
			server.Kind("LocalSubjectAccessReview", server.KindOptions[*authorizationv1.LocalSubjectAccessReview]{
				Computed: &server.Computed[*authorizationv1.LocalSubjectAccessReview]{Create: a.reviewLocal},
			}),
			server.Kind("SelfSubjectAccessReview", server.KindOptions[*authorizationv1.SelfSubjectAccessReview]{
				ClusterScoped: true, Computed: &server.Computed[*authorizationv1.SelfSubjectAccessReview]{Create: a.reviewSelf},
			}),
			server.Kind("SelfSubjectRulesReview", server.KindOptions[*authorizationv1.SelfSubjectRulesReview]{
				ClusterScoped: true, Computed: &server.Computed[*authorizationv1.SelfSubjectRulesReview]{Create: reviewRules},
			}),
			server.Kind("SubjectAccessReview", server.KindOptions[*authorizationv1.SubjectAccessReview]{
				ClusterScoped: true, Computed: &server.Computed[*authorizationv1.SubjectAccessReview]{Create: a.review},
			}),
		}}}},
	)
}

// basicUser returns the role system:basic-user of Kubernetes and its binding.
func basicUser() (*rbac.Policy, error) {
	const name = "system:basic-user"
	return rbac.Static(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"create"}, APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews"}},
			{Verbs: []string{"create"}, APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"selfsubjectreviews"}},
		}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: authn.AuthenticatedAll}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		},
	)
}
