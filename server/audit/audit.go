// Package audit records who asked a server for what, and what came of it.
//
// A [Policy] says which requests are recorded, at which [Level] and at which [Stage]. For each stage of a recorded request, a
// [Sink] receives an [Event]. Policies and events are those of
// https://kubernetes.io/docs/reference/config-api/apiserver-audit.v1/: a policy file of kube-apiserver can be used as it is, except
// that fields it does not have are an error here.
//
//	policy, err := audit.ParsePolicy(text)
//	file, err := logfile.Open("/var/log/audit.log", logfile.Options{})
//	log, err := audit.NewLog(file, audit.JSONLines)
//	options.Policy.Audit = []audit.Backend{{Name: "log", Policy: policy, Sink: log}}
//
// Package logfile below this one has files that begin anew when they are large, and package webhook sends events to an HTTP server.
// Requests wait for their sinks: [NewBatch] makes a sink that they do not wait for, and [Truncate] one that bounds the size of events.
// A server records the user, the attributes and the times of requests; it refuses policies with the levels Request and
// RequestResponse, since it does not record objects yet.
package audit

import "slices"

// Level is how much of a request is recorded. "" is None.
type Level string

// The levels. Each records everything that the one before records.
const (
	None            Level = "None"            // nothing is recorded
	Metadata        Level = "Metadata"        // the user, the attributes and the times are recorded
	Request         Level = "Request"         // the object of the request is recorded, too
	RequestResponse Level = "RequestResponse" // the object of the answer is recorded, too
)

var levels = [...]Level{None, Metadata, Request, RequestResponse}

// AtLeast reports whether l records everything that other records. A level that does not exist records nothing.
func (l Level) AtLeast(other Level) bool {
	return slices.Index(levels[:], l) >= max(0, slices.Index(levels[:], other))
}

// Stage is the moment of a request at which an event is made.
type Stage string

// The stages, in their order.
const (
	RequestReceived  Stage = "RequestReceived"  // the user is known, and no handler has been called
	ResponseStarted  Stage = "ResponseStarted"  // the header of a long answer, such as that of a watch, has been written
	ResponseComplete Stage = "ResponseComplete" // the answer has ended
	Panic            Stage = "Panic"            // the handler has panicked
)
