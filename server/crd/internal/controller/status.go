package controller

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/server/crd/internal/stored"
	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// name updates the status of a definition about its names, schemas and approval. A definition that is being deleted keeps its
// names until it is gone.
func (c *Controller) name(ctx context.Context, k *known) {
	if k.crd.DeletionTimestamp != nil {
		k.again = time.Time{}
		return
	}
	yields := k.yields(time.Now())
	var taken *definition.Taken
	done := c.write(ctx, k, func(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
		changed := false
		if !yields && !hasItsNames(crd) {
			if taken == nil {
				taken = c.taken(k)
			}
			changed = definition.AcceptNames(crd, taken, now)
		}
		if crd.Generation != k.checked {
			changed = definition.SetStructural(crd, now) || changed
		}
		return definition.SetApproval(crd, now) || changed
	})
	if done {
		k.checked = k.crd.Generation
	}
	switch {
	case !done || yields:
	case definition.IsTrue(k.crd, apiextensionsv1.NamesAccepted):
		k.accepted = k.crd.Generation
	default:
		k.accepted = 0
	}
}

// yields reports whether another server has refused the names that this server accepted, and it is too early to accept them
// again. The other server may serve a kind of that name. Or it had older information and may have ended since. Without a delay
// both servers would write forever. The delay grows each time.
func (k *known) yields(now time.Time) bool {
	refused := definition.Condition(k.crd, apiextensionsv1.NamesAccepted)
	if refused == nil || refused.Status == apiextensionsv1.ConditionTrue || k.accepted != k.crd.Generation {
		k.again = time.Time{}
		return false
	}
	if k.again.IsZero() {
		if k.dispute == nil {
			k.dispute = new(background.Doubling(leastWait, longestDispute))
		}
		k.again = now.Add(k.dispute.Step())
	}
	if now.Before(k.again) {
		return true
	}
	k.again = time.Time{}
	return false
}

// hasItsNames reports whether a definition permanently has all names that it asks for.
func hasItsNames(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return sameNames(crd.Spec.Names, crd.Status.AcceptedNames) &&
		definition.IsTrue(crd, apiextensionsv1.Established) && definition.IsTrue(crd, apiextensionsv1.NamesAccepted)
}

// establish marks a definition as established when this server serves it and has seen everything that was accepted before its
// names: if two servers accepted the same names, one definition must lose them. In a shared storage the other servers get
// headStart to serve it. If a definition cannot be served, establish writes the reason to the status.
func (c *Controller) establish(ctx context.Context, k *known) {
	if k.refused != "" && k.crd.DeletionTimestamp == nil && definition.IsTrue(k.crd, apiextensionsv1.NamesAccepted) &&
		(k.written != k.refused || !definition.IsNotServed(k.crd)) { // another server's reason is sufficient
		done := c.write(ctx, k, func(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
			return definition.SetNotServed(crd, k.refused, now)
		})
		if done {
			k.written = k.refused
		}
	}
	if k.served == nil || k.refused != "" || k.crd.DeletionTimestamp != nil || c.seen < k.claim ||
		!definition.IsTrue(k.crd, apiextensionsv1.NamesAccepted) || definition.IsTrue(k.crd, apiextensionsv1.Established) {
		k.due = time.Time{}
		return
	}
	if c.shared && k.due.IsZero() {
		k.due = time.Now().Add(headStart)
	}
	if time.Now().Before(k.due) {
		return
	}
	k.due = time.Time{}
	names := k.crd.Status.AcceptedNames
	c.write(ctx, k, func(crd *apiextensionsv1.CustomResourceDefinition, now metav1.Time) bool {
		if !definition.IsTrue(crd, apiextensionsv1.NamesAccepted) || !sameNames(crd.Status.AcceptedNames, names) {
			return false // these are not the names that are served
		}
		return definition.SetEstablished(crd, now)
	})
}

// write applies change to the status of the stored definition, and reports whether the status is then as wanted. A failed write
// is tried again later.
func (c *Controller) write(ctx context.Context, k *known, change stored.Change) bool {
	trial := *k.crd // change may change only the status
	k.crd.Status.DeepCopyInto(&trial.Status)
	if !change(&trial, stored.Now()) {
		return true
	}
	crd, revision, err := c.definitions.WriteStatus(ctx, k.crd.Name, k.crd.UID, change)
	switch {
	case err == nil:
		c.update(crd, revision)
		k.logged = false
		k.dirty = false // nothing is left to do for this write; the watch reports those of others
	case apierrors.IsNotFound(err) || ctx.Err() != nil: // the watch will report its deletion
	default:
		k.failed = true
		level := zap.WarnLevel
		if k.logged {
			level = zap.DebugLevel
		}
		k.logged = true
		c.log.Log(level, "the status of a definition cannot be written yet", zap.String("name", k.crd.Name), zap.Error(err))
	}
	return err == nil
}

// update stores the state of a definition at a revision, unless a later state is known.
func (c *Controller) update(crd *apiextensionsv1.CustomResourceDefinition, revision int64) {
	k := c.known[crd.Name]
	if k == nil {
		k = &known{}
		c.known[crd.Name] = k
	}
	if k.crd != nil && revision < k.revision {
		return
	}
	before := apiextensionsv1.CustomResourceDefinitionNames{}
	if k.crd != nil {
		before = k.crd.Status.AcceptedNames
	}
	c.exit(k)
	k.crd, k.slim, k.spec, k.revision, k.dirty = crd, false, digestOf(crd), revision, true
	c.enter(k)
	accepted := crd.Status.AcceptedNames
	switch {
	case accepted.Plural == "" && accepted.Kind == "":
		k.claim = 0
	case k.claim == 0:
		k.claim = revision
	}
	if !sameNames(before, accepted) {
		c.lookFor(crd.Spec.Group, before, accepted)
	}
}
