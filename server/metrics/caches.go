package metrics

import (
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// cacheMetrics has the metrics of events in caches.
type cacheMetrics struct {
	received, events, filled, initial, outrun, voids *prometheus.CounterVec
	consistent                                       *prometheus.CounterVec
	filling, waited                                  *prometheus.HistogramVec
	state                                            *states
}

func newCacheMetrics(in *prometheus.Registry) *cacheMetrics {
	m := &cacheMetrics{
		received: counters(in, "apiserver_watch_cache_events_received_total",
			"Changes that caches have taken.", "group", "resource"),
		events: counters(in, "apiserver_storage_events_received_total",
			"Changes that the backend has told of.", "group", "resource"),
		filled: counters(in, "apiserver_watch_cache_initializations_total",
			"How often caches were filled.", "group", "resource"),
		filling: histograms(in, "apiserver_watch_cache_initialization_duration_seconds",
			"Time that it took to fill caches.", []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600}, "group", "resource"),
		waited: histograms(in, "apiserver_watch_cache_read_wait_seconds",
			"Time that reads waited for caches to reach a revision.",
			[]float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3}, "group", "resource"),
		consistent: counters(in, "apiserver_watch_cache_consistent_read_total",
			"Reads of the most recent state: whether a cache could answer them, and whether the backend did instead.",
			"group", "resource", "success", "fallback"),
		initial: counters(in, "apiserver_init_events_total",
			"Events that told watches the state that they begin with.", "group", "resource"),
		outrun: counters(in, "apiserver_terminated_watchers_total",
			"Watches that were ended because their clients read too slowly.", "group", "resource"),
		voids: counters(in, "keelson_cache_voids_total",
			"How often all that a cache had shown was void, and it was filled anew.", "group", "resource"),
		state: newStates(),
	}
	in.MustRegister(m.state)
	return m
}

// Cache returns the hooks that count the events in the cache of a resource.
func (m *Registry) Cache(of schema.GroupResource) cacher.Hooks {
	c, lists := m.caches, m.storage.from(of, fromCache)
	type changes struct{ received, events prometheus.Counter }
	changed := sync.OnceValue(func() changes {
		return changes{c.received.WithLabelValues(of.Group, of.Resource), c.events.WithLabelValues(of.Group, of.Resource)}
	})
	fresh := sync.OnceValue(func() prometheus.Counter { return c.consistent.WithLabelValues(of.Group, of.Resource, "true", "false") })
	return cacher.Hooks{
		Filled: func(f cacher.Filled) {
			c.filled.WithLabelValues(of.Group, of.Resource).Inc()
			c.filling.WithLabelValues(of.Group, of.Resource).Observe(f.Took.Seconds())
		},
		Void:   func(error) { c.voids.WithLabelValues(of.Group, of.Resource).Inc() },
		Listed: func(l cacher.Listed) { lists(l.Index, max(l.Evaluated, l.Returned), l.Evaluated, l.Returned) },
		Waited: func(took time.Duration) {
			c.waited.WithLabelValues(of.Group, of.Resource).Observe(took.Seconds())
		},
		Consistent: func(success, fallback bool) {
			switch {
			case success:
				fresh().Inc()
			case fallback:
				c.consistent.WithLabelValues(of.Group, of.Resource, "false", "true").Inc()
			default:
				c.consistent.WithLabelValues(of.Group, of.Resource, "false", "false").Inc()
			}
		},
		Received: func(n int) {
			counted := changed()
			counted.received.Add(float64(n))
			counted.events.Add(float64(n))
		},
		Initial: func(events int) {
			if events > 0 {
				c.initial.WithLabelValues(of.Group, of.Resource).Add(float64(events))
			}
		},
		Outrun: func() { c.outrun.WithLabelValues(of.Group, of.Resource).Inc() },
	}
}
