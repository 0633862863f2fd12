// Package audit says what is recorded of requests, for whom.
//
// A [Sink] is given an [Event] for each request that the audit policy records. The events are those of
// https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/. This is the contract alone: a server makes no events yet,
// and takes no sinks.
package audit

import (
	"context"
	"time"

	"github.com/keelson-dev/keelson/authn"
	"github.com/keelson-dev/keelson/authz"
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
