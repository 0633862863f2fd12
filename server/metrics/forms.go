package metrics

import (
	"github.com/keelson-dev/keelson/storage"
	"github.com/prometheus/client_golang/prometheus"
)

// Forms sets the function that returns, at each scrape, the statistics of the encodings and compressed texts that the server
// keeps. It is called at most once.
func (m *Registry) Forms(stats func() storage.FormStats) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("keelson_form_cache_"+name, help, nil, nil)
	}
	m.all.MustRegister(&forms{
		stats:     stats,
		bytes:     desc("bytes", "Memory that kept forms of objects and lists take: their encodings other than the stored one, and compressed texts."),
		most:      desc("max_bytes", "Memory that they may take."),
		kept:      desc("forms", "Forms that are kept."),
		hits:      desc("hits_total", "Forms that were asked for and found."),
		misses:    desc("misses_total", "Forms that were asked for and had to be made."),
		evictions: desc("evictions_total", "Forms that were dropped to make room for others."),
	})
}

// forms collects the statistics of a storage.FormCache at each scrape.
type forms struct {
	stats func() storage.FormStats

	bytes, most, kept, hits, misses, evictions *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (f *forms) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.bytes, f.most, f.kept, f.hits, f.misses, f.evictions} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (f *forms) Collect(to chan<- prometheus.Metric) {
	st := f.stats()
	tell := func(d *prometheus.Desc, kind prometheus.ValueType, value int64) {
		to <- prometheus.MustNewConstMetric(d, kind, float64(value))
	}
	tell(f.bytes, prometheus.GaugeValue, st.Bytes)
	tell(f.most, prometheus.GaugeValue, st.Most)
	tell(f.kept, prometheus.GaugeValue, st.Forms)
	tell(f.hits, prometheus.CounterValue, st.Hits)
	tell(f.misses, prometheus.CounterValue, st.Misses)
	tell(f.evictions, prometheus.CounterValue, st.Evictions)
}
