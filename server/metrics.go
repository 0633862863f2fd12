package server

import (
	"context"
	"slices"

	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/registry"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics takes collectors of the program's own, whose metrics /metrics shows with those of the server. Those of the
// server belong to it alone, and are not in Prometheus' global registry.
func (s *Server) Metrics() prometheus.Registerer { return s.metrics.Registerer() }

// openMetrics makes the metrics, before what they are of.
func (s *Server) openMetrics() {
	s.metrics = metrics.New(metrics.Options{Version: s.version, Logger: s.opts.Observe.Logger})
	s.metrics.InFlight(s.inFlight.Peaks)
	s.metrics.Stored(s.storedResources)
	if s.forms != nil {
		s.metrics.Forms(s.forms.Stats)
	}
}

// serveMetrics serves the metrics to whom the authorizer lets have them.
func (s *Server) serveMetrics() error {
	if err := s.fixed.handle("/metrics", s.metrics.Handler()); err != nil {
		return err
	}
	return s.fixed.handle("/metrics/slis", s.metrics.SLIs())
}

// metered lists what is served. The caller holds mu.
func (s *Server) metered() []metrics.Resource {
	out := make([]metrics.Resource, 0, 2*len(s.served))
	for _, r := range s.served {
		if r.unserved || r.pending {
			continue
		}
		if r.said.metrics == nil {
			r.said.metrics = []metrics.Resource{{GroupVersionResource: r.gvr, Deprecated: r.deprecated != "", Connect: connectMethods(r.custom)}}
			for _, name := range r.subNames() {
				r.said.metrics = append(r.said.metrics, metrics.Resource{
					GroupVersionResource: r.gvr, Subresource: name, Deprecated: r.deprecated != "", Connect: connectMethods(r.subs[name].Storage),
				})
			}
		}
		out = append(out, r.said.metrics...)
	}
	return out
}

// connectMethods are the methods of requests that connect to a storage; nil for one that cannot be connected to.
func connectMethods(storage any) []string {
	if c, ok := storage.(registry.Connecter); ok {
		return c.ConnectMethods()
	}
	return nil
}

// storedResources lists what is stored and served now.
func (s *Server) storedResources() []metrics.Stored {
	s.mu.Lock()
	all := slices.DeleteFunc(slices.Clone(s.served), func(r *served) bool { return r.pending })
	s.mu.Unlock()
	var out []metrics.Stored
	for _, r := range all {
		if r.objects == nil {
			continue
		}
		one := metrics.Stored{GroupResource: r.gvr.GroupResource(), Count: s.counter("/registry/" + r.path())}
		if r.cache != nil {
			one.Stats = func() cacher.Stats { return r.cache.Stats() }
		}
		out = append(out, one)
	}
	return out
}

// counter counts the objects below a prefix.
func (s *Server) counter(prefix string) func(ctx context.Context) (int64, error) {
	return func(ctx context.Context) (int64, error) {
		res, err := s.backend.Range(ctx, storage.Range{From: prefix + "/", To: prefix + "0", CountOnly: true}) // "0" follows "/"
		return res.Count, err
	}
}
