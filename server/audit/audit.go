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
//
// # Levels
//
// At [Metadata], events have the user, the attributes, the times, the annotations, and the Status of an answer that is one. The
// object of a request gives its name, namespace, uid and resourceVersion to ObjectRef, as far as the URL does not have them. An
// event takes a few microseconds and about a thousand bytes.
//
// At [Request], events have the RequestObject, too:
//
//   - of a create or an update, the object that was decoded: without its unknown fields if it has a Go type, and before the server
//     has changed anything in it, such as its namespace;
//   - of a patch, the patch as it was sent. One in YAML or CBOR is converted to JSON;
//   - of a delete with a body, the DeleteOptions, in the version meta.k8s.io/__internal, as kube-apiserver has them.
//
// There is none if the body could not be decoded, or if the request was refused before that. An object is encoded once, for all
// backends and stages.
//
// At [RequestResponse], events have the ResponseObject, too: the object, the list, the Table, the discovery document or the Status
// that was answered. It is JSON also if the answer is YAML, CBOR or protobuf. The bytes of an answer in JSON are copied, and those of
// other answers are encoded for the event. The copy counts in the byte limits of the server until the last event is made. The answer is
// the same as without a copy. If an answer has more than 16 MiB, it is not recorded, and the event has [TruncatedAnnotation];
// kube-apiserver records lists of any length. An answer costs its size once more: in BenchmarkAudit of package server the get of an
// object of 2 KB takes a tenth longer, its create three tenths, and the list of 1000 such objects, whose copy has 2 MB, more than
// twice as long. At Metadata a get or a create takes at most 4 µs longer, the write of the sink aside. A watch, a stream, and a path that is no resource have no objects. An answer in a format
// that the client does not accept is not recorded either, as in kube-apiserver.
//
// Objects are recorded as they are: at [Request] and [RequestResponse], events also hold the token of a TokenReview or a TokenRequest
// and the data of Secrets. A policy needs a rule before its others that keeps these at Metadata:
//
//	rules:
//	- level: Metadata
//	  resources:
//	  - group: ""
//	    resources: ["secrets", "serviceaccounts/token"]
//	  - group: authentication.k8s.io
//	    resources: ["tokenreviews"]
//
// An answer that cannot be copied, or has no room in the byte limits, is not recorded either: its event has [TruncatedAnnotation]. A
// request body is bounded by the server's limits, and so is its object in an event. OmitManagedFields leaves metadata.managedFields out
// of objects, but not out of patches, as in kube-apiserver.
//
// A request for which no rule asks for more than Metadata costs nothing of this.
//
// # When a sink fails
//
// A request does not fail because of a sink, unless Backend.Strict is set and its RequestReceived cannot be recorded: then the answer is
// 500. If a policy omits that stage, Strict has no effect. Events that a sink does not take, or that a [Batch] loses later, are lost.
// They are counted in the metric apiserver_audit_error_total of the backend, and a server logs at most 10 lines a second about them.
// When a disk has room again, a log goes on. A sink that does not return holds the requests that it records, also those to the health
// paths, unless the policy has a rule for them at None or a Batch is in front of the sink.
//
// # Slow requests
//
// The event of an answer that has ended says how long the request and its parts took, if that was at least 500 ms and the request is
// not long-running: the annotations apiserver.latency.k8s.io/total, authentication, apf-queue-wait, authorization, etcd (all waiting for
// the storage), serialize-response-object and response-write, as in kube-apiserver. A part that took no time has none. The other parts
// that kube-apiserver has, such as mutating-webhook, are not measured.
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

// The stages, in their order. A request that is refused because of its credentials, with 401, has only the stage ResponseStarted, as in
// kube-apiserver: a policy that omits it records none of these.
const (
	RequestReceived  Stage = "RequestReceived"  // the user is known, and no handler has been called
	ResponseStarted  Stage = "ResponseStarted"  // the header of a long answer, such as that of a watch, has been written
	ResponseComplete Stage = "ResponseComplete" // the answer has ended
	Panic            Stage = "Panic"            // the handler has panicked
)
