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
	// Failed work is tried again after a delay that grows from leastWait to mostWait.
	leastWait = 50 * time.Millisecond
	mostWait  = 10 * time.Second
	// headStart is how long servers with a shared storage have to serve a definition between its acceptance and its
	// establishment. kube-apiserver waits five seconds.
	headStart = 250 * time.Millisecond
	// longestDispute is the longest delay before a server repeats a status that another server has contradicted.
	longestDispute = 10 * time.Minute
)

// known is one definition. Its crd is never changed, only replaced. When all work for the definition is done, a crd without
// schemas replaces it, because schemas take about ten times the memory of their JSON.
type known struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	slim     bool       // crd has no schemas
	spec     specDigest // the digest of crd
	revision int64
	claim    int64         // the revision at which it was first seen with accepted names; 0 if it has none
	checked  int64         // the generation whose schemas were checked for the status
	dirty    bool          // it must be processed
	failed   bool          // it must be processed again after a delay
	logged   bool          // a failure was logged since the last success
	due      time.Time     // when it may be established; zero if it does not wait for that
	served   *served       // what is served for it; nil if nothing is
	refused  string        // why it could not be served, as last logged
	written  string        // the last value of refused that this server wrote to the status
	accepted int64         // the generation whose names this server has accepted; 0 if none
	again    time.Time     // when this server accepts the names again although another one has refused them
	dispute  *wait.Backoff // the delays for again
	cleaning context.CancelFunc
	leaving  bool // it is gone and the sweep of its objects is running; crd is nil or the definition that replaced it
}

// nextRetry returns a channel that fires when a definition must be processed although nothing has changed, or nil.
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

// retryDue marks the definitions as dirty that nextRetry fired for.
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

// dropSchemas drops the schemas of a definition whose current state is served and whose schemas were checked.
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

// established returns the definitions in all that are established.
func established(all []*known) []*known {
	var out []*known
	for _, k := range all {
		if definition.IsTrue(k.crd, apiextensionsv1.Established) {
			out = append(out, k)
		}
	}
	return out
}

// ready records that the definitions of the first list are served.
func (c *Controller) ready() {
	select {
	case <-c.synced:
	default:
		close(c.synced)
	}
}

// takeDirty returns the dirty definitions and marks them as clean. Those whose names were accepted first come first, then the
// older ones.
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
