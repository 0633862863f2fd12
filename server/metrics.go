package server

import (
	"github.com/keelson-dev/keelson/flowcontrol"
	"github.com/keelson-dev/keelson/server/internal/transport"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/storage"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics takes collectors of the program's own, whose metrics /metrics shows with those of the server. Those of the
// server belong to it alone, and are not in Prometheus' global registry.
func (s *Server) Metrics() prometheus.Registerer { return s.metrics.Registerer() }

// openMetrics makes the metrics, before what they are of.
func (s *Server) openMetrics() {
	s.metrics = metrics.New(metrics.Options{Version: s.version, Logger: s.opts.Observe.Logger})
	s.metrics.InFlight(s.inFlight.Peaks)
	s.metrics.Stored(func() []metrics.Stored { return s.set.Stored() }) // s.set comes later
	if s.forms != nil {
		s.metrics.Forms(s.forms.Stats)
	}
	if sizer, ok := storage.As[storage.Sizer](s.backend); ok {
		s.metrics.Size(sizer)
	}
}

// openBudgets makes what counts what clients hold.
func (s *Server) openBudgets() {
	conns := flowcontrol.NewBudget("connections", s.opts.Limits.Connections)
	s.connections = transport.NewConnections(conns, transport.ConnectionsOptions{
		Proxies: s.opts.Serving.Proxies, UnhandledBytes: unhandledBytes(), StrangerTime: s.opts.Limits.WriteTimeout,
	})
	s.watches = flowcontrol.NewBudget("watches", s.opts.Limits.Watches)
	s.metrics.Budget("connections", conns)
	s.bytes = flowcontrol.NewBudget("bytes held by requests", s.opts.Limits.Bytes)
	s.metrics.Budget("watches", s.watches)
	s.metrics.Budget("bytes", s.bytes)
	s.metrics.Displaced(s.connections.Displaced)
}

// serveMetrics serves the metrics to whom the authorizer lets have them.
func (s *Server) serveMetrics() error {
	if err := s.fixed.handle("/metrics", s.metrics.Handler()); err != nil {
		return err
	}
	return s.fixed.handle("/metrics/slis", s.metrics.SLIs())
}
