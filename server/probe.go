package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// probeTimeout is how long a health check waits for the storage.
const probeTimeout = 2 * time.Second

// probe asks the storage how it is, for health checks. However many of them ask, and however long the storage takes,
// one question is under way: who comes meanwhile gets its answer, and nobody waits longer than probeTimeout. Make
// one with newProbe.
type probe struct {
	ask  func(ctx context.Context) error
	life context.Context // ends what is under way

	mu      sync.Mutex // guards all below
	closed  bool
	current *answer // nil: no question is under way
}

// answer is what a question leads to: err is set before done is closed.
type answer struct {
	done chan struct{}
	err  error
}

func newProbe(life context.Context, ask func(ctx context.Context) error) *probe {
	return &probe{ask: ask, life: life}
}

// check is a Check's function.
func (p *probe) check(ctx context.Context) error {
	a := p.question()
	if a == nil {
		return errors.New("the server has ended")
	}
	timeout := time.NewTimer(probeTimeout)
	defer timeout.Stop()
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return fmt.Errorf("the storage has not answered for %v", probeTimeout)
	}
}

// question returns the question under way, or begins one. After close there is none.
func (p *probe) question() *answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.current != nil {
		return p.current
	}
	a := &answer{done: make(chan struct{})}
	p.current = a
	go func() {
		ctx, cancel := context.WithTimeout(p.life, probeTimeout)
		defer cancel()
		a.err = p.answer(ctx)
		p.mu.Lock()
		p.current = nil
		p.mu.Unlock()
		close(a.done)
	}()
	return a
}

// answer asks the storage. A panic of its is an answer: nothing else catches one in this goroutine.
func (p *probe) answer(ctx context.Context) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the storage's health check panicked: %v", v)
		}
	}()
	return p.ask(ctx)
}

// close lets no question begin any more and waits for the one under way, which ends with the probe's life. A storage
// that ignores its context is waited for no longer than probeTimeout: closing it is what may still release it.
func (p *probe) close() {
	p.mu.Lock()
	p.closed = true
	a := p.current
	p.mu.Unlock()
	if a == nil {
		return
	}
	timeout := time.NewTimer(probeTimeout)
	defer timeout.Stop()
	select {
	case <-a.done:
	case <-timeout.C:
	}
}
