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

// probe asks the storage how it is, for health checks. However many of them ask, and however long the storage takes,
// one question is under way: who comes meanwhile gets its answer, and nobody waits longer than probeTimeout. Make
// one with newProbe.
type probe struct {
	ask    func(ctx context.Context) error
	life   context.Context // ends what is under way; no question begins after it
	flight singleflight.Group
}

func newProbe(life context.Context, ask func(ctx context.Context) error) *probe {
	return &probe{ask: ask, life: life}
}

// check is a Check's function.
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

// question asks the storage. A panic of its is an answer: nothing else catches one in this goroutine.
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

// close waits for the question under way, which ends with the probe's life, which is over. A storage that ignores its
// context is waited for no longer than probeTimeout: closing it is what may still release it.
func (p *probe) close() { _ = p.check(context.Background()) }
