// Package delegation authorizes the users of a cluster for an extension server, which serves a part of the cluster's API: the cluster
// decides. Package authn/delegation authenticates them: its extension, install, is the other half of an extension server.
//
//	cfg, err := client.InCluster()
//	cluster, err := delegation.New(cfg, delegation.Options{})
//	defer cluster.Close()
//	srv, err := server.New(server.Options{Policy: server.Policy{Authorizer: cluster}})
//	err = srv.Install(server.ExtensionFunc(install)) // see package authn/delegation
//
// Set server.Options.Policy.Authorizer to the Cluster and do not call Host.Authorize: then only the cluster decides. An authorizer that
// is set replaces the default rules of the server, and one that an extension adds by Host.Authorize may allow more.
//
// Each request is sent to the cluster in a SubjectAccessReview, except for those of members of system:masters, and those for the health
// paths. A permission is remembered for 10 seconds, and so is a refusal: a role that is taken away in the cluster ends here that much
// later. The bounds are those of package authz/webhook.
//
// # What the cluster needs
//
// The credentials of the Config need the ClusterRole system:auth-delegator: create of subjectaccessreviews in the group
// authorization.k8s.io. It exists in Kubernetes. A binding gives the role to the account of the extension server, here NAME in the
// namespace NS; it is the one that package authn/delegation needs too:
//
//	kubectl create clusterrolebinding NAME-reviews --clusterrole=system:auth-delegator --serviceaccount=NS:NAME
//
// If the cluster is a server of this library, install package server/builtin/reviews in it, and server/builtin/rbac, which makes the role
// with the default of its Options.Bootstrap.
//
// # Failures
//
// While the cluster does not answer, requests whose answers are not remembered are refused with 500. What the cluster says is in the error of
// [webhook.Hooks].Failed.
//
// # Differences from k8s.io/apiserver
//
//   - The paths that need no question may be read only.
package delegation

import (
	"cmp"
	"context"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/authz/webhook"
	"github.com/keelson-dev/keelson/runtime/client"
)

// DefaultCacheTime is how long a decision is remembered.
const DefaultCacheTime = 10 * time.Second

// Options are the options of New. The zero Options is valid. The defaults are those of the delegation of k8s.io/apiserver.
type Options struct {
	// Reviews are the options of the SubjectAccessReviews. Its Path and Version are not used. Authorized and Unauthorized are
	// DefaultCacheTime by default, and Timeout 10 seconds.
	Reviews webhook.Options
	// Groups are those whose members may do everything without a question; nil is system:masters, and an empty slice none.
	Groups []string
	// Paths are those that everybody may read without a question: see authz.AllowPaths. nil is /healthz, /readyz and /livez, and an empty
	// slice none.
	Paths []string
}

// Cluster authorizes requests by a cluster. Make one with New, and Close it. All methods may be called concurrently.
type Cluster struct {
	authz.Authorizer
	reviews *webhook.Authorizer
}

// New returns an authorizer that asks the cluster of a Config. The error names the wrong field of cfg or of the options. New connects to
// nothing.
func New(cfg client.Config, o Options) (*Cluster, error) {
	r := o.Reviews
	r.Path, r.Version = webhook.SubjectAccessReviews, webhook.V1
	r.Authorized, r.Unauthorized = cmp.Or(r.Authorized, DefaultCacheTime), cmp.Or(r.Unauthorized, DefaultCacheTime)
	r.Timeout = cmp.Or(r.Timeout, 10*time.Second)
	reviews, err := webhook.New(cfg, r)
	if err != nil {
		return nil, err
	}
	if o.Groups == nil {
		o.Groups = []string{authn.MastersGroup}
	}
	if o.Paths == nil {
		o.Paths = []string{"/healthz", "/readyz", "/livez"}
	}
	return &Cluster{authz.Union(authz.PrivilegedGroups(o.Groups...), authz.AllowPaths(o.Paths...), reviews), reviews}, nil
}

// Close ends the requests to the cluster. A second call has no effect.
func (c *Cluster) Close() { c.reviews.Close() }

// Ready fails after Close. Until then it returns nil: it does not ask the cluster, whose failure would make the server fail, too.
func (c *Cluster) Ready(ctx context.Context) error { return c.reviews.Ready(ctx) }

// Pin implements authz.Pinner. The result decides as the Cluster and has all that a union of authorizers has.
func (c *Cluster) Pin(context.Context) authz.Authorizer { return c.Authorizer }

// RulesFor implements authz.RuleResolver. The rules are not complete: they do not have what the cluster allows.
func (c *Cluster) RulesFor(ctx context.Context, user *authn.User, namespace string) (authz.Rules, error) {
	return authz.RulesOf(ctx, c.Authorizer, user, namespace)
}

// Explain implements authz.Explainer.
func (c *Cluster) Explain(ctx context.Context, a authz.Attributes) authz.Explanation {
	return authz.Explain(ctx, c.Authorizer, a)
}

// SubjectsFor implements authz.SubjectResolver. The subjects are not complete: they do not have those that the cluster allows.
func (c *Cluster) SubjectsFor(ctx context.Context, a authz.Attributes, limit int) authz.Subjects {
	return authz.SubjectsOf(ctx, c.Authorizer, a, limit)
}
