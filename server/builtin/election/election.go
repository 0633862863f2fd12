package election

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// Leases are where the Lease is: a *registry.Typed[*coordinationv1.Lease]. Update must refuse, with a Conflict, a Lease
// whose resourceVersion is not the stored one, and Create one that exists, with AlreadyExists.
type Leases interface {
	Get(ctx context.Context, namespace, name string) (*coordinationv1.Lease, error)
	Create(ctx context.Context, namespace string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
	Update(ctx context.Context, namespace string, lease *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// Options are how a candidate takes part. Namespace and Name, of the Lease, are required.
type Options struct {
	Namespace, Name string
	// Identity is the candidate's own name in the Lease: no two candidates, in whatever processes, may have the same.
	// Default: the name of the host and a random part.
	Identity string
	// LeaseDuration is how long others wait for a leader that is silent, in whole seconds; 15 s by default.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it gives up, shorter than LeaseDuration; 10 s by default.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two looks at the Lease, shorter than RenewDeadline; 2 s by default.
	RetryPeriod time.Duration
	// Logger is told who leads, of failures in debug lines, and of panics of the Leases as errors; nil is silent.
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

// Run takes part in the election until ctx ends or lead, which it calls whenever it leads, returns of its own accord. The
// context of lead ends before anybody else may lead, or with ctx; Run waits for lead to return, and after an end that was
// not forced gives the Lease back, so that others need not wait. A leadership that is lost is run for again.
//
// The error says what is wrong with the options; whatever fails later is tried again.
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

// lead leads until the leadership is lost, ctx ends or work returns. It returns true when work did, and nothing had asked it
// to.
func (c *candidate) lead(ctx context.Context, work func(ctx context.Context)) (finished bool) {
	left := time.Until(c.renewed.Add(c.RenewDeadline))
	if left <= 0 { // the answer came too late
		return false
	}
	log := c.Logger.With(zap.String("lease", c.Namespace+"/"+c.Name), zap.String("identity", c.Identity))
	leading, resign := context.WithCancel(ctx)
	defer resign()
	// The deadline is kept whatever a request does that is under way.
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

// hold renews the Lease, and with it the deadline, until the work or its context has ended, or somebody else holds the
// Lease: then it returns true.
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

// pause waits for about d, so that candidates which began at the same moment spread, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d + rand.N(d/5+1))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
