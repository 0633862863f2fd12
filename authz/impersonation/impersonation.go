// Package impersonation decides whether a user may act as another user:
// https://kubernetes.io/docs/reference/access-authn-authz/user-impersonation/.
//
//	granted, err := impersonation.Check(ctx, authorizer, attributes, authn.User{Name: "jane"})
//
// The filter filters.Impersonate does this for the requests of a server that have impersonation headers, such as those of
// kubectl --as.
//
// There are several modes, each with permissions of its own. [Check] tries those that fit the wanted user in this order, and the
// first that allows the impersonation decides about the user's groups:
//
//   - associated-node: the user is the node, "system:node:NAME", on which the requestor runs, as its token says
//   - arbitrary-node: the user is a node: NAME is a DNS subdomain
//   - serviceaccount: the user is a service account
//   - user-info: the user is neither a node nor a service account
//   - the mode of Kubernetes before 1.35, for any user
//
// In the first three the wanted user has nothing but a name. In the first four, which are those of constrained impersonation
// (https://kep.k8s.io/5284), the requestor needs two permissions: the verb "impersonate-on:MODE:VERB" for the request itself, and the
// verb "impersonate:MODE" for the user, its UID, each of its groups and each value of its extra attributes, which are resources of
// the group authentication.k8s.io. For four or more groups the permission for groups with the name "*" is enough, and for four or
// more values of extra attributes that for userextras/* with the name "*". Nobody can become a member of system:masters in these
// modes. In the last mode the verb is "impersonate"; users, groups and service accounts are resources of the core group.
//
// A refusal names the first mode that fits, also for a user who has only permissions of the last one.
//
// # Roles
//
// With the rules of this role a user may act as the user jane, and as nobody else, in requests that get and list ConfigMaps:
//
//	rules:
//	- verbs: ["impersonate:user-info"]
//	  apiGroups: ["authentication.k8s.io"]
//	  resources: ["users"]
//	  resourceNames: ["jane"]
//	- verbs: ["impersonate-on:user-info:get", "impersonate-on:user-info:list"]
//	  apiGroups: [""]
//	  resources: ["configmaps"]
//
// With the rule of this one a user may act as jane in all requests, also where constrained impersonation is not known:
//
//	rules:
//	- verbs: ["impersonate"]
//	  apiGroups: [""]
//	  resources: ["users"]
//	  resourceNames: ["jane"]
//
// # Differences from kube-apiserver
//
//   - kube-apiserver tries the mode first that allowed the last impersonation of the requestor, and remembers decisions for some
//     seconds. Whether a node has the group system:nodes then depends on earlier requests. Here the order is always the same.
//   - Where several extra attributes are wrong or refused, kube-apiserver names any of them. Here it is the first by name.
//   - If the authorizer fails and no mode allows the impersonation, kube-apiserver answers 403, as if the requestor lacked a
//     permission. [Check] returns the error, and the answer is 500: who may have the permission learns that a later try may succeed.
//
// Package server/filters has those of the headers.
package impersonation

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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

// Check decides whether the user of request, who has made it, may make it as wanted. A mode in which the authorizer fails does not
// allow it; the modes after it still may. If none allows it, Check returns the first error of the authorizer or, if there was none,
// an apierrors.StatusError with the code 403 and the reason of the first mode that fits.
func Check(ctx context.Context, by authz.Authorizer, request authz.Attributes, wanted authn.User) (*Granted, error) {
	asks := &asking{ctx: ctx, by: by, request: request}
	var first *refusal
	for _, check := range modesOf(request.User, wanted) {
		granted, refused := check(asks, wanted)
		if refused == nil {
			return granted, nil
		}
		first = cmp.Or(first, refused)
	}
	if asks.failure != nil {
		return nil, fmt.Errorf("impersonation cannot be authorized: %w", asks.failure)
	}
	return nil, authz.Forbidden(first.attributes, first.reason)
}

// mode is a way to impersonate. It returns the user, or why the requestor may not act as it.
type mode func(a *asking, wanted authn.User) (*Granted, *refusal)

