// Package authz says whether a user may do what a request asks.
//
// An [Authorizer] answers with a [Verdict]; several are combined by [Union], in order, the first that allows or
// denies ends it. No opinion at the end is a refusal. The rules are those of
// https://kubernetes.io/docs/reference/access-authn-authz/authorization/.
package authz

import (
	"context"

	"github.com/keelson-dev/keelson/authn"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Verdict is an authorizer's answer. The zero Verdict is NoOpinion, which allows nothing.
type Verdict int

// The three verdicts.
const (
	NoOpinion Verdict = iota
	Allow
	Deny
)

// Attributes is what a request asks for, for authorization and flow control alike. The slices and maps in it are
// read-only. The field names are those of a SubjectAccessReview: Resource is the plural, and Name the object's name.
type Attributes struct {
	User *authn.User // never nil for an Authorizer
	Verb string      // get, list, watch, create, update, patch, delete, deletecollection; or an HTTP method in lower case

	// ResourceRequest tells a request for an API resource from one for a path.
	ResourceRequest bool
	// Of a resource request.
	APIGroup, APIVersion  string
	Resource, Subresource string // Resource is the plural, "widgets"
	Namespace, Name       string // "" where the request names none
	// Selectors of a list, watch or deletecollection; nil when there are none or they do not parse.
	FieldSelector fields.Requirements
	LabelSelector labels.Requirements

	Path string // of a request for a path
}

// IsReadOnly reports whether the verb changes nothing.
func (a Attributes) IsReadOnly() bool {
	return a.Verb == "get" || a.Verb == "list" || a.Verb == "watch" || a.Verb == "head"
}

// Authorizer decides. The reason, which may be empty, is shown to the user on refusal, at most 1 KiB of it. An error without
// an Allow is reported as an internal error. An authorizer that cannot decide, because it is not ready for one, abstains if all
// that it could do is allow: NoOpinion, with or without an error, and another authorizer may allow. One that could deny returns
// Deny with an error: nobody is asked after it, see [Union]. Authorizers are called concurrently.
type Authorizer interface {
	Authorize(ctx context.Context, a Attributes) (Verdict, string, error)
}

// Func is a function that is an Authorizer.
type Func func(ctx context.Context, a Attributes) (Verdict, string, error)

// Authorize implements Authorizer.
func (f Func) Authorize(ctx context.Context, a Attributes) (Verdict, string, error) { return f(ctx, a) }
