// Package reviews serves the kinds with which clients ask a server about users: TokenReview and SelfSubjectReview of
// authentication.k8s.io, https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/.
//
//	err := srv.Install(reviews.New())
//
// kubectl auth whoami sends a SelfSubjectReview, which the members of system:authenticated may do: see [Authorizer]. Another server
// that has received a token sends a TokenReview to learn the user of the token. A user who may create TokenReviews can find out
// whether a token is valid.
// Nothing is stored, but an audit event at the level Request has the token: see package audit for the rule of a policy.
//
// # Differences from kube-apiserver
//
//   - The error of a TokenReview is always "invalid bearer token". The reasons of authenticators, which kube-apiserver shows, may
//     name other servers and files of this one.
//   - A TokenReview has no metadata.managedFields, and an error in the status of the request is not kept.
package reviews

import (
	"context"
	"errors"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/registry"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Authorizer is the name of the authorizer that lets the members of system:authenticated create SelfSubjectReviews, as the role
// system:basic-user of Kubernetes does. That role replaces it when package builtin/rbac is installed.
const Authorizer = "basic-user"

// New returns the extension. Install it once in a server, before or while the server serves.
func New() server.Extension { return extension{} }

type extension struct{}

// Install implements server.Extension.
func (extension) Install(h *server.Host) error {
	r := reviewer{h.Tokens(), h.Audiences()}
	if err := h.AuthorizeByDefault(Authorizer, authz.ForGroup(authn.AuthenticatedAll, authz.Func(basicUser))); err != nil {
		return err
	}
	return h.Serve(server.Group{Name: authenticationv1.GroupName, Versions: []server.Version{{
		Name: "v1", Resources: []server.Resource{
			server.Kind("SelfSubjectReview", server.KindOptions[*authenticationv1.SelfSubjectReview]{
				ClusterScoped: true, Computed: &server.Computed[*authenticationv1.SelfSubjectReview]{Create: whoAmI},
			}),
			server.Kind("TokenReview", server.KindOptions[*authenticationv1.TokenReview]{
				ClusterScoped: true, Computed: &server.Computed[*authenticationv1.TokenReview]{Create: r.reviewToken},
			}),
		},
	}}})
}

// basicUser allows everybody to create a SelfSubjectReview.
func basicUser(_ context.Context, a authz.Attributes) (authz.Verdict, string, error) {
	if a.ResourceRequest && a.Verb == "create" && a.APIGroup == authenticationv1.GroupName && a.Resource == "selfsubjectreviews" && a.Subresource == "" {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// whoAmI answers a SelfSubjectReview.
func whoAmI(call *registry.Call, _ *authenticationv1.SelfSubjectReview, _ *metav1.CreateOptions) (*authenticationv1.SelfSubjectReview, error) {
	if call.User == nil {
		return nil, apierrors.NewBadRequest("no user was authenticated")
	}
	return &authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Now()},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: infoOf(call.User)},
	}, nil
}

// reviewer answers TokenReviews.
type reviewer struct {
	tokens    authn.TokenAuthenticator
	audiences []string // of the server
}

var errInvalid = errors.New("invalid bearer token")

func (r reviewer) reviewToken(call *registry.Call, review *authenticationv1.TokenReview, _ *metav1.CreateOptions) (*authenticationv1.TokenReview, error) {
	if review.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	review.Namespace = ""
	review.Status = authenticationv1.TokenReviewStatus{Error: errInvalid.Error()}
	if user, audiences, ok := r.authenticate(call, review.Spec); ok {
		review.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: infoOf(user), Audiences: audiences}
	}
	return review, nil
}

// authenticate returns the user of a token, and those of the wanted audiences for which the token is valid. Without wanted audiences
// those of the server are wanted.
func (r reviewer) authenticate(call *registry.Call, spec authenticationv1.TokenReviewSpec) (user *authn.User, audiences []string, ok bool) {
	wanted, ctx := spec.Audiences, call.Context
	if len(wanted) == 0 {
		wanted = r.audiences
	}
	if len(wanted) > 0 {
		ctx = authn.WithAudiences(ctx, wanted)
	}
	resp, err := r.tokens.AuthenticateToken(ctx, spec.Token)
	if err != nil || resp == nil || resp.User.Name == "" {
		return nil, nil, false
	}
	audiences = resp.Audiences
	if len(audiences) == 0 { // valid for the server
		audiences = r.audiences
	}
	audiences = slices.DeleteFunc(slices.Clone(audiences), func(a string) bool { return !slices.Contains(wanted, a) })
	return &resp.User, audiences, len(wanted) == 0 || len(audiences) > 0
}

// infoOf returns a user as an answer has it.
func infoOf(u *authn.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for key, values := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[key] = values
	}
	return info
}