// modesOf returns the modes that fit a user, in order. There is at least one.
func modesOf(requestor *authn.User, wanted authn.User) []mode {
	nameOnly := wanted.UID == "" && len(wanted.Groups) == 0 && len(wanted.Extra) == 0
	node, isNode := splitNode(wanted.Name)
	namespace, name, isAccount := authn.SplitServiceAccount(wanted.Name)
	switch {
	case isNode && nameOnly:
		arbitrary := checkNode("arbitrary-node", node)
		if own := requestor.Extra[nodeNameKey]; isServiceAccount(requestor) && len(own) == 1 && own[0] == node {
			return []mode{checkNode("associated-node", "*"), arbitrary, checkOld}
		}
		return []mode{arbitrary, checkOld}
	case isAccount && nameOnly:
		return []mode{checkAccount(namespace, name), checkOld}
	case isNode, isAccount:
		return []mode{checkOld}
	}
	return []mode{checkInfo, checkOld}
}

// splitNode returns the name of the node whose user has a name. ok is false if no node can have that name.
func splitNode(user string) (node string, ok bool) {
	node, ok = strings.CutPrefix(user, nodePrefix)
	return node, ok && len(validation.IsDNS1123Subdomain(node)) == 0
}

func isServiceAccount(u *authn.User) bool {
	_, _, is := authn.SplitServiceAccount(u.Name)
	return is
}

// checkNode returns a mode for nodes. node is the name of one, or "*" for the requestor's own.
func checkNode(name, node string) mode {
	return func(a *asking, wanted authn.User) (*Granted, *refusal) {
		if refused := a.constrained(name, authz.Attributes{Resource: "nodes", Name: node}); refused != nil {
			return nil, refused
		}
		return granted(name, authn.User{Name: wanted.Name, Groups: []string{nodesGroup}}), nil
	}
}

// checkAccount returns the mode for service accounts.
func checkAccount(namespace, account string) mode {
	return func(a *asking, wanted authn.User) (*Granted, *refusal) {
		const name = "serviceaccount"
		if refused := a.constrained(name, authz.Attributes{Resource: "serviceaccounts", Namespace: namespace, Name: account}); refused != nil {
			return nil, refused
		}
		return granted(name, wanted), nil
	}
}

// checkInfo is the mode for other users.
func checkInfo(a *asking, wanted authn.User) (*Granted, *refusal) {
	const name = "user-info"
	if refused := a.constrained(name, authz.Attributes{Resource: "users", Name: wanted.Name}); refused != nil {
		return nil, refused
	}
	verb := impersonate + ":" + name
	if refused := a.uid(verb, wanted.UID); refused != nil {
		return nil, refused
	}
	for _, g := range wanted.Groups {
		switch g {
		case authn.MastersGroup:
			return nil, a.refuse(verb, authz.Attributes{Resource: "groups", Name: g}, "impersonating the system:masters group is not allowed")
		case "":
			return nil, a.refuse(verb, authz.Attributes{Resource: "groups"}, "impersonating the empty string group is not allowed")
		}
	}
	if refused := a.groups(verb, wanted.Groups); refused != nil {
		return nil, refused
	}
	if refused := a.extras(verb, wanted.Extra); refused != nil {
		return nil, refused
	}
	return granted(name, wanted), nil
}

