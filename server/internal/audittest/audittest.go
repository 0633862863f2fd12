// Package audittest has an audit sink for tests.
package audittest

import (
	"context"
	"slices"
	"sync"

	"github.com/keelson-dev/keelson/server/audit"
)

// Log is a sink that keeps events. All methods may be called concurrently.
type Log struct {
	Err error // the error of Record, which keeps the events nevertheless

	mu     sync.Mutex // guards events
	events []*audit.Event
}

// Record implements audit.Sink.
func (l *Log) Record(_ context.Context, events ...*audit.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, events...)
	return l.Err
}

// Events returns the events.
func (l *Log) Events() []*audit.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// Take returns the events since the last call of Take.
func (l *Log) Take() []*audit.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.events
	l.events = nil
	return taken
}
