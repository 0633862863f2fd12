package authz

import (
	"context"
	"errors"

	"github.com/keelson-dev/keelson/authn"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// RuleResolver is an optional power of an [Authorizer]: it lists what a user may do, as a SelfSubjectRulesReview shows it.
// [Union] and [Live] have it, whatever their members have.
type RuleResolver interface {
	// RulesFor lists what user may do in namespace, and with cluster-scoped resources and paths. What is listed holds also
	// when there is an error, such as that of a binding to a role that does not exist. The slices are the
	// caller's own; what they refer to is shared and read-only.
	RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error)
}

// Rules are what a user may do. The zero Rules is nothing.
type Rules struct {
	Resources []authorizationv1.ResourceRule
	Paths     []authorizationv1.NonResourceRule
	// Incomplete says that the user may be allowed more than is listed.
	Incomplete bool
}

var errNoRules = errors.New("an authorizer does not support user rule resolution")

// RulesOf asks a for the rules of a user. Those of an authorizer that is no RuleResolver are none, incomplete, with an error.
func RulesOf(ctx context.Context, a Authorizer, user *authn.User, namespace string) (Rules, error) {
	if r, ok := a.(RuleResolver); ok {
		return r.RulesFor(ctx, user, namespace)
	}
	return Rules{Incomplete: true}, errNoRules
}

// RulesFor implements RuleResolver: the rules of all members, in order.
func (u *union) RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error) {
	var all Rules
	var errs []error
	for _, m := range u.members {
		one, err := RulesOf(ctx, m, user, namespace)
		all.Resources = append(all.Resources, one.Resources...)
		all.Paths = append(all.Paths, one.Paths...)
		if all.Incomplete = all.Incomplete || one.Incomplete; err != nil {
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// everything is the rule of who may do everything.
func everything() Rules {
	return Rules{
		Resources: []authorizationv1.ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		Paths:     []authorizationv1.NonResourceRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}
}
