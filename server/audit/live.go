package audit

import (
	"errors"

	"github.com/keelson-dev/keelson/runtime/live"
)

// Backend is a policy and a sink for the events that the policy demands.
type Backend struct {
	Policy *Policy
	Sink   Sink
	// Strict refuses a request whose event RequestReceived cannot be recorded, with the code 500, as the mode blocking-strict of
	// kube-apiserver does. It has no effect in front of a [Batch], which does not know that early whether an event is recorded.
	Strict bool
}

// Backends are named backends at one time. They must not be changed.
type Backends []live.Member[Backend]

// Live has named backends, which may be added, replaced and removed while requests are recorded. A request is recorded by the
// backends that one call of [Live.Now] returned: a change has an effect on later requests only. The zero Live has no backends. All
// methods may be called concurrently. A Live must not be copied.
type Live struct{ members live.Members[Backend] }

// ErrBackend is the error of Live.Set if the name is empty or the backend has no policy or no sink.
var ErrBackend = errors.New("an audit backend needs a name, a policy and a sink")

// Set adds a backend, or replaces the backend with this name. The error wraps ErrBackend, or says what is wrong with the policy.
func (l *Live) Set(name string, b Backend) error {
	if name == "" || b.Policy == nil || b.Sink == nil {
		return ErrBackend
	}
	if err := b.Policy.Validate(); err != nil {
		return err
	}
	l.members.Set(name, b, nil)
	return nil
}

// Remove removes a backend, and reports whether there was one with this name. Requests that began before may still be recorded by
// it.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names returns the names of the backends.
func (l *Live) Names() []string { return l.members.Names() }

// Now returns the present backends.
func (l *Live) Now() Backends { return Backends(*l.members.Now()) }
