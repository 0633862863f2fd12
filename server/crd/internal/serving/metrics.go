package serving

import (
	"errors"
	"strconv"
	"sync"

	"github.com/keelson-dev/keelson/server/crd/conversion"
	"github.com/prometheus/client_golang/prometheus"
)

// webhookMetrics are the metrics of conversion webhooks, with the names, labels and buckets of kube-apiserver, and the sources of
// converted objects. The label crd_name has only definitions whose webhook is served. All methods may be called concurrently.
type webhookMetrics struct {
	conversions *prometheus.HistogramVec
	requests    *prometheus.CounterVec
	latency     *prometheus.HistogramVec
	objects     *prometheus.CounterVec

	mu     sync.RWMutex // held for reading while a conversion is counted
	served map[string]bool
}

// newWebhookMetrics returns metrics registered in in. If an earlier extension of the server has registered them, it returns
// those.
func newWebhookMetrics(in prometheus.Registerer) (*webhookMetrics, error) {
	m := &webhookMetrics{
		conversions: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_crd_conversion_webhook_duration_seconds", Help: "Time of conversions by webhooks, by the versions; of many objects at once it is one.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
		}, []string{"crd_name", "from_version", "to_version", "succeeded"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_conversion_webhook_request_total", Help: "Calls to conversion webhooks, by how they went.",
		}, []string{"result", "failure_type"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_conversion_webhook_duration_seconds", Help: "Time of calls to conversion webhooks, by how they went.",
			Buckets: []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 45, 60},
		}, []string{"result", "failure_type"}),
		objects: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "keelson_conversion_webhook_objects_total",
			Help: "Objects that were wanted in a version that a webhook makes, by where they came from: sent to it, shared with others who wanted the same, or remembered.",
		}, []string{"crd_name", "source"}),
		served: map[string]bool{},
	}
	var err error
	if m.conversions, err = registered(in, m.conversions); err != nil {
		return nil, err
	}
	if m.requests, err = registered(in, m.requests); err != nil {
		return nil, err
	}
	if m.latency, err = registered(in, m.latency); err != nil {
		return nil, err
	}
	if m.objects, err = registered(in, m.objects); err != nil {
		return nil, err
	}
	return m, nil
}

// registered registers a collector, or returns the one that is already registered.
func registered[C prometheus.Collector](in prometheus.Registerer, c C) (C, error) {
	err := in.Register(c)
	if there := (prometheus.AlreadyRegisteredError{}); errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same, nil
		}
	}
	return c, err
}

// hooks returns hooks that update the metrics and then call the hooks of besides.
func (m *webhookMetrics) hooks(besides conversion.Hooks) conversion.Hooks {
	return conversion.Hooks{
		Converted: func(c conversion.Conversion) {
			m.converted(c)
			if besides.Converted != nil {
				besides.Converted(c)
			}
		},
		Called: func(c conversion.Call) {
			result := "success"
			if c.Failure != "" {
				result = "failure"
			}
			m.requests.WithLabelValues(result, string(c.Failure)).Inc()
			m.latency.WithLabelValues(result, string(c.Failure)).Observe(c.Took.Seconds())
			if besides.Called != nil {
				besides.Called(c)
			}
		},
	}
}

// converted counts a conversion, unless its definition is forgotten: a call may end after its definition.
func (m *webhookMetrics) converted(c conversion.Conversion) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.served[c.Definition] {
		return
	}
	m.conversions.WithLabelValues(c.Definition, c.From, c.To, strconv.FormatBool(c.Err == nil)).Observe(c.Took.Seconds())
	for source, n := range map[string]int{"sent": c.Sent, "shared": c.Shared, "remembered": c.Remembered} {
		if n > 0 {
			m.objects.WithLabelValues(c.Definition, source).Add(float64(n))
		}
	}
}

// serve lets the definition with a name have series until forget.
func (m *webhookMetrics) serve(definition string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.served[definition] = true
}

// forget drops the series of a definition. It gets none again before serve.
func (m *webhookMetrics) forget(definition string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.served, definition)
	of := prometheus.Labels{"crd_name": definition}
	m.conversions.DeletePartialMatch(of)
	m.objects.DeletePartialMatch(of)
}
