package authz

import (
	"context"
	"errors"

	"github.com/keelson-dev/keelson/authn"
)

// RuleResolver is an optional interface of an [Authorizer]. It lists what a user may do, as in a SelfSubjectRulesReview. [Union]
// and [Live] implement it, whether or not their members do.
type RuleResolver interface {
	// RulesFor returns what user may do in namespace, with cluster-scoped resources and with paths. The rules are valid even if
	// there is an error, such as that of a binding to a missing role. The caller owns the slices; the elements refer to shared
	// data that must not be changed.
	RulesFor(ctx context.Context, user *authn.User, namespace string) (Rules, error)
}

// Rules are what a user may do. The zero Rules allows nothing.
type Rules struct {
	Resources []ResourceRule // rules for resources
	Paths     []PathRule     // rules for paths
	// Incomplete means that the user may be allowed more than is listed.
	Incomplete bool
}

// ResourceRule allows verbs on resources. "*" in a list means all. It converts to a ResourceRule of k8s.io/api/authorization/v1, which
// is not used because a program that imports its package links all types of the access reviews.
type ResourceRule struct {
	Verbs         []string `json:"verbs"`                   // such as "get" and "list"
	APIGroups     []string `json:"apiGroups,omitempty"`     // groups of the resources; "" is the core group
	Resources     []string `json:"resources,omitempty"`     // plural names, or "pods/status" for a subresource
	ResourceNames []string `json:"resourceNames,omitempty"` // names of the objects; empty means all
}

// PathRule allows verbs on paths that are not resources. "*" as a verb or as the last step of a path means all. It converts to a
// NonResourceRule of k8s.io/api/authorization/v1.
type PathRule struct {
	Verbs           []string `json:"verbs"`                     // HTTP methods in lower case
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"` // paths
}

var errNoRules = errors.New("an authorizer does not support user rule resolution")

// RulesOf returns the rules of a for a user. If a is not a RuleResolver, it returns no rules, marked as incomplete, and an error.
func RulesOf(ctx context.Context, a Authorizer, user *authn.User, namespace string) (Rules, error) {
	if r, ok := a.(RuleResolver); ok {
		return r.RulesFor(ctx, user, namespace)
	}
	return Rules{Incomplete: true}, errNoRules
}

// RulesFor implements RuleResolver. It returns the rules of all members, in order.
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
	return all, aggregate(errs)
}

// everything returns the rules of a user who may do everything.
func everything() Rules {
	return Rules{
		Resources: []ResourceRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		Paths:     []PathRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}},
	}
}
