package metrics

import (
	"net/http"

	"github.com/keelson-dev/keelson/server/audit"
	"github.com/prometheus/client_golang/prometheus"
)

// audits are the metrics of audit.
type audits struct {
	events   prometheus.Counter
	errors   *prometheus.CounterVec
	levels   *prometheus.CounterVec
	rejected prometheus.Counter
}

func newAudits(in *prometheus.Registry) *audits {
	m := &audits{
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_event_total", Help: "Audit events that were given to a backend.",
		}),
		errors: counters(in, "apiserver_audit_error_total", "Audit events that a backend has not recorded.", "plugin"),
		levels: counters(in, "apiserver_audit_level_total", "Requests, by the level at which they are recorded.", "level"),
		rejected: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_audit_requests_rejected_total", Help: "Requests that were refused because a backend did not record them.",
		}),
	}
	in.MustRegister(m.events, m.rejected)
	return m
}

// Recorded counts an audit event that was given to a backend.
func (m *Registry) Recorded() { m.audits.events.Inc() }

// RecordedAt counts a request that is recorded at a level, which may be audit.None.
func (m *Registry) RecordedAt(l audit.Level) { m.audits.levels.WithLabelValues(string(l)).Inc() }

// NotRecorded counts audit events that a backend has not recorded.
func (m *Registry) NotRecorded(backend string, events int) {
	m.audits.errors.WithLabelValues(backend).Add(float64(events))
}

// Unrecorded counts a request that was refused because a strict backend has not recorded it.
func (m *Registry) Unrecorded(*http.Request) { m.audits.rejected.Inc() }
