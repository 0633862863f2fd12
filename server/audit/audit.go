// Package audit says what is recorded of requests, for whom.
//
// A [Sink] is given an [Event] for each request that the audit policy records. A server keeps its sinks in a [Live], to which
// extensions add by Host.Audit. The events are those of
// https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/; no filter of this library makes any yet.
package audit

import (
	"context"
	"errors"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	"github.com/keelson-dev/keelson/runtime/live"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Level says how much of a request is recorded. The zero Level is nothing.
type Level int

// The levels, each of which records what the one before records, too.
const (
	None            Level = iota
	Metadata              // who, what and when
	Request               // the body of the request
	RequestResponse       // the body of the answer
)

// Stage says at which moment of a request an event was made.
type Stage string

// The stages, in their order. A request without a long answer has no ResponseStarted.
const (
	RequestReceived  Stage = "RequestReceived"
	ResponseStarted  Stage = "ResponseStarted"
	ResponseComplete Stage = "ResponseComplete"
	Panic            Stage = "Panic"
)

// Event is what is recorded of a request at one stage. A Sink must not change it, nor what it refers to.
type Event struct {
	ID        string // the Audit-Id of the answer
	Level     Level
	Stage     Stage
	Received  time.Time
	At        time.Time // of the stage
	URI       string
	UserAgent string
	SourceIPs []string
	// What was asked for, and by whom; Impersonated is in whose name, nil for in one's own.
	Attributes   authz.Attributes
	Impersonated *authn.User
	// Request and Response are bodies in JSON, at the levels that record them.
	Request, Response []byte
	Status            *metav1.Status // of the answer; nil before it is known
	Annotations       map[string]string
}

// Sink takes events. It is called concurrently, and while a request waits: a slow one queues, within bounds. An error is for
// the log.
type Sink interface {
	Record(ctx context.Context, events ...*Event) error
}

// Live are the sinks of a server, each known by its name. The zero Live is empty. All methods may be called concurrently; a
// Live must not be copied.
type Live struct{ members live.Members[Sink] }

// ErrMember is wrapped by the error of a Set that names no member.
var ErrMember = errors.New("a member needs a name and a sink")

// Set adds a sink, or replaces the one of that name.
func (l *Live) Set(name string, s Sink) error {
	if name == "" || s == nil {
		return ErrMember
	}
	l.members.Set(name, s, nil)
	return nil
}

// Remove takes a sink away, and reports whether there was one of that name.
func (l *Live) Remove(name string) bool { return l.members.Remove(name) }

// Names lists the sinks.
func (l *Live) Names() []string { return l.members.Names() }

// Record implements Sink: every sink gets the events.
func (l *Live) Record(ctx context.Context, events ...*Event) error {
	var errs []error
	for _, m := range *l.members.Now() {
		errs = append(errs, m.Value.Record(ctx, events...))
	}
	return errors.Join(errs...)
}
