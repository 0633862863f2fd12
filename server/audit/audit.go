// Package audit defines the audit events of requests, and the interface of their receivers.
//
// A [Sink] receives an [Event] for each request that the audit policy records. The events are those of
// https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/. This package has only the types: a server makes no events
// yet, and has no option for sinks.
package audit

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Level is how much of a request is recorded. The zero Level records nothing.
type Level int

// The levels. Each records everything that the one before records.
const (
	None            Level = iota // nothing is recorded
	Metadata                     // the user, the attributes and the times are recorded
	Request                      // the body of the request is recorded, too
	RequestResponse              // the body of the answer is recorded, too
)

// Stage is the moment of a request at which an event is made.
type Stage string

// The stages, in their order. Only a request with a long answer has ResponseStarted.
const (
	RequestReceived  Stage = "RequestReceived"  // the request has been received, and no handler has been called
	ResponseStarted  Stage = "ResponseStarted"  // the header of the answer has been sent, and the body has not ended
	ResponseComplete Stage = "ResponseComplete" // the body of the answer has been sent
	Panic            Stage = "Panic"            // the handler has panicked
)

// Event is the record of a request at one stage. A Sink must not change the Event, nor the values that its fields point to.
type Event struct {
	// ID is the Audit-Id of the answer.
	ID string
	// Level is the level at which the request is recorded.
	Level Level
	// Stage is the stage of the event.
	Stage Stage
	// Received is the time at which the request was received.
	Received time.Time
	// At is the time of the stage.
	At time.Time
	// URI is the URI of the request.
	URI string
	// UserAgent is the header User-Agent of the request.
	UserAgent string
	// SourceIPs are the addresses of the client and of proxies.
	SourceIPs []string
	// Attributes are the user and the object of the request.
	Attributes authz.Attributes
	// Impersonated is the user whom the request impersonates; nil is none.
	Impersonated *authn.User
	// Request and Response are the bodies in JSON, at the levels that record them.
	Request, Response []byte
	// Status is the Status of the answer; nil before the answer is known.
	Status *metav1.Status
	// Annotations are facts that authentication, authorization and admission have recorded.
	Annotations map[string]string
}

// Sink receives events.
type Sink interface {
	// Record records events. It is called concurrently, and the request waits until it returns: a slow Sink should have a bounded
	// queue. The error is for the log.
	Record(ctx context.Context, events ...*Event) error
}
