package metrics

import (
	"time"

	"github.com/keelson-dev/keelson/authz"
	"github.com/prometheus/client_golang/prometheus"
)

// Authorizers has the metrics of authorizers, with the names of kube-apiserver: for Options of package authz/config and Hooks of package
// authz/webhook. Make one with NewAuthorizers. Its methods may be called concurrently.
type Authorizers struct {
	in                             prometheus.Registerer
	decided                        *prometheus.CounterVec
	attempts, failedOpen           *prometheus.CounterVec
	took, matching                 *prometheus.HistogramVec
	conditionErrors, conditionsOut *prometheus.CounterVec
	config                         *configInfo
}

// webhookType is the type of an authorizer that has conditions.
const webhookType = "Webhook"

// NewAuthorizers adds the metrics to a registry. The error says that it has them already.
func NewAuthorizers(in prometheus.Registerer) (*Authorizers, error) {
	const prefix = "apiserver_authorization_"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, labels)
	}
	m := &Authorizers{
		in:              in,
		decided:         counter("decisions_total", "Verdicts of authorizers, except no opinion: allowed or denied.", "decision", "name", "type"),
		attempts:        counter("webhook_evaluations_total", "Attempts to ask an authorization webhook, by result: success, error, timeout or canceled.", "name", "result"),
		failedOpen:      counter("webhook_evaluations_fail_open_total", "Requests of which a failed authorization webhook had no opinion, by result: error, timeout or canceled.", "name", "result"),
		took:            histogram("webhook_duration_seconds", "Time that an attempt to ask an authorization webhook took.", []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}, "name", "result"),
		matching:        histogram("match_condition_evaluation_seconds", "Time that the match conditions of an authorizer took.", []float64{0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25}, "name", "type"),
		conditionErrors: counter("match_condition_evaluation_errors_total", "Requests for which a match condition of an authorizer failed.", "name", "type"),
		conditionsOut:   counter("match_condition_exclusions_total", "Requests about which an authorizer was not asked, because of its match conditions.", "name", "type"),
		config:          newConfigInfo("authorization"),
	}
	if err := registerAll(in, m.all()); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Authorizers) all() []prometheus.Collector {
	return []prometheus.Collector{m.decided, m.attempts, m.failedOpen, m.took, m.matching, m.conditionErrors, m.conditionsOut, m.config}
}

// Close removes the metrics from the registry.
func (m *Authorizers) Close() {
	for _, c := range m.all() {
		m.in.Unregister(c)
	}
}

// Decided counts a verdict.
func (m *Authorizers) Decided(typ, name string, v authz.Verdict) {
	switch v {
	case authz.Allow:
		m.decided.WithLabelValues("allowed", name, typ).Inc()
	case authz.Deny:
		m.decided.WithLabelValues("denied", name, typ).Inc()
	}
}

// Attempted counts an attempt to ask a webhook.
func (m *Authorizers) Attempted(name, result string, took time.Duration) {
	m.attempts.WithLabelValues(name, result).Inc()
	m.took.WithLabelValues(name, result).Observe(took.Seconds())
}

// FailedOpen counts a failure of a webhook that is no opinion.
func (m *Authorizers) FailedOpen(name, result string) {
	m.failedOpen.WithLabelValues(name, result).Inc()
}

// Matched counts an evaluation of the match conditions of a webhook.
func (m *Authorizers) Matched(name string, asked bool, err error, took time.Duration) {
	m.matching.WithLabelValues(name, webhookType).Observe(took.Seconds())
	switch {
	case err != nil:
		m.conditionErrors.WithLabelValues(name, webhookType).Inc()
	case !asked:
		m.conditionsOut.WithLabelValues(name, webhookType).Inc()
	}
}

// Configured tells of the content of a configuration file, which is now in use.
func (m *Authorizers) Configured(content []byte) { m.config.set(content) }