// checkOld is the mode of Kubernetes before constrained impersonation.
func checkOld(a *asking, wanted authn.User) (*Granted, *refusal) {
	who := authz.Attributes{Resource: "users", Name: wanted.Name, APIVersion: "v1"}
	if namespace, name, ok := authn.SplitServiceAccount(wanted.Name); ok {
		who.Resource, who.Namespace, who.Name = "serviceaccounts", namespace, name
	}
	if refused := a.may(impersonate, who); refused != nil {
		return nil, refused
	}
	if refused := a.uid(impersonate, wanted.UID); refused != nil {
		return nil, refused
	}
	for _, g := range wanted.Groups {
		if refused := a.may(impersonate, authz.Attributes{Resource: "groups", Name: g, APIVersion: "v1"}); refused != nil {
			return nil, refused
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		for _, value := range wanted.Extra[key] {
			if refused := a.may(impersonate, authz.Attributes{APIGroup: group, APIVersion: "v1", Resource: "userextras", Subresource: key, Name: value}); refused != nil {
				return nil, refused
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
	switch {
	case u.InGroup(authn.UnauthenticatedAll):
	case u.Name == authn.AnonymousUser:
		u.Groups = append(u.Groups, authn.UnauthenticatedAll)
	case !u.InGroup(authn.AuthenticatedAll):
		u.Groups = append(u.Groups, authn.AuthenticatedAll)
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
	failure error // the first of the authorizer
}

// refusal is a missing permission.
type refusal struct {
	attributes authz.Attributes
	reason     string
}

// constrained asks for the two permissions of a mode: on the request, and for the user.
func (a *asking) constrained(mode string, who authz.Attributes) *refusal {
	on := a.request
	on.Verb = impersonate + "-on:" + mode + ":" + on.Verb
	if refused := a.ask(on); refused != nil {
		return refused
	}
	who.APIGroup, who.APIVersion = group, "v1"
	return a.may(impersonate+":"+mode, who)
}

// uid asks for a UID, unless it is empty.
func (a *asking) uid(verb, uid string) *refusal {
	if uid == "" {
		return nil
	}
	return a.may(verb, authz.Attributes{APIGroup: group, APIVersion: "v1", Resource: "uids", Name: uid})
}

// manyValues is the number of values from which the permission for all values is asked for first.
const manyValues = 4

// groups asks for each of several groups. If there are many, the permission for the name "*" is enough.
func (a *asking) groups(verb string, names []string) *refusal {
	of := authz.Attributes{APIGroup: group, APIVersion: "v1", Resource: "groups"}
	if len(names) >= manyValues && a.all(verb, of) {
		return nil
	}
	return a.each(verb, of, names)
}

// extras asks for each value of extra attributes. If there are many, the permission for the key "*" and the name "*" is enough.
func (a *asking) extras(verb string, extra map[string][]string) *refusal {
	of := authz.Attributes{APIGroup: group, APIVersion: "v1", Resource: "userextras"}
	keys := slices.Sorted(maps.Keys(extra))
	values := 0
	for _, key := range keys {
		if reason := invalidExtra(key, extra[key]); reason != "" {
			return a.refuse(verb, of, reason)
		}
		values += len(extra[key])
	}
	of.Subresource = "*"
	if values >= manyValues && a.all(verb, of) {
		return nil
	}
	for _, of.Subresource = range keys {
		if refused := a.each(verb, of, extra[of.Subresource]); refused != nil {
			return refused
		}
	}
	return nil
}

// invalidExtra returns why nobody may have an extra attribute in the mode user-info, or "".
func invalidExtra(key string, values []string) string {
	if key == "" {
		return "impersonating the empty string key in extra is not allowed"
	}
	if errs := validation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key); len(errs) > 0 {
		return "impersonating an invalid key in extra is not allowed: " + errs.ToAggregate().Error()
	}
	if slices.Contains(values, "") {
		return "impersonating the empty string value in extra is not allowed"
	}
	return ""
}

// each asks for a resource with each of several names.
func (a *asking) each(verb string, of authz.Attributes, names []string) *refusal {
	for _, of.Name = range names {
		if refused := a.may(verb, of); refused != nil {
			return refused
		}
	}
	return nil
}

// all asks for a resource with the name "*".
func (a *asking) all(verb string, of authz.Attributes) bool {
	of.Name = "*"
	return a.may(verb, of) == nil
}

// may asks for the permission to use a verb on a resource.
func (a *asking) may(verb string, on authz.Attributes) *refusal {
	on.User, on.Verb, on.ResourceRequest = a.request.User, verb, true
	return a.ask(on)
}

// ask returns nil if the authorizer allows a request. It remembers that the authorizer failed.
func (a *asking) ask(on authz.Attributes) *refusal {
	verdict, reason, err := a.by.Authorize(a.ctx, on)
	if verdict == authz.Allow {
		return nil
	}
	if a.failure == nil {
		a.failure = err
	}
	return &refusal{on, reason}
}

// refuse returns the refusal of what nobody may do.
func (a *asking) refuse(verb string, on authz.Attributes, reason string) *refusal {
	on.User, on.Verb, on.ResourceRequest, on.APIGroup, on.APIVersion = a.request.User, verb, true, group, "v1"
	return &refusal{on, reason}
}
