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

// name keeps what the status of a definition says of its names, its schemas and its approval. One that is being deleted
// keeps the names it has, until it is gone.
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

// yields reports whether another server has refused the names that this one accepted, and that it is not yet time to accept
// them again. The other one may serve a kind of that name, or may have known less and have ended since. Both would write for
// ever without a pause, which is longer each time.
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

// hasItsNames reports whether a definition has all names that it asks for, and for good.
func hasItsNames(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return sameNames(crd.Spec.Names, crd.Status.AcceptedNames) &&
		definition.IsTrue(crd, apiextensionsv1.Established) && definition.IsTrue(crd, apiextensionsv1.NamesAccepted)
}

// establish says of a definition that it is established, when it is served here, and when all that was accepted before
// its names was seen: of two servers that accepted the same names one has to step back. Other servers have some time to
// serve it, too. Of one that cannot be served it says why.
func (c *Controller) establish(ctx context.Context, k *known) {
	if k.refused != "" && k.crd.DeletionTimestamp == nil && definition.IsTrue(k.crd, apiextensionsv1.NamesAccepted) &&
		(k.written != k.refused || !definition.IsNotServed(k.crd)) { // another server's words are as good
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
			return false // it is not what is served
		}
		return definition.SetEstablished(crd, now)
	})
}

// write changes the status of a definition, and nothing else, from what it is now, and reports whether it is as it should be. What fails is
// tried again later.
func (c *Controller) write(ctx context.Context, k *known, change stored.Change) bool {
	trial := *k.crd // of which change changes the status
	k.crd.Status.DeepCopyInto(&trial.Status)
	if !change(&trial, stored.Now()) {
		return true
	}
	crd, revision, err := c.definitions.WriteStatus(ctx, k.crd.Name, k.crd.UID, change)
	switch {
	case err == nil:
		c.update(crd, revision)
		k.logged = false
		k.dirty = false // by what was done here there is nothing to do; what others did is seen by the watch
	case apierrors.IsNotFound(err) || ctx.Err() != nil: // its end will be seen
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

// update keeps a definition as it is at a revision, unless it is known as it was later.
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
