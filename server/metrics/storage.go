package metrics

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/keelson-dev/keelson/storage"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Values of the label storage.
const (
	fromBackend = "backend"
	fromCache   = "watchcache"
)

// storageMetrics has the metrics of calls of backends, and of lists.
type storageMetrics struct {
	took                                  *prometheus.HistogramVec
	failed                                *prometheus.CounterVec
	lists, fetched, evaluated, returnedBy *prometheus.CounterVec
}

func newStorageMetrics(in *prometheus.Registry) *storageMetrics {
	return &storageMetrics{
		took: histograms(in, "keelson_storage_request_duration_seconds",
			"Time of requests to the backend, by operation.", durationBuckets(), "operation", "group", "resource"),
		failed: counters(in, "keelson_storage_request_errors_total",
			"Requests to the backend that ended with an error; that an object was changed by others is none.", "operation", "group", "resource"),
		lists: counters(in, "apiserver_storage_list_total",
			"Lists that were answered, by where from: watchcache or backend.", "group", "resource", "storage", "index"),
		fetched: counters(in, "apiserver_storage_list_fetched_objects_total",
			"Objects that were read for lists.", "group", "resource", "storage", "index"),
		evaluated: counters(in, "apiserver_storage_list_evaluated_objects_total",
			"Objects that a selector was asked about for lists.", "group", "resource", "storage"),
		returnedBy: counters(in, "apiserver_storage_list_returned_objects_total",
			"Objects that lists had.", "group", "resource", "storage"),
	}
}

// Size adds metrics of the bytes that the storage uses, and of those that it may use. It must be called at most once.
func (m *Registry) Size(of storage.Sizer) {
	m.all.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "keelson_storage_bytes", Help: "Bytes of the storage that are in use.",
		}, func() float64 {
			used, _ := of.Size()
			return float64(used)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "keelson_storage_limit_bytes", Help: "Bytes of the storage that may be in use; +Inf if that is not known.",
		}, func() float64 {
			_, limit := of.Size()
			if limit < 0 {
				return math.Inf(1)
			}
			return float64(limit)
		}),
	)
}

// Store returns the hooks that count the calls that the store of a resource makes to its backend.
func (m *Registry) Store(of schema.GroupResource) storage.Hooks {
	s := m.storage
	took := map[storage.Operation]func() prometheus.Observer{}
	for _, op := range []storage.Operation{storage.OpGet, storage.OpList, storage.OpCreate, storage.OpUpdate, storage.OpDelete, storage.OpWatch, storage.OpRevision} {
		took[op] = sync.OnceValue(func() prometheus.Observer { return s.took.WithLabelValues(string(op), of.Group, of.Resource) })
	}
	lists := s.from(of, fromBackend)
	return storage.Hooks{
		Requested: func(_ context.Context, operation storage.Operation, d time.Duration, err error) {
			if observe := took[operation]; observe != nil {
				observe().Observe(d.Seconds())
			}
			if err != nil {
				s.failed.WithLabelValues(string(operation), of.Group, of.Resource).Inc()
			}
		},
		Listed: func(l storage.Listed) { lists("", l.Fetched, l.Evaluated, l.Returned) },
	}
}

// from returns a function that counts the lists of a resource that are answered from one place.
func (s *storageMetrics) from(of schema.GroupResource, place string) func(index string, fetched, evaluated, returned int) {
	return func(index string, fetched, evaluated, returned int) {
		s.lists.WithLabelValues(of.Group, of.Resource, place, index).Inc()
		s.fetched.WithLabelValues(of.Group, of.Resource, place, index).Add(float64(fetched))
		s.returnedBy.WithLabelValues(of.Group, of.Resource, place).Add(float64(returned))
		if evaluated > 0 {
			s.evaluated.WithLabelValues(of.Group, of.Resource, place).Add(float64(evaluated))
		}
	}
}
