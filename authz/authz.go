// Package authz decides whether a user may make a request.
//
// An [Authorizer] returns a [Verdict]. [Union] combines authorizers in order; the first that allows or denies decides. If the
// result is no opinion, the request is refused. The rules are those of
// https://kubernetes.io/docs/reference/access-authn-authz/authorization/.
//
// [RulesOf] lists what a user may do, and [SubjectsOf] who may do something. [Explain] says why a request is allowed or refused.
//
// A server decides by
//
//	roles in Go                             authz/rbac.Static, and server.Host.Authorize
//	roles in a file                         server/builtin/rbac.File
//	stored roles                            server/builtin/rbac.New
//	the policy file of ABAC                 authz/abac
//	a webhook                               authz/webhook
//	a file that lists authorizers           authz/config
//	the cluster of an extension server      authz/delegation, and authn/delegation for its users
//
// kubectl auth can-i needs the extension server/builtin/reviews.
package authz

import (
	"context"

	"github.com/keelson-dev/keelson/authn"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Verdict is the decision of an authorizer. The zero Verdict is NoOpinion, which does not allow the request.
type Verdict int

// The verdicts.
const (
	NoOpinion Verdict = iota // another authorizer may allow or deny
	Allow                    // the request is allowed
	Deny                     // the request is refused, and no later authorizer is called
)

// String returns "allow", "deny" or "no opinion".
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	}
	return "no opinion"
}

// Attributes describe a request for authorization and flow control. The slices and maps in it must not be changed. The field
// names are those of a SubjectAccessReview.
type Attributes struct {
	User *authn.User // never nil for an Authorizer
	Verb string      // get, list, watch, create, update, patch, delete, deletecollection; or an HTTP method in lower case

	// ResourceRequest means that the request is for an API resource. Otherwise it is for a path.
	ResourceRequest bool
	// Fields of a resource request.
	APIGroup, APIVersion  string
	Resource, Subresource string // Resource is the plural name, "widgets"
	Namespace, Name       string // "" if the request has none
	// FieldSelector is the field selector of a list, watch or deletecollection. It is nil if there is none or if it does not
	// parse.
	FieldSelector fields.Requirements
	// LabelSelector is the label selector, like FieldSelector.
	LabelSelector labels.Requirements

	Path string // of a request for a path
}

// IsReadOnly reports whether the verb changes nothing.
func (a Attributes) IsReadOnly() bool {
	return a.Verb == "get" || a.Verb == "list" || a.Verb == "watch" || a.Verb == "head"
}

// Authorizer decides whether requests are allowed. It may be called concurrently.
type Authorizer interface {
	// Authorize returns the verdict on a request. The reason, which may be empty, is shown to the user if the request is refused,
	// at most 1 KiB of it. An error without Allow is reported as an internal error.
	//
	// An authorizer that cannot decide, for example because it is not ready, returns NoOpinion, with or without an error, if it
	// never denies; then another authorizer may allow. If it could deny, it returns Deny with an error, and no further authorizer
	// is called; see [Union].
	Authorize(ctx context.Context, a Attributes) (Verdict, string, error)
}

// Func is a function that implements Authorizer.
type Func func(ctx context.Context, a Attributes) (Verdict, string, error)

// Authorize implements Authorizer.
func (f Func) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) { return f(ctx, a) }
