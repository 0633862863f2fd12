package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Stored is a resource whose objects are stored.
type Stored struct {
	schema.GroupResource
	// Stats returns the statistics of its cache; it is nil for a resource without a cache.
	Stats func() cacher.Stats
	// Count returns the number of objects in the backend. It is called if the resource has no cache, or the cache is not filled.
	Count func(ctx context.Context) (int64, error)
}

// Stored sets the function that returns, at each scrape, the resources that are stored.
func (m *Registry) Stored(list func() []Stored) { m.caches.state.list.Store(&list) }

// countTimeout is the time, in all, that one scrape waits for backends to count objects.
const countTimeout = 2 * time.Second

// states collects the statistics of resources and their caches at each scrape.
type states struct {
	list atomic.Pointer[func() []Stored] // nil: not set

	objects, revision, watchers, bytes, changes, logBytes, window, lag *prometheus.Desc
}

func newStates() *states {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"group", "resource"}, nil)
	}
	return &states{
		objects:  desc("apiserver_resource_objects", "Objects that are stored; -1 if the backend could not say."),
		revision: desc("apiserver_watch_cache_resource_version", "Revision up to which the cache is complete; its 15 least significant digits."),
		watchers: desc("keelson_cache_watchers", "Watches that the cache serves."),
		bytes:    desc("keelson_cache_bytes", "Memory that the objects in the cache take, about."),
		changes:  desc("keelson_cache_log_changes", "Changes that the cache keeps for watches that resume and for older states."),
		logBytes: desc("keelson_cache_log_bytes", "Memory that these changes take, about."),
		window:   desc("keelson_cache_window_seconds", "Time between the oldest of these changes and the latest."),
		lag:      desc("keelson_cache_lag_revisions", "Revisions that the backend is known to be ahead of the cache."),
	}
}

// Describe implements prometheus.Collector.
func (s *states) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.objects, s.revision, s.watchers, s.bytes, s.changes, s.logBytes, s.window, s.lag} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *states) Collect(to chan<- prometheus.Metric) {
	list := s.list.Load()
	if list == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	for _, r := range (*list)() {
		tell := func(d *prometheus.Desc, value float64) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, r.Group, r.Resource)
		}
		var st cacher.Stats
		if r.Stats != nil {
			st = r.Stats()
		}
		if !st.Filled {
			tell(s.objects, count(ctx, r))
			continue
		}
		tell(s.objects, float64(st.Records))
		tell(s.revision, float64(st.Revision%1e15))
		tell(s.watchers, float64(st.Watchers))
		tell(s.bytes, float64(st.Bytes))
		tell(s.changes, float64(st.Changes))
		tell(s.logBytes, float64(st.LogBytes))
		tell(s.window, st.Window.Seconds())
		tell(s.lag, float64(st.Lag))
	}
}

func count(ctx context.Context, r Stored) float64 {
	n, err := r.Count(ctx)
	if err != nil {
		return -1
	}
	return float64(n)
}
