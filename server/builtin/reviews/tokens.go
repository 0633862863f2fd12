package reviews

import (
	"errors"
	"slices"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/server/registry"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
