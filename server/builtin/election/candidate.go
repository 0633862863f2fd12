package election

import (
	"context"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// candidate is one who takes part. One goroutine uses it.
type candidate struct {
	Options
	leases Leases

	lease   *coordinationv1.Lease // as it was seen last
	changed time.Time             // when it was first seen so
	renewed time.Time             // when the last successful write of the candidate's own was begun
}

// standing says who has the Lease.
type standing int8

const (
	open  standing = iota // nobody knows, or it may be had later
	held                  // the candidate
	taken                 // somebody else
)

// acquire takes the Lease if it may be taken.
func (c *candidate) acquire(ctx context.Context) standing {
	ctx, cancel := context.WithTimeout(ctx, c.RenewDeadline)
	defer cancel()
	lease, err := c.leases.Get(ctx, c.Namespace, c.Name)
	if apierrors.IsNotFound(err) {
		return c.create(ctx)
	}
	if err != nil {
		return c.failed("read", err)
	}
	c.see(lease)
	if holder := holderOf(lease); holder != "" && holder != c.Identity && time.Since(c.changed) < c.durationOf(lease) {
		return taken
	}
	return c.take(ctx, lease)
}

// renew keeps the Lease that the candidate holds.
func (c *candidate) renew(ctx context.Context) standing {
	if c.take(ctx, c.lease) == held {
		return held
	}
	// Somebody changed the Lease, or a write was not answered that may have arrived.
	lease, err := c.leases.Get(ctx, c.Namespace, c.Name)
	if apierrors.IsNotFound(err) {
		return taken // by whoever deleted it: others may have it at once
	}
	if err != nil {
		return c.failed("read", err)
	}
	c.see(lease)
	if holderOf(lease) != c.Identity {
		return taken
	}
	return c.take(ctx, lease)
}

// create makes the Lease, held by the candidate.
func (c *candidate) create(ctx context.Context) standing {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	c.sign(lease)
	began := time.Now()
	made, err := c.leases.Create(ctx, c.Namespace, lease)
	if err != nil {
		return c.failed("create", err)
	}
	c.see(made)
	c.renewed = began
	return held
}

// take writes the candidate's name into a Lease that was read.
func (c *candidate) take(ctx context.Context, lease *coordinationv1.Lease) standing {
	lease = lease.DeepCopy()
	c.sign(lease)
	began := time.Now()
	written, err := c.leases.Update(ctx, c.Namespace, lease)
	if err != nil {
		return c.failed("update", err)
	}
	c.see(written)
	c.renewed = began
	return held
}

// sign makes the candidate the holder.
func (c *candidate) sign(lease *coordinationv1.Lease) {
	now, spec := metav1.NewMicroTime(time.Now()), &lease.Spec
	if holderOf(lease) != c.Identity {
		transitions := int32(0)
		if lease.ResourceVersion != "" {
			transitions = 1
		}
		if spec.LeaseTransitions != nil {
			transitions += *spec.LeaseTransitions
		}
		spec.LeaseTransitions = &transitions
		spec.AcquireTime = &now
	}
	seconds := int32(c.LeaseDuration / time.Second)
	spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime = &c.Identity, &seconds, &now
}

// see remembers a Lease, and when it was first as it is.
func (c *candidate) see(lease *coordinationv1.Lease) {
	if c.lease == nil || c.lease.UID != lease.UID || c.lease.ResourceVersion != lease.ResourceVersion || !equality.Semantic.DeepEqual(c.lease.Spec, lease.Spec) {
		c.lease, c.changed = lease, time.Now()
	}
}

// release gives the Lease back, unless somebody else has it.
func (c *candidate) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.RenewDeadline)
	defer cancel()
	for range 3 {
		lease := c.lease.DeepCopy()
		now, none, second := metav1.NewMicroTime(time.Now()), "", int32(1)
		spec := &lease.Spec
		spec.HolderIdentity, spec.LeaseDurationSeconds, spec.RenewTime, spec.AcquireTime = &none, &second, &now, &now
		_, err := c.leases.Update(ctx, c.Namespace, lease)
		if err == nil {
			return
		}
		c.failed("release", err)
		lease, err = c.leases.Get(ctx, c.Namespace, c.Name)
		if err != nil || holderOf(lease) != c.Identity {
			return
		}
		c.see(lease) // a write arrived that was not answered
	}
}

func (c *candidate) failed(what string, err error) standing {
	c.Logger.Debug("leader election: "+what+" failed", zap.String("lease", c.Namespace+"/"+c.Name), zap.Error(err))
	return open
}

func holderOf(lease *coordinationv1.Lease) string {
	if h := lease.Spec.HolderIdentity; h != nil {
		return *h
	}
	return ""
}

// durationOf is how long the holder may be silent.
func (c *candidate) durationOf(lease *coordinationv1.Lease) time.Duration {
	if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return c.LeaseDuration
}
