package audit

import "time"

// Part is a part of the time that a request takes.
type Part int

// The parts that a server measures. Each is an annotation of slow requests.
const (
	Authentication Part = iota // authentication
	Queueing                   // apf-queue-wait: until the flow controller lets the request pass; none for requests that do not wait
	Authorization              // authorization
	Serializing                // serialize-response-object: encoding an answer and writing it
	Writing                    // response-write: writing an answer to the client, which is a part of Serializing
	parts                      // their number
)

// latencies are the keys of the annotations of the parts, and of the whole request.
var latencies = [parts + 1]string{
	latency + "authentication", latency + "apf-queue-wait", latency + "authorization", latency + "serialize-response-object",
	latency + "response-write", latency + "total",
}

const latency = "apiserver.latency.k8s.io/"

// slow is how long a slow request takes, as in kube-apiserver.
const slow = 500 * time.Millisecond

// Now returns the time for [Recording.Since]. It is zero if the parts of the request are not measured.
func (r *Recording) Now() time.Time {
	if r == nil || r.long {
		return time.Time{}
	}
	return time.Now()
}

// Since says that a part of the request began at a time that Now returned, and ends now.
func (r *Recording) Since(p Part, from time.Time) {
	if !from.IsZero() {
		r.Took(p, time.Since(from))
	}
}

// Took says how long a part of the request took. The times of a part add up.
func (r *Recording) Took(p Part, d time.Duration) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took[p] += d
}

// addLatencies annotates the event of an answer that has ended, if the request was slow.
func (r *Recording) addLatencies(e *Event) {
	all := e.StageTimestamp.Sub(e.RequestReceivedTimestamp.Time)
	if r.long || e.Stage != ResponseComplete || all < slow {
		return
	}
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[latencies[parts]] = all.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, d := range r.took {
		if d > 0 {
			e.Annotations[latencies[p]] = d.String()
		}
	}
}
