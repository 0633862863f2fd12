package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// flight has the number of concurrent requests.
type flight struct {
	peaks atomic.Pointer[func() (reads, writes int)] // nil: not set
}

// InFlight sets the function that returns, at each scrape, the highest numbers of concurrent requests in the last second.
func (m *Registry) InFlight(peaks func() (reads, writes int)) { m.access.flight.peaks.Store(&peaks) }

func flightDesc() *prometheus.Desc {
	return prometheus.NewDesc("apiserver_current_inflight_requests",
		"The most requests that were served at the same time in the last second, watches aside.", []string{"request_kind"}, nil)
}

// Describe implements prometheus.Collector.
func (f *flight) Describe(to chan<- *prometheus.Desc) { to <- flightDesc() }

// Collect implements prometheus.Collector.
func (f *flight) Collect(to chan<- prometheus.Metric) {
	peaks := f.peaks.Load()
	if peaks == nil {
		return
	}
	reads, writes := (*peaks)()
	to <- prometheus.MustNewConstMetric(flightDesc(), prometheus.GaugeValue, float64(reads), "readOnly")
	to <- prometheus.MustNewConstMetric(flightDesc(), prometheus.GaugeValue, float64(writes), "mutating")
}
