package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/zap"
)

// New makes a registry.
func New(o Options) *Registry {
	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}
	m := &Registry{all: prometheus.NewRegistry(), slis: prometheus.NewRegistry(), log: o.Logger}
	m.all.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(o.Version),
	)
	m.requests = newRequests(m.all)
	m.watches = newWatches(m.all)
	m.access = newAccess(m.all)
	m.storage = newStorageMetrics(m.all)
	m.caches = newCacheMetrics(m.all)
	m.checks = newChecks(m.slis)
	m.audits = newAudits(m.all)
	m.handshakes = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "apiserver_tls_handshake_errors_total",
		Help: "Connections that ended with a failed TLS handshake.",
	})
	m.all.MustRegister(m.handshakes)
	return m
}
