// Package impersonation decides whether a user may act as another user:
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/.
//
//	wanted, err := impersonation.FromHeaders(r.Header)
//	if err == nil && wanted != nil {
//		granted, err := impersonation.Check(ctx, authorizer, attributes, *wanted)
//	}
//
// The filter filters.Impersonate does this for the requests of a server.
//
// There are several modes, each with permissions of its own. [Check] tries those that fit the wanted user in this order, and the
// first that allows the impersonation decides about the user's groups:
//
//   - associated-node: the user is the node, "system:node:NAME", on which the requestor runs, as its token says
//   - arbitrary-node: the user is a node
//   - serviceaccount: the user is a service account
//   - user-info: the user is neither a node nor a service account
//   - the mode of Kubernetes before 1.35, for any user
//
// In the first three the headers have nothing but the name of the user. In the first four, which are those of constrained
// impersonation (https://kep.k8s.io/5284), the requestor needs two permissions: the verb "impersonate-on:MODE:VERB" for the request
// itself, and the verb "impersonate:MODE" for the user, its UID, each of its groups and each value of its extra attributes, which are
// resources of the group authentication.k8s.io. Nobody can become a member of system:masters in these modes. In the last mode the
// verb is "impersonate"; users, groups and service accounts are resources of the core group.
//
// # Differences from kube-apiserver
//
//   - kube-apiserver tries the mode first that allowed the last impersonation of the requestor, and remembers decisions for some
//     seconds. Whether a node has the group system:nodes then depends on earlier requests. Here the order is always the same.
//   - A request is refused if it has more than [MaxValues] groups and values, since each is authorized on its own.
//   - A message about headers without a user does not have the headers in it.
package impersonation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxValues is the maximum number of groups and of values of extra attributes that a request may impersonate.
const MaxValues = 1000

// Granted is the user as whom a request is made.
type Granted struct {
	// User has all its groups, also system:authenticated or those of a service account.
	User authn.User
	// Constraint is the verb that allowed the impersonation in a mode of constrained impersonation, such as
	// "impersonate:user-info". It is "" in the old mode.
	Constraint string
}

// Resource group of users in constrained impersonation, and of UIDs and extra attributes always.
const group = "authentication.k8s.io"

// Keys and prefixes of users.
const (
	nodePrefix  = "system:node:"
	nodesGroup  = "system:nodes"
	nodeNameKey = "authentication.kubernetes.io/node-name"
)

// Check decides whether the user of request, who has made it, may make it as wanted. It returns an apierrors.StatusError with the
// code 403 and the reason of the first mode that fits if none allows it, and another error if the authorizer fails.
func Check(ctx context.Context, by authz.Authorizer, request authz.Attributes, wanted authn.User) (*Granted, error) {
	asks := &asking{ctx: ctx, by: by, request: request}
	var first error
	for _, m := range modesOf(request.User, wanted) {
		granted, err := m.check(asks, wanted)
		if err == nil {
			return granted, nil
		}
		if refused := (*refusal)(nil); !errors.As(err, &refused) {
			return nil, err
		}
		if first == nil {
			first = err
		}
	}
	var refused *refusal
	errors.As(first, &refused)
	return nil, authz.Forbidden(refused.attributes, refused.reason)
}

// mode is a way to impersonate.
type mode struct {
	name  string // "" in the old mode
	check func(a *asking, wanted authn.User) (*Granted, error)
}

// modesOf returns the modes that fit a user, in order. There is at least one.
func modesOf(requestor *authn.User, wanted authn.User) []mode {
	old := mode{"", checkOld}
	nameOnly := wanted.UID == "" && len(wanted.Groups) == 0 && len(wanted.Extra) == 0
	node, isNode := strings.CutPrefix(wanted.Name, nodePrefix)
	isNode = isNode && node != ""
	namespace, name, isAccount := authn.SplitServiceAccount(wanted.Name)
	switch {
	case isNode && nameOnly:
		arbitrary := mode{"arbitrary-node", checkNode("arbitrary-node", node)}
		if own := requestor.Extra[nodeNameKey]; isServiceAccount(requestor) && len(own) == 1 && own[0] == node {
			return []mode{{"associated-node", checkNode("associated-node", "*")}, arbitrary, old}
		}
		return []mode{arbitrary, old}
	case isAccount && nameOnly:
		return []mode{{"serviceaccount", checkAccount(namespace, name)}, old}
	case isNode, isAccount:
		return []mode{old}
	}
	return []mode{{"user-info", checkInfo}, old}
}

func isServiceAccount(u *authn.User) bool {
	_, _, is := authn.SplitServiceAccount(u.Name)
	return is
}

// checkNode returns the check of a mode for nodes. name is that of the node, or "*" for the requestor's own.
func checkNode(mode, name string) func(*asking, authn.User) (*Granted, error) {
	return func(a *asking, wanted authn.User) (*Granted, error) {
		if err := a.constrained(mode, authz.Attributes{Resource: "nodes", Name: name}); err != nil {
			return nil, err
		}
		return granted(mode, authn.User{Name: wanted.Name, Groups: []string{nodesGroup}}), nil
	}
}

// checkAccount returns the check of the mode for service accounts.
func checkAccount(namespace, name string) func(*asking, authn.User) (*Granted, error) {
	return func(a *asking, wanted authn.User) (*Granted, error) {
		const mode = "serviceaccount"
		if err := a.constrained(mode, authz.Attributes{Resource: "serviceaccounts", Namespace: namespace, Name: name}); err != nil {
			return nil, err
		}
		return granted(mode, wanted), nil
	}
}

