package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/keelson-dev/keelson/server/internal/background"
	"go.uber.org/zap"
)

// finish ends a server, which serves at a listener or, with the zero served, is mounted. Its steps are the whole end, in their order.
// When ctx ends, the steps do not wait any more, but none is left out. When Close is called, they do not wait for load balancers, for
// requests and for the turns of watches; clients still have Serving.CloseDelay to read the ends of their answers. A server that has
// failed does not wait for load balancers. unfinished says that some requests have not ended, and err is that of Close.
func (s *Server) finish(ctx context.Context, at *served, failed bool) (unfinished, err error) {
	if first := !s.leaving.Swap(true); first && !failed && s.life.Err() == nil { // /readyz fails from here on
		s.delay(ctx, at) // load balancers see that, and BeforeStop's functions run; requests are served as before
	}
	s.refuse() // new requests are refused, with 429 or with 503
	if !s.opts.Serving.ShutdownRetryAfter {
		at.stopListening() // before watches end, so that their clients connect to another server
	}
	unfinished = s.drain(ctx)                // requests finish, and watches end
	at.close(ctx, s.opts.Serving.CloseDelay) // the listener, if it is open still, and the connections
	s.endLasting()                           // the requests that have taken over their connections
	return unfinished, s.Close()             // background work, the caches, what extensions close, such as audit sinks, and the storage
}

// delay calls the functions of BeforeStop, and serves as before for Serving.ShutdownDelay, or until ctx ends, Close is called or the
// listener fails.
func (s *Server) delay(ctx context.Context, at *served) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.stop(ctx)
	}()
	defer func() { <-stopped }()
	select {
	case <-time.After(s.opts.Serving.ShutdownDelay):
	case <-ctx.Done():
	case <-at.over:
	}
}

// stop calls the functions that BeforeStop has added, all at the same time, and returns when they have returned. If some have not
// returned lastMoment after the end of their context, it logs their names and returns without them.
func (s *Server) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Limits.RequestTimeout)
	defer cancel()
	s.hooks.mu.Lock()
	stops := slices.Clone(s.hooks.stops)
	s.hooks.mu.Unlock()
	running, ended := map[int]string{}, make(chan int, len(stops))
	for i, one := range stops {
		running[i] = one.name
		go func() {
			if err := guarded(ctx, s.panics, one.run); err != nil {
				s.opts.Observe.Logger.Error("a function before the stop failed", zap.String("name", one.name), zap.Error(err))
			}
			ended <- i
		}()
	}
	late := make(chan struct{})
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastMoment, func() { close(late) }) })()
	for len(running) > 0 {
		select {
		case i := <-ended:
			delete(running, i)
		case <-late:
			names := slices.Sorted(maps.Values(running))
			s.opts.Observe.Logger.Error("functions before the stop have not returned", zap.Strings("names", names))
			return
		}
	}
}

// refuse answers new requests with an error from now on. Those that say how the server is, such as /livez, pass.
func (s *Server) refuse() {
	s.draining.Store(true)
	s.requests.Close()
}

// drain lets requests finish, and at the same time ends the watches over Serving.ShutdownWatchGrace. Then it waits until the watches
// have written their ends. The error says that some requests have not finished in their time.
func (s *Server) drain(ctx context.Context) error {
	err := s.endRequests(ctx)
	s.awaitWatches(ctx)
	return err
}

// endRequests ends the watches, and waits until all requests have ended. It stops waiting when ctx ends, when Close is called, and after
// the longer of Limits.RequestTimeout and Serving.ShutdownWatchGrace. The error is that some requests have not ended.
func (s *Server) endRequests(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(s.opts.Limits.RequestTimeout, s.opts.Serving.ShutdownWatchGrace))
	defer cancel()
	defer context.AfterFunc(s.unclosed, cancel)()
	watches := make(chan struct{})
	go func() {
		defer close(watches)
		s.endWatches(ctx)
	}()
	err := s.requests.Wait(ctx)
	<-watches
	return err
}

// endWatches ends the watches over their time, or when ctx ends, and then all that ends with the server.
func (s *Server) endWatches(ctx context.Context) {
	s.lasting.EndWatches(ctx, s.opts.Serving.ShutdownWatchGrace)
	s.end()
}

// awaitWatches waits until the watches, which end by themselves, have written their ends. A client that does not read holds it for
// CloseDelay, or for a tenth of a second if that is longer.
func (s *Server) awaitWatches(ctx context.Context) {
	end := time.Now().Add(max(s.opts.Serving.CloseDelay, time.Second/10))
	for pauses := background.Doubling(time.Millisecond, 10*time.Millisecond); s.watches.Held() > 0 && time.Now().Before(end); {
		select {
		case <-time.After(pauses.Step()):
		case <-ctx.Done():
			return
		}
	}
}

// endLasting ends the requests that last and have not ended with the others.
func (s *Server) endLasting() {
	ctx, cancel := context.WithTimeout(context.Background(), lastMoment)
	defer cancel()
	s.lasting.End(ctx)
}

// Close ends the server, whether it is served or not; Run or Serve then returns. Watches end, Close waits for background work,
// and the caches and the storage are closed. Close does not wait for requests, which then fail: see [Server.Shutdown]. Each call
// of Close returns the error of closing the storage.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.beginClose()
		s.end()
		s.mu.Lock()   // a start of work has ended, or sees that the server has ended
		s.mu.Unlock() //nolint:staticcheck // nothing is to be done in between
		s.background.Wait()
		if s.loopback != nil {
			s.loopback.close() // after the background work, which may be its client
		}
		s.endProbes()
		for _, p := range s.probes {
			p.close()
		}
		if s.set != nil {
			s.set.End()
		}
		s.mu.Lock()
		s.ended = true
		closers := s.closers
		s.mu.Unlock()
		for _, f := range slices.Backward(closers) {
			f()
		}
		if s.set != nil {
			s.set.Close()
		}
		if s.backend != nil {
			if err := s.backend.Close(); err != nil {
				s.closed = fmt.Errorf("server: close storage: %w", err)
			}
		}
	})
	return s.closed
}
