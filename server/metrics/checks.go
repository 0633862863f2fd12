package metrics

import (
	"bytes"
	"io"

	"github.com/prometheus/client_golang/prometheus"
)

// checks are the metrics of health checks.
type checks struct {
	last  *prometheus.GaugeVec
	total *prometheus.CounterVec
}

func newChecks(in *prometheus.Registry) *checks {
	return &checks{
		last: gauges(in, "kubernetes_healthcheck", "1 if the health check passed when it was last made, else 0.", "name", "type"),
		total: counters(in, "kubernetes_healthchecks_total",
			"Health checks that were made, by status: success or error.", "name", "type", "status"),
	}
}

// Checked counts one call of a health check for an endpoint, such as readyz.
func (m *Registry) Checked(name, endpoint string, err error) {
	value, status := 1.0, "success"
	if err != nil {
		value, status = 0, "error"
	}
	m.checks.last.WithLabelValues(name, endpoint).Set(value)
	m.checks.total.WithLabelValues(name, endpoint, status).Inc()
}

// ServerErrors returns a writer for the log of an http.Server. It counts the failed TLS handshakes, and writes everything to w.
func (m *Registry) ServerErrors(w io.Writer) io.Writer { return serverErrors{w, m.handshakes} }

type serverErrors struct {
	io.Writer
	handshakes prometheus.Counter
}

// Write implements io.Writer.
func (s serverErrors) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("TLS handshake error")) {
		s.handshakes.Inc()
	}
	return s.Writer.Write(line)
}
