package election

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Leases stores the Lease. *registry.Typed[*coordinationv1.Lease] implements it.
type Leases interface {
	// Get returns the Lease, or a NotFound error.
	Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error)
	// Create creates the Lease. It must return AlreadyExists if the Lease exists.
	Create(ctx context.Context, namespace string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	// Update replaces the Lease. It must return Conflict if the resourceVersion is not the stored one.
	Update(ctx context.Context, namespace string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// Options are the options of Run. Namespace and Name are required.
type Options struct {
	Namespace, Name string // of the Lease
	// Identity is the candidate's name in the Lease. It must be unique among the candidates of all processes. The default is the
	// name of the host and a random part.
	Identity string
	// LeaseDuration is how long the other candidates wait when the leader does not renew, in whole seconds; 15 s by default.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up, shorter than LeaseDuration; 10 s by default.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two reads of the Lease, shorter than RenewDeadline; 2 s by default.
	RetryPeriod time.Duration
	// Logger receives changes of the leadership, failures as debug lines, and panics of the Leases as errors. With nil nothing is
	// logged.
	Logger *zap.Logger
}

func (o Options) complete() (Options, error) {
	o.LeaseDuration = orDefault(o.LeaseDuration, 15*time.Second)
	o.RenewDeadline = orDefault(o.RenewDeadline, 10*time.Second)
	o.RetryPeriod = orDefault(o.RetryPeriod, 2*time.Second)
	switch {
	case o.Namespace == "" || o.Name == "":
		return o, errors.New("election: Options.Namespace and Options.Name are required: those of the Lease")
	case o.LeaseDuration < time.Second || o.LeaseDuration%time.Second != 0:
		return o, fmt.Errorf("election: Options.LeaseDuration is %v, want whole seconds", o.LeaseDuration)
	case o.RenewDeadline <= 0 || o.RenewDeadline >= o.LeaseDuration:
		return o, fmt.Errorf("election: Options.RenewDeadline is %v, want less than LeaseDuration, %v", o.RenewDeadline, o.LeaseDuration)
	case o.RetryPeriod <= 0 || o.RetryPeriod >= o.RenewDeadline:
		return o, fmt.Errorf("election: Options.RetryPeriod is %v, want less than RenewDeadline, %v", o.RetryPeriod, o.RenewDeadline)
	}
	if o.Identity == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("election: name of the host: %w; set Options.Identity", err)
		}
		o.Identity = host + "_" + uuid.NewString()
	}
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	return o, nil
}

func orDefault(d, instead time.Duration) time.Duration {
	if d == 0 {
		return instead
	}
	return d
}

// Run takes part in the election until ctx ends, or until lead returns by itself. It calls lead each time the candidate becomes
// leader. The context of lead ends before another candidate may lead, or with ctx. Run waits for lead to return. If the
// leadership was not lost, Run then releases the Lease, so that other candidates need not wait. If it was lost, the candidate
// stands again.
//
// The error is about invalid options. Later failures are tried again.
func Run(ctx context.Context, leases Leases, opts Options, lead func(ctx context.Context)) error {
	opts, err := opts.complete()
	if err != nil {
		return err
	}
	c := &candidate{Options: opts, leases: guarded{leases, opts.Logger}}
	for ctx.Err() == nil {
		switch {
		case c.acquire(ctx) != held:
			pause(ctx, opts.RetryPeriod)
		case c.lead(ctx, lead):
			return nil
		}
	}
	return nil
}

// lead leads until the leadership is lost, ctx ends or work returns. finished is true if work returned by itself.
func (c *candidate) lead(ctx context.Context, work func(ctx context.Context)) (finished bool) {
	left := time.Until(c.renewed.Add(c.RenewDeadline))
	if left <= 0 { // the answer came too late
		return false
	}
	log := c.Logger.With(zap.String("lease", c.Namespace+"/"+c.Name), zap.String("identity", c.Identity))
	leading, resign := context.WithCancel(ctx)
	defer resign()
	// The timer ends the leadership in time even if a request hangs.
	deadline := time.AfterFunc(left, resign)
	defer deadline.Stop()
	log.Info("leader election: this process leads")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		work(leading)
	}()
	lost := c.hold(leading, deadline, ended)
	finished = leading.Err() == nil && !lost
	lost = lost || leading.Err() != nil && ctx.Err() == nil
	resign()
	<-ended
	log.Info("leader election: this process leads no more", zap.Bool("lost", lost))
	if !lost {
		c.release(context.WithoutCancel(ctx))
	}
	return finished
}

// hold renews the Lease and resets the deadline until the work or its context has ended. lost is true if another candidate holds
// the Lease.
func (c *candidate) hold(leading context.Context, deadline *time.Timer, ended <-chan struct{}) (lost bool) {
	retry := time.NewTicker(c.RetryPeriod)
	defer retry.Stop()
	for {
		select {
		case <-leading.Done():
			return false
		case <-ended:
			return false
		case <-retry.C:
		}
		switch c.renew(leading) {
		case held:
			if leading.Err() != nil {
				return false // too late
			}
			deadline.Reset(time.Until(c.renewed.Add(c.RenewDeadline)))
		case taken:
			return true
		}
	}
}

// pause waits for about d, or until ctx ends. The random part spreads candidates that began at the same moment.
func pause(ctx context.Context, d time.Duration) {
	background.Pause(ctx, d+rand.N(d/5+1))
}

// candidate is one participant of the election. It belongs to one goroutine.
type candidate struct {
	Options
	leases Leases

	lease   *coordinationv1.Lease // as it was last read
	changed time.Time             // when lease was first read
	renewed time.Time             // the start of the last successful write of this candidate
}

// standing says who has the Lease.
type standing int8

const (
	open  standing = iota // unknown, or free later
	held                  // this candidate
	taken                 // another candidate
)

// acquire takes the Lease if it is free.
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

// renew renews the Lease that the candidate holds.
func (c *candidate) renew(ctx context.Context) standing {
	if c.take(ctx, c.lease) == held {
		return held
	}
	// Another candidate changed the Lease, or a write arrived whose answer was lost.
	lease, err := c.leases.Get(ctx, c.Namespace, c.Name)
	if apierrors.IsNotFound(err) {
		return taken // somebody deleted it: others may take it at once
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

// create creates the Lease, held by the candidate.
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

// sign sets the fields of a Lease that make the candidate its holder.
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

// see stores a Lease that was read, and the time if it has changed.
func (c *candidate) see(lease *coordinationv1.Lease) {
	if c.lease == nil || c.lease.UID != lease.UID || c.lease.ResourceVersion != lease.ResourceVersion || !equality.Semantic.DeepEqual(c.lease.Spec, lease.Spec) {
		c.lease, c.changed = lease, time.Now()
	}
}

// release gives up the Lease, unless another candidate holds it.
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
		c.see(lease) // a write arrived whose answer was lost
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

// durationOf returns how long the holder may go without a renewal.
func (c *candidate) durationOf(lease *coordinationv1.Lease) time.Duration {
	if s := lease.Spec.LeaseDurationSeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return c.LeaseDuration
}
