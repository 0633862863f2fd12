package metrics

import (
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/prometheus/client_golang/prometheus"
)

// Budget adds metrics of b: how much of b is held, its bounds, and how often it has rejected a request or connection. The metrics
// have the label "what" with the value what. Budget is called at most once for each value of what.
func (m *Registry) Budget(what string, b *flowcontrol.Budget) {
	labels := prometheus.Labels{"what": what}
	m.all.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "keelson_budget_held", ConstLabels: labels,
			Help: "How much clients hold of what is bounded: connections, watches and others.",
		}, func() float64 { return float64(b.Held()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "keelson_budget_rejected_total", ConstLabels: labels,
			Help: "How often a client was turned away since it would have held more than a bound allows.",
		}, func() float64 { return float64(b.Rejected()) }),
	)
	bounds := b.Bounds()
	for of, most := range map[string]int64{"all": bounds.All, "user": bounds.User, "address": bounds.Address} {
		if most < 0 {
			continue
		}
		limit := prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "keelson_budget_limit", ConstLabels: prometheus.Labels{"what": what, "of": of},
			Help: "How much all clients, one user or one address may hold of what is bounded.",
		})
		limit.Set(float64(most))
		m.all.MustRegister(limit)
	}
}

// Displaced adds a metric of the connections that were closed to make room for others; count is called at each scrape. Displaced
// is called at most once.
func (m *Registry) Displaced(count func() int64) {
	m.all.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "keelson_connections_displaced_total",
		Help: "Connections without a request that were closed to make room for others.",
	}, func() float64 { return float64(count()) }))
}
