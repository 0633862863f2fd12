package controller

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/server/crd/internal/definition"
	"github.com/keelson-dev/keelson/server/internal/background"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// What fails is tried again after a time that grows between these.
	leastWait = 50 * time.Millisecond
	mostWait  = 10 * time.Second
	// headStart is how long servers with a common storage have to serve what was accepted before it is established. It is
	// five seconds in kube-apiserver.
	headStart = 250 * time.Millisecond
	// longestDispute is the longest time after which a server says again what another one does not agree with.
	longestDispute = 10 * time.Minute
)

// known is one definition. Its crd is never changed, but replaced: when all is done for it, by one without the schemas, which
// take some ten times the memory of their JSON.
type known struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	slim     bool       // crd has no schemas
	spec     specDigest // of crd
	revision int64
	claim    int64         // the revision at which it was first seen with accepted names; 0: it has none
	checked  int64         // the generation whose schemas were looked at for the status
	dirty    bool          // it is to be looked at
	failed   bool          // it is to be looked at again, when some time has passed
	logged   bool          // a failure was logged since the last success
	due      time.Time     // when it may be established, if it waits for that
	served   *served       // what is served of it; nil: nothing
	refused  string        // why it could not be served, as it was last logged
	written  string        // the last of these that this server has put into the status
	accepted int64         // the generation whose names this server has accepted; 0: none
	again    time.Time     // when it says so again although another server has refused them
	dispute  *wait.Backoff // of again
	cleaning context.CancelFunc
	leaving  bool // it is gone, and its objects are looked for; crd is nil, or the one that has come in its place
}

// nextRetry returns when something is to be looked at though nothing has changed; nil: nothing is.
func (c *Controller) nextRetry() <-chan time.Time {
	var next time.Time
	failed := false
	for _, k := range c.known {
		failed = failed || k.failed
		for _, at := range []time.Time{k.due, k.again} {
			if !at.IsZero() && (next.IsZero() || at.Before(next)) {
				next = at
			}
		}
	}
	switch {
	case !failed:
		c.retry = background.Doubling(leastWait, mostWait)
		c.retryAt = time.Time{}
	case c.retryAt.IsZero():
		c.retryAt = time.Now().Add(c.retry.Step())
	}
	if failed && (next.IsZero() || c.retryAt.Before(next)) {
		next = c.retryAt
	}
	if next.IsZero() {
		return nil
	}
	return time.After(time.Until(next))
}

// retryDue has looked at what nextRetry was for.
func (c *Controller) retryDue() {
	now := time.Now()
	failed := !c.retryAt.IsZero() && !now.Before(c.retryAt)
	if failed {
		c.retryAt = time.Time{}
	}
	for _, k := range c.known {
		k.dirty = k.dirty || failed && k.failed || !k.due.IsZero() && !now.Before(k.due) || !k.again.IsZero() && !now.Before(k.again)
	}
}

// dropSchemas drops the schemas of a definition that is served as it is, and whose schemas were looked at.
func (k *known) dropSchemas() {
	if k.crd == nil || k.slim || k.leaving || k.checked != k.crd.Generation || !k.served.is(k) {
		return
	}
	crd := *k.crd
	crd.Spec.Versions = slices.Clone(crd.Spec.Versions)
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema = nil
	}
	crd.ManagedFields = nil
	k.crd, k.slim = &crd, true
}

// established returns the definitions that are established.
func established(all []*known) []*known {
	var out []*known
	for _, k := range all {
		if definition.IsTrue(k.crd, apiextensionsv1.Established) {
			out = append(out, k)
		}
	}
	return out
}

// ready says that all definitions found first are served.
func (c *Controller) ready() {
	select {
	case <-c.synced:
	default:
		close(c.synced)
	}
}

// takeDirty returns the definitions to be looked at: first those whose names were accepted first, then as they were made.
func (c *Controller) takeDirty() []*known {
	var out []*known
	for _, k := range c.known {
		if k.dirty && k.crd != nil && !k.leaving {
			k.dirty, k.failed = false, false
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *known) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			a.crd.CreationTimestamp.Compare(b.crd.CreationTimestamp.Time),
			cmp.Compare(a.revision, b.revision),
			cmp.Compare(a.crd.Name, b.crd.Name),
		)
	})
	return out
}
