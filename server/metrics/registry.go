package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	apiversion "k8s.io/apimachinery/pkg/version"
)

// Options are the options of New. The zero Options is valid.
type Options struct {
	// Version is the version in kubernetes_build_info.
	Version apiversion.Info
	// Logger receives errors of a scrape, such as a collector that fails; nil logs nothing.
	Logger *zap.Logger
}

// Registry has the metrics of one server, and those of its Go process. Two registries share nothing but the metrics of the
// process. Make one with New. It has no goroutine, and need not be closed. All methods may be called concurrently.
type Registry struct {
	all  *prometheus.Registry
	slis *prometheus.Registry
	log  *zap.Logger

	requests   *requests
	watches    *watches
	access     *access
	storage    *storageMetrics
	caches     *cacheMetrics
	checks     *checks
	audits     *audits
	handshakes prometheus.Counter
}

// Registerer returns a registerer for further collectors, whose metrics are served with the others. Their names must be new.
func (m *Registry) Registerer() prometheus.Registerer { return m.all }

// Handler serves the metrics as text, or as OpenMetrics if the request accepts that, compressed if the request accepts that. If a
// collector fails, this is logged, and the other metrics are served.
func (m *Registry) Handler() http.Handler { return m.handler(m.all) }

// SLIs serves the results of the health checks, as kube-apiserver does at /metrics/slis.
func (m *Registry) SLIs() http.Handler { return m.handler(m.slis) }

func (m *Registry) handler(from *prometheus.Registry) http.Handler {
	h := promhttp.HandlerFor(from, promhttp.HandlerOpts{
		ErrorLog:          zap.NewStdLog(m.log),
		ErrorHandling:     promhttp.ContinueOnError,
		EnableOpenMetrics: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "405: Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// buildInfo returns the metric of the version that is served.
func buildInfo(v apiversion.Info) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "kubernetes_build_info",
		Help: "Always 1; the labels say which version the server tells at /version.",
		ConstLabels: prometheus.Labels{
			"major": v.Major, "minor": v.Minor, "git_version": v.GitVersion, "git_commit": v.GitCommit,
			"git_tree_state": v.GitTreeState, "build_date": v.BuildDate, "go_version": v.GoVersion,
			"compiler": v.Compiler, "platform": v.Platform,
		},
	})
	info.Set(1)
	return info
}

// counters, histograms and gauges make vectors and register them.
func counters(in *prometheus.Registry, name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	in.MustRegister(v)
	return v
}

func histograms(in *prometheus.Registry, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	in.MustRegister(v)
	return v
}

func gauges(in *prometheus.Registry, name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	in.MustRegister(v)
	return v
}