// checkInfo is the check of the mode for other users.
func checkInfo(a *asking, wanted authn.User) (*Granted, error) {
	const mode = "user-info"
	if err := a.constrained(mode, authz.Attributes{Resource: "users", Name: wanted.Name}); err != nil {
		return nil, err
	}
	verb := impersonate + ":" + mode
	if err := a.uid(verb, wanted.UID); err != nil {
		return nil, err
	}
	for _, g := range wanted.Groups {
		switch g {
		case authn.MastersGroup:
			return nil, a.refuse(verb, authz.Attributes{Resource: "groups", Name: g}, "impersonating the system:masters group is not allowed")
		case "":
			return nil, a.refuse(verb, authz.Attributes{Resource: "groups"}, "impersonating the empty string group is not allowed")
		}
	}
	if err := a.each(verb, authz.Attributes{Resource: "groups"}, wanted.Groups); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		if errs := validation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key); len(errs) > 0 {
			return nil, a.refuse(verb, authz.Attributes{Resource: "userextras"}, "impersonating an invalid key in extra is not allowed: "+errs.ToAggregate().Error())
		}
		if err := a.each(verb, authz.Attributes{Resource: "userextras", Subresource: key}, wanted.Extra[key]); err != nil {
			return nil, err
		}
	}
	return granted(mode, wanted), nil
}

// checkOld is the check of the mode of Kubernetes before constrained impersonation.
func checkOld(a *asking, wanted authn.User) (*Granted, error) {
	who := authz.Attributes{Resource: "users", Name: wanted.Name, APIVersion: "v1"}
	if namespace, name, ok := authn.SplitServiceAccount(wanted.Name); ok {
		who.Resource, who.Namespace, who.Name = "serviceaccounts", namespace, name
	}
	if err := a.may(impersonate, who); err != nil {
		return nil, err
	}
	if err := a.uid(impersonate, wanted.UID); err != nil {
		return nil, err
	}
	for _, g := range wanted.Groups {
		if err := a.may(impersonate, authz.Attributes{Resource: "groups", Name: g, APIVersion: "v1"}); err != nil {
			return nil, err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		for _, value := range wanted.Extra[key] {
			if err := a.may(impersonate, authz.Attributes{APIGroup: group, APIVersion: "v1", Resource: "userextras", Subresource: key, Name: value}); err != nil {
				return nil, err
			}
		}
	}
	return granted("", wanted), nil
}

const impersonate = "impersonate"

// granted returns a user with all its groups.
func granted(mode string, u authn.User) *Granted {
	u.Groups = slices.Clone(u.Groups)
	if namespace, name, ok := authn.SplitServiceAccount(u.Name); ok && len(u.Groups) == 0 {
		u.Groups = authn.ServiceAccount(namespace, name).Groups
	}
	all := authn.AuthenticatedAll
	if u.Name == authn.AnonymousUser {
		all = authn.UnauthenticatedAll
	}
	if !u.InGroup(authn.AuthenticatedAll) && !u.InGroup(authn.UnauthenticatedAll) {
		u.Groups = append(u.Groups, all)
	}
	g := &Granted{User: u}
	if mode != "" {
		g.Constraint = impersonate + ":" + mode
	}
	return g
}

// asking asks the authorizer about the permissions of a requestor.
type asking struct {
	ctx     context.Context
	by      authz.Authorizer
	request authz.Attributes
}

// refusal is the error for a missing permission.
type refusal struct {
	attributes authz.Attributes
	reason     string
}

func (r *refusal) Error() string { return authz.ForbiddenMessage(r.attributes) }

// constrained asks for the two permissions of a mode: on the request, and for the user.
func (a *asking) constrained(mode string, who authz.Attributes) error {
	on := a.request
	on.Verb = impersonate + "-on:" + mode + ":" + on.Verb
	if err := a.ask(on); err != nil {
		return err
	}
	who.APIGroup, who.APIVersion = group, "v1"
	return a.may(impersonate+":"+mode, who)
}

// uid asks for a UID, unless it is empty.
func (a *asking) uid(verb, uid string) error {
	if uid == "" {
		return nil
	}
	return a.may(verb, authz.Attributes{APIGroup: group, APIVersion: "v1", Resource: "uids", Name: uid})
}

// manyValues is the number of values from which the permission for all values is asked for first.
const manyValues = 4

// each asks for a resource of the group authentication.k8s.io with each of several names. If there are many, the name "*" is enough.
func (a *asking) each(verb string, of authz.Attributes, names []string) error {
	of.APIGroup, of.APIVersion = group, "v1"
	if len(names) >= manyValues {
		of.Name = "*"
		if a.may(verb, of) == nil {
			return nil
		}
	}
	for _, of.Name = range names {
		if err := a.may(verb, of); err != nil {
			return err
		}
	}
	return nil
}

// may asks for the permission to use a verb on a resource.
func (a *asking) may(verb string, on authz.Attributes) error {
	on.User, on.Verb, on.ResourceRequest = a.request.User, verb, true
	return a.ask(on)
}

// ask returns a *refusal if the authorizer does not allow a request, and its error if it fails.
func (a *asking) ask(on authz.Attributes) error {
	verdict, reason, err := a.by.Authorize(a.ctx, on)
	switch {
	case verdict == authz.Allow:
		return nil
	case err != nil:
		return fmt.Errorf("impersonation cannot be authorized: %w", err)
	}
	return &refusal{on, reason}
}

// refuse returns the error for what nobody may do.
func (a *asking) refuse(verb string, on authz.Attributes, reason string) error {
	on.User, on.Verb, on.ResourceRequest, on.APIGroup, on.APIVersion = a.request.User, verb, true, group, "v1"
	return &refusal{on, reason}
}
