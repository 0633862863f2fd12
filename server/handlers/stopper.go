package handlers

import (
	"context"
	"sync"
)

// stopper cancels the watches of a resource when stop is closed. While there are watches, one goroutine waits for stop. The last
// watch to leave ends the goroutine and waits for its end.
type stopper struct {
	stop <-chan struct{} // if nil, watches are not canceled

	mu      sync.Mutex                       // guards all below
	cancels map[*context.CancelFunc]struct{} // of the watches that run
	idle    chan struct{}                    // closed by the last watch to leave
	done    chan struct{}                    // closed when the goroutine has ended
}

// join arranges that cancel is called when stop is closed. If stop is closed already, join calls cancel. leave must be called
// exactly once, when the watch has ended.
func (s *stopper) join(cancel context.CancelFunc) (leave func()) {
	if s.stop == nil {
		return func() {}
	}
	key := &cancel
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cancels) == 0 {
		s.cancels = map[*context.CancelFunc]struct{}{}
		s.idle, s.done = make(chan struct{}), make(chan struct{})
		go s.wait(s.idle, s.done)
	}
	s.cancels[key] = struct{}{}
	select {
	case <-s.stop: // the goroutine may have seen that before
		cancel() // in this case the goroutine may have called all cancels before
	default:
	}
	return func() { s.leave(key) }
}

func (s *stopper) leave(key *context.CancelFunc) {
	s.mu.Lock()
	delete(s.cancels, key)
	idle, done := s.idle, s.done
	last := len(s.cancels) == 0
	s.mu.Unlock()
	if last {
		close(idle)
		<-done
	}
}

func (s *stopper) wait(idle <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	select {
	case <-idle:
		return
	case <-s.stop:
	}
	s.mu.Lock()
	for cancel := range s.cancels {
		(*cancel)()
	}
	s.mu.Unlock()
	<-idle
}
