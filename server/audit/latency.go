package audit

import "time"

// latency is the beginning of the keys of annotations of slow requests.
const latency = "apiserver.latency.k8s.io/"

// slow is how long a slow request takes, as in kube-apiserver.
const slow = 500 * time.Millisecond

// addLatencies annotates the event of an answer that has ended, if the request was slow.
func (r *Recording) addLatencies(e *Event) {
	all := e.StageTimestamp.Sub(e.RequestReceivedTimestamp.Time)
	if r.long || e.Stage != ResponseComplete || all < slow {
		return
	}
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[latency+"total"] = all.String()
	if r.spent == nil {
		return
	}
	for part, took := range r.spent {
		e.Annotations[latency+part] = took.String()
	}
}
