package metrics

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/prometheus/client_golang/prometheus"
)

// durationBuckets returns the buckets of kube-apiserver, in seconds.
func durationBuckets() []float64 {
	return []float64{0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}
}

// sliBuckets returns durationBuckets without the two shortest.
func sliBuckets() []float64 { return durationBuckets()[2:] }

// requests has the metrics of requests.
type requests struct {
	subjects *subjects

	total, terminations, aborts *prometheus.CounterVec
	duration, sli, sizes        *prometheus.HistogramVec
	validated                   *prometheus.HistogramVec
	running, deprecated         *prometheus.GaugeVec
	validations                 [numValidations]func() prometheus.Observer
}

func newRequests(in *prometheus.Registry) *requests {
	about := []string{"group", "version", "resource", "subresource", "scope"}
	by := func(labels ...string) []string { return append(labels, about...) }
	m := &requests{
		subjects: newSubjects(),
		total: counters(in, "apiserver_request_total",
			"Requests that were answered, by what they were about and the code of the answer.", by("verb", "dry_run", "component", "code")...),
		duration: histograms(in, "apiserver_request_duration_seconds",
			"Time from when a request was received to the end of its answer.", durationBuckets(), by("verb", "dry_run", "component")...),
		sli: histograms(in, "apiserver_request_sli_duration_seconds",
			"The same of requests that are no watches, without what others than the server took.", sliBuckets(), by("verb", "component")...),
		sizes: histograms(in, "apiserver_response_sizes",
			"Bytes of the bodies of answers to reads, as they were sent.", prometheus.ExponentialBuckets(1000, 10, 7), by("verb", "component")...),
		running: gauges(in, "apiserver_longrunning_requests",
			"Watches and connections that are under way.", by("verb", "component")...),
		terminations: counters(in, "apiserver_request_terminations_total",
			"Requests that were ended to protect the server: out of time (504), or too many at once (429).", by("verb", "component", "code")...),
		aborts: counters(in, "apiserver_request_aborts_total",
			"Requests whose connection was aborted in the middle of the answer.", by("verb")...),
		deprecated: gauges(in, "apiserver_requested_deprecated_apis",
			"1 for a deprecated version that was asked for.", "group", "version", "resource", "subresource", "removed_release"),
		validated: histograms(in, "field_validation_request_duration_seconds",
			"Time of requests that write, by their option fieldValidation.", sliBuckets(), "field_validation"),
	}
	for v := range numValidations {
		m.validations[v] = sync.OnceValue(func() prometheus.Observer { return m.validated.WithLabelValues(v.String()) })
	}
	return m
}

// series has the requests with one verb and one scope for one subject.
type series struct {
	subject *subject
	verb    verb
	scope   scope
	entries [numDryRuns][numValidations]atomic.Pointer[entry]
}

// labels returns more, and the values of the labels that the metrics of requests share.
func (s *series) labels(more ...string) []string {
	u := s.subject
	return append(more, u.group, u.version, u.resource, u.subresource, s.scope.String())
}

// entry has the requests of a series with the same options. It is the filters.Serving of requests that are not long-running.
type entry struct {
	*series
	m       *requests
	dryRun  dryRun
	observe func() observers // makes the series when the first request is counted
	codes   atomic.Pointer[[]coded]
	written func() prometheus.Observer // nil for a read
}

// observers has the observers of an entry. An observer is nil if the metric does not apply to the requests.
type observers struct{ duration, sli, size prometheus.Observer }

// coded counts the answers with one code.
type coded struct {
	code  int
	count prometheus.Counter
}

// Served implements filters.Meter.
func (m *Registry) Served(r *http.Request, info *request.Info) filters.Serving {
	about := m.requests.subjects.of(r, info)
	if about == nil {
		return nil
	}
	v := verbOf(r, info, about.connect)
	e := m.requests.entry(about, v, scopeOf(info, named(info)), r)
	if v != verbWatch && v != verbConnect {
		return e
	}
	// The name in a field selector counts here, as in kube-apiserver.
	running := m.requests.running.WithLabelValues(append([]string{v.String(), about.component},
		about.group, about.version, about.resource, about.subresource, scopeOf(info, info.Name != "").String())...)
	running.Inc()
	return &lasting{e, running}
}

// entry returns the entry of a request, and makes it at the first request.
func (m *requests) entry(about *subject, v verb, sc scope, r *http.Request) *entry {
	place := &about.series[v][sc]
	s := place.Load()
	if s == nil {
		place.CompareAndSwap(nil, &series{subject: about, verb: v, scope: sc})
		s = place.Load()
	}
	dry, val := options(r.URL)
	at := &s.entries[dry][val]
	e := at.Load()
	if e == nil {
		at.CompareAndSwap(nil, m.newEntry(s, dry, val))
		e = at.Load()
	}
	return e
}

func (m *requests) newEntry(s *series, dry dryRun, val validation) *entry {
	e := &entry{series: s, m: m, dryRun: dry}
	e.codes.Store(&[]coded{})
	e.observe = sync.OnceValue(func() observers { return m.observers(s, dry) })
	if s.verb.writes() && s.subject.resource != "" {
		e.written = m.validations[val]
	}
	return e
}

func (m *requests) observers(s *series, dry dryRun) observers {
	verb, component := s.verb.String(), s.subject.component
	o := observers{duration: m.duration.WithLabelValues(s.labels(verb, dry.String(), component)...)}
	if s.verb != verbWatch {
		o.sli = m.sli.WithLabelValues(s.labels(verb, component)...)
	}
	if s.verb == verbGet || s.verb == verbList || s.verb == verbWatch || s.subject.resource == "" {
		o.size = m.sizes.WithLabelValues(s.labels(verb, component)...)
	}
	if s.subject.deprecated {
		m.deprecated.WithLabelValues(s.subject.group, s.subject.version, s.subject.resource, s.subject.subresource, "").Set(1)
	}
	return o
}

// Answered implements filters.Serving.
func (e *entry) Answered(ctx context.Context, code int, size int64) {
	if code == http.StatusMethodNotAllowed && e.subject.resource != "" { // the resource has no such verb
		return
	}
	took := 0.0
	if at, ok := request.ReceivedFrom(ctx); ok {
		took = time.Since(at).Seconds()
	}
	e.counter(code).Inc()
	o := e.observe()
	o.duration.Observe(took)
	if o.sli != nil {
		o.sli.Observe(took)
	}
	if o.size != nil {
		o.size.Observe(float64(size))
	}
	if e.written != nil {
		e.written().Observe(took)
	}
}

// Over implements filters.Serving.
func (e *entry) Over() {}

// counter returns the counter of a code.
func (e *entry) counter(code int) prometheus.Counter {
	for {
		known := e.codes.Load()
		for i := range *known {
			if (*known)[i].code == code {
				return (*known)[i].count
			}
		}
		next := append((*known)[:len(*known):len(*known)], coded{code, e.m.counter(e.series, e.dryRun, code)})
		e.codes.CompareAndSwap(known, &next)
	}
}

func (m *requests) counter(s *series, dry dryRun, code int) prometheus.Counter {
	return m.total.WithLabelValues(s.labels(s.verb.String(), dry.String(), s.subject.component, strconv.Itoa(code))...)
}

// lasting is the filters.Serving of one long-running request.
type lasting struct {
	*entry
	running prometheus.Gauge
}

// Over implements filters.Serving.
func (l *lasting) Over() { l.running.Dec() }
