package metrics

import (
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// events counts the events that are sent to watches. It is called more often than any other metric, so it has a few atomic
// counters and no vector. Both metrics are made from these at each scrape.
type events struct {
	total, sizes *prometheus.Desc

	mu   sync.Mutex // guards sent
	sent map[schema.GroupVersionResource]*sentEvents
}

// sentEvents has the events of one resource in one version.
type sentEvents struct {
	within [sizeBuckets + 1]atomic.Uint64 // by size; the last has the events larger than all buckets
	bytes  atomic.Uint64
}

// The bounds of the buckets are leastSize, twice that, and so on.
const (
	leastSize   = 1 << 10
	sizeBuckets = 8
)

func newEvents() *events {
	labels := []string{"group", "version", "resource"}
	return &events{
		total: prometheus.NewDesc("apiserver_watch_events_total", "Events that were sent to watches.", labels, nil),
		sizes: prometheus.NewDesc("apiserver_watch_events_sizes", "Bytes of the events that were sent to watches.", labels, nil),
		sent:  map[schema.GroupVersionResource]*sentEvents{},
	}
}

// of returns the counters of a resource.
func (e *events) of(gvr schema.GroupVersionResource) *sentEvents {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.sent[gvr] == nil {
		e.sent[gvr] = &sentEvents{}
	}
	return e.sent[gvr]
}

// add counts an event of a size.
func (s *sentEvents) add(size int) {
	i := bits.Len(uint(max(size-1, 0) / leastSize))
	s.within[min(i, sizeBuckets)].Add(1)
	s.bytes.Add(uint64(size))
}

// Describe implements prometheus.Collector.
func (e *events) Describe(to chan<- *prometheus.Desc) {
	to <- e.total
	to <- e.sizes
}

// Collect implements prometheus.Collector.
func (e *events) Collect(to chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for gvr, sent := range e.sent {
		count, buckets := uint64(0), make(map[float64]uint64, sizeBuckets)
		for i := range sent.within {
			count += sent.within[i].Load()
			if i < sizeBuckets {
				buckets[float64(uint64(leastSize)<<i)] = count
			}
		}
		if count == 0 {
			continue
		}
		labels := []string{gvr.Group, gvr.Version, gvr.Resource}
		to <- prometheus.MustNewConstMetric(e.total, prometheus.CounterValue, float64(count), labels...)
		to <- prometheus.MustNewConstHistogram(e.sizes, count, float64(sent.bytes.Load()), buckets, labels...)
	}
}
