package handlers

import (
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/authz"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The deletion of an object that cannot be read: see https://kubernetes.io/docs/reference/using-api/api-concepts/#force-deletion.
const (
	unsafeOption = "ignoreStoreReadErrorWithClusterBreakingPotential"
	unsafeVerb   = "unsafe-delete-ignore-read-errors"
)

// unsafe reports whether opts request such a deletion.
func unsafe(opts *metav1.DeleteOptions) bool {
	on := opts.IgnoreStoreReadErrorWithClusterBreakingPotential
	return on != nil && *on
}

// mayDeleteUnsafely checks the additional permission that such a deletion needs. It returns an error for resources that cannot
// have unreadable objects. The errors are those of kube-apiserver.
func (c *call) mayDeleteUnsafely() error {
	a := c.ctx.Attributes
	a.Namespace = c.info.Namespace
	forbidden := func(why error) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: a.APIGroup, Resource: a.Resource}, a.Name, why)
	}
	who := c.decides(c.ctx)
	switch {
	case c.sub != "":
		return forbidden(errors.New(unsafeOption + " delete option is not allowed on a subresource or non-resource request"))
	case c.recordDeleter == nil:
		return apierrors.NewInternalError(errors.New("no unsafe deleter provided, can not honor " + unsafeOption))
	case who == nil:
		return apierrors.NewInternalError(errors.New("no authorizer provided, unable to authorize unsafe delete"))
	}
	a.Verb = unsafeVerb
	verdict, reason, err := who.Authorize(c.ctx.Context, a)
	switch {
	case err != nil: // an error is a refusal even if there is a verdict: not all authorizers have decided
		return forbidden(fmt.Errorf("error while checking permission for %q, %w", unsafeVerb, err))
	case verdict == authz.Allow:
		return nil
	}
	return forbidden(fmt.Errorf("not permitted to do %q, reason: %s", unsafeVerb, reason))
}
