package audit

import (
	"errors"
	"fmt"

	"github.com/keelson-dev/keelson/runtime/live"
)

// Backend is a policy and a sink for the events that the policy demands.
type Backend struct {
	Name   string // the name, for messages and to replace the backend
	Policy *Policy
	Sink   Sink
	// Strict refuses a request whose event RequestReceived cannot be recorded, with the code 500, as the mode blocking-strict of
	// kube-apiserver does. It has no effect in front of a [Batch], which does not know that early whether an event is recorded.
	Strict bool
}

// Check returns an error if a backend cannot be used: it wraps ErrBackend, or says what is wrong with the policy.
func (b Backend) Check() error {
	if b.Name == "" || b.Policy == nil || b.Sink == nil {
		return fmt.Errorf("%w: %q", ErrBackend, b.Name)
	}
	return b.Policy.Validate()
}

// ErrBackend is the error of Backend.Check if the backend has no name, no policy or no sink.
var ErrBackend = errors.New("an audit backend needs a name, a policy and a sink")

// Backends are the backends of a [Live] at one time. The zero Backends has none.
type Backends struct{ members *[]live.Member[Backend] }

// Empty reports whether there are no backends.
func (b Backends) Empty() bool { return b.members == nil || len(*b.members) == 0 }

// Live has backends that may be added, replaced and removed while requests are recorded. A request is recorded by the backends that
// one call of [Live.Now] returned: a change has an effect on later requests only. The zero Live has no backends. All methods may be
// called concurrently. A Live must not be copied.
type Live struct{ members live.Members[Backend] }

// Set adds a backend, or replaces the backend with this name. The error is that of Backend.Check.
func (l *Live) Set(b Backend) error {
	if err := b.Check(); err != nil {
		return err
	}
	l.members.Set(b.Name, b, nil)
	return nil
}

// Remove removes a backend, and reports whether there was one with this name. Requests that began before may still be recorded by
// it.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names returns the names of the backends.
func (l *Live) Names() []string { return l.members.Names() }

// Now returns the present backends.
func (l *Live) Now() Backends { return Backends{l.members.Now()} }
