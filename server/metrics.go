package server

import (
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/storage"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics returns a registerer for collectors of the program, whose metrics /metrics shows with those of the server. The metrics
// of the server are not in the global registry of Prometheus.
func (s *Server) Metrics() prometheus.Registerer { return s.metrics.Registerer() }

// openMetrics makes the metrics. It comes before the parts that the metrics measure.
func (s *Server) openMetrics() {
	s.metrics = metrics.New(metrics.Options{Version: s.version, Logger: s.opts.Observe.Logger})
	s.metrics.InFlight(s.inFlight.Peaks)
	s.metrics.Stored(func() []metrics.Stored { return s.set.Stored() }) // s.set is set later
	if s.forms != nil {
		s.metrics.Forms(s.forms.Stats)
	}
	if sizer, ok := storage.As[storage.Sizer](s.backend); ok {
		s.metrics.Size(sizer)
	}
}

// openBudgets makes the budgets of what clients may hold.
func (s *Server) openBudgets() {
	conns := flowcontrol.NewBudget("connections", s.opts.Limits.Connections)
	s.connections = transport.NewConnections(conns, transport.ConnectionsOptions{
		Proxies: s.opts.Serving.Proxies, UnhandledBytes: unhandledBytes(), RestTime: s.opts.Limits.WriteTimeout,
	})
	s.watches = flowcontrol.NewBudget("watches", s.opts.Limits.Watches)
	s.metrics.Budget("connections", conns)
	s.bytes = flowcontrol.NewBudget("bytes held by requests", s.opts.Limits.Bytes)
	s.metrics.Budget("watches", s.watches)
	s.metrics.Budget("bytes", s.bytes)
	s.metrics.Displaced(s.connections.Displaced)
}

// serveMetrics serves the metrics at their paths. The authorizer decides which users may read them.
func (s *Server) serveMetrics() error {
	if err := s.fixed.handle("/metrics", s.metrics.Handler()); err != nil {
		return err
	}
	return s.fixed.handle("/metrics/slis", s.metrics.SLIs())
}
