package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
)

// probeTimeout is how long a health check waits for the storage.
const probeTimeout = 2 * time.Second

var errServerEnded = errors.New("the server has ended")

// probe calls the storage for health checks. It makes one call at a time, however many checks there are and
// however long the storage takes. Checks that come during a call get its result. No check waits longer than probeTimeout. Make
// one with newProbe.
type probe struct {
	ask    func(ctx context.Context) error
	life   context.Context // its end ends a call; no call begins after it
	flight singleflight.Group
}

func newProbe(life context.Context, ask func(ctx context.Context) error) *probe {
	return &probe{ask: ask, life: life}
}

// check is the function of a Check.
func (p *probe) check(ctx context.Context) error {
	timeout := time.NewTimer(probeTimeout)
	defer timeout.Stop()
	select {
	case a := <-p.flight.DoChan("", p.question):
		return a.Err
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return fmt.Errorf("the storage has not answered for %v", probeTimeout)
	}
}

// question calls the storage. It returns a panic of the storage as an error: nothing else catches one in this goroutine.
func (p *probe) question() (_ any, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the storage's health check panicked: %v", v)
		}
	}()
	if p.life.Err() != nil {
		return nil, errServerEnded
	}
	ctx, cancel := context.WithTimeout(p.life, probeTimeout)
	defer cancel()
	return nil, p.ask(ctx)
}

// close waits for a call that has begun. life must have ended, which ends the call. If the storage ignores its context, close
// waits no longer than probeTimeout: closing the storage may then end the call.
func (p *probe) close() { _ = p.check(context.Background()) }
