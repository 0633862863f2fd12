package server

import (
	"context"
	"fmt"
	"time"

	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
)

// look waits in the background until the server is ready for the first time, for a server whose handler gets requests without Run
// or Serve. It has an effect once, and ends with the server.
func (s *Server) look() {
	s.looking.Do(func() {
		s.start(func() { s.waitReady(s.life) })
	})
}

// unready is the pause before the next check of a server from which on a failure is logged as a warning.
const unready = 100 * time.Millisecond

// waitReady waits until every check passes, and returns true: from then on the server is whole, which means that it has begun to
// serve everything that its extensions serve at the start. It returns false soon after ctx or the server ends.
func (s *Server) waitReady(ctx context.Context) bool {
	pauses := background.Doubling(time.Millisecond, time.Second)
	var reasons repeated
	for {
		err := s.askReady(ctx)
		if err == nil {
			s.whole.Store(true)
			return true
		}
		if ctx.Err() != nil || s.life.Err() != nil {
			return false
		}
		pause := pauses.Step()
		switch {
		case pause < unready: // hooks take a moment
			s.opts.Observe.Logger.Debug("not ready yet", zap.Error(err))
		case reasons.take(time.Now(), err.Error()):
			s.opts.Observe.Logger.Warn("not ready yet", zap.Error(err))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		case <-s.life.Done():
		}
	}
}

// CheckReady makes the checks of /readyz. The error is that of the first check that fails. Its text has the name of the check and
// the reason; /readyz does not show the reason.
func (s *Server) CheckReady(ctx context.Context) error {
	for _, c := range s.health.of("readyz") {
		if err := c.Check(ctx); err != nil && !c.advises {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return nil
}

// lastMoment is the time in which functions whose context has ended should return.
const lastMoment = time.Second

// askReady is CheckReady with a context that ends after readyWait. When ctx or the server ends, it does not wait longer than
// lastMoment for a check that ignores its context.
func (s *Server) askReady(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.life, stop)()
	asked, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	answer := make(chan error, 1)
	go func() { answer <- guarded(asked, s.panics, s.CheckReady) }()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-answer:
		return err
	case <-time.After(lastMoment):
		return ctx.Err()
	}
}
