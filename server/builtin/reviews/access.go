package reviews

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/selector"
	"github.com/keelson-dev/keelson/server/registry"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// access answers access reviews.
type access struct {
	limit   selector.Limit // of rawSelectors
	explain bool
}

// review answers a SubjectAccessReview.
func (a access) review(call *registry.Call, r *authorizationv1.SubjectAccessReview, _ *metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.Namespace = ""
	errs := append(checkSubject(&r.Spec), checkMeta(&r.ObjectMeta, metav1.ObjectMeta{}, "must be empty")...)
	if err := invalid(errs); err != nil {
		return nil, err
	}
	r.Status = a.status(call, subjectOf(&r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, a.mayExplain(call))
	return r, nil
}

// reviewLocal answers a LocalSubjectAccessReview.
func (a access) reviewLocal(call *registry.Call, r *authorizationv1.LocalSubjectAccessReview, _ *metav1.CreateOptions) (*authorizationv1.LocalSubjectAccessReview, error) {
	errs := append(checkSubject(&r.Spec), checkMeta(&r.ObjectMeta, metav1.ObjectMeta{Namespace: r.Namespace}, "must be empty except for namespace")...)
	errs = append(errs, checkLocal(r)...)
	if err := invalid(errs); err != nil {
		return nil, err
	}
	r.Status = a.status(call, subjectOf(&r.Spec), r.Spec.ResourceAttributes, nil, a.mayExplain(call))
	return r, nil
}

// reviewSelf answers a SelfSubjectAccessReview.
func (a access) reviewSelf(call *registry.Call, r *authorizationv1.SelfSubjectAccessReview, _ *metav1.CreateOptions) (*authorizationv1.SelfSubjectAccessReview, error) {
	r.Namespace = ""
	errs := append(checkAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes), checkMeta(&r.ObjectMeta, metav1.ObjectMeta{}, "must be empty")...)
	if err := invalid(errs); err != nil {
		return nil, err
	}
	if call.User == nil {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	r.Status = a.status(call, call.User, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, false)
	return r, nil
}

// subjectOf returns the user whom a review asks about.
func subjectOf(spec *authorizationv1.SubjectAccessReviewSpec) *authn.User {
	u := &authn.User{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	for key, values := range spec.Extra {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = values
	}
	return u
}

// status returns the answer about a user, and with explain also why.
func (a access) status(call *registry.Call, user *authn.User, resource *authorizationv1.ResourceAttributes, path *authorizationv1.NonResourceAttributes, explain bool) authorizationv1.SubjectAccessReviewStatus {
	asked, problems := attributesOf(user, resource, path, a.limit)
	verdict, reason, err := decide(call, asked, explain)
	if err != nil {
		problems = append([]string{authz.Shorten(err.Error())}, problems...)
	}
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed: verdict == authz.Allow, Denied: verdict == authz.Deny,
		Reason: reason, EvaluationError: strings.Join(problems, "; "),
	}
}

// decide asks the authorizer of a call once. With explain the reason has the explanation as its last line.
func decide(call *registry.Call, asked authz.Attributes, explain bool) (authz.Verdict, string, error) {
	if !explain {
		return call.Policy.Authorizer.Authorize(call, asked)
	}
	e := authz.Explain(call, call.Policy.Authorizer, asked)
	if e.Reason == "" {
		return e.Verdict, e.Line(maxLine), e.Err
	}
	return e.Verdict, e.Reason + "\n" + e.Line(maxLine), e.Err
}

// maxLine is the maximum number of bytes of an explanation.
const maxLine = 4 << 10

// mayExplain reports whether the reasons of a call explain the decision: whether its user may list all roles and bindings.
func (a access) mayExplain(call *registry.Call) bool {
	return a.explain && mayListPolicy(call, call.Policy.Authorizer, call.User)
}

// mayListPolicy reports whether a user may list the four kinds of roles and bindings in all namespaces.
func mayListPolicy(ctx context.Context, may authz.Authorizer, user *authn.User) bool {
	for _, resource := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		verdict, _, _ := may.Authorize(ctx, authz.Attributes{
			User: user, Verb: "list", ResourceRequest: true, APIGroup: rbacv1.GroupName, APIVersion: "v1", Resource: resource,
		})
		if verdict != authz.Allow {
			return false
		}
	}
	return true
}

// The bounds of a SelfSubjectRulesReview: of the rules, and of the texts in them.
const (
	maxRules     = 10_000
	maxRuleBytes = 8 << 20
)

// bound removes the rules beyond the bounds, and reports whether there were any.
func bound(rules *authz.Rules) (more bool) {
	left, texts := maxRules, maxRuleBytes
	fits := func(lists ...[]string) bool {
		left--
		for _, list := range lists {
			for _, text := range list {
				texts -= len(text) + len(`"",`)
			}
		}
		return left >= 0 && texts >= 0
	}
	for i, r := range rules.Resources {
		if !fits(r.Verbs, r.APIGroups, r.Resources, r.ResourceNames) {
			rules.Resources, more = rules.Resources[:i], true
			break
		}
	}
	for i, r := range rules.Paths {
		if !fits(r.Verbs, r.NonResourceURLs) {
			rules.Paths, more = rules.Paths[:i], true
			break
		}
	}
	rules.Incomplete = rules.Incomplete || more
	return more
}

// reviewRules answers a SelfSubjectRulesReview. Like that of kube-apiserver, the answer has no spec.
func reviewRules(call *registry.Call, r *authorizationv1.SelfSubjectRulesReview, _ *metav1.CreateOptions) (*authorizationv1.SelfSubjectRulesReview, error) {
	switch {
	case call.User == nil:
		return nil, apierrors.NewBadRequest("no user present on request")
	case r.Spec.Namespace == "":
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	rules, err := authz.RulesOf(call, call.Policy.Authorizer, call.User, r.Spec.Namespace)
	if bound(&rules) {
		err = errors.Join(err, fmt.Errorf("there are more rules than the %d, or the %d bytes of texts, that are listed", maxRules, maxRuleBytes))
	}
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}, Incomplete: rules.Incomplete,
	}
	for _, rule := range rules.Resources {
		status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule(rule))
	}
	for _, rule := range rules.Paths {
		status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule(rule))
	}
	if err != nil {
		status.EvaluationError = authz.Shorten(err.Error())
	}
	return &authorizationv1.SelfSubjectRulesReview{Status: status}, nil
}
