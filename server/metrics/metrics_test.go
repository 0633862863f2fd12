package metrics_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/filters"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/request"
	"github.com/keelson-dev/keelson/storage"
	"github.com/keelson-dev/keelson/storage/cacher"
	"github.com/prometheus/client_golang/prometheus"
)

// metricLines returns the lines of /metrics that begin with a name, sorted.
func metricLines(t *testing.T, h http.Handler, name string) []string {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("answered %d %s", w.Code, w.Body)
	}
	var out []string
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, name+"{") || strings.HasPrefix(line, name+" ") {
			out = append(out, strings.TrimSpace(strings.TrimPrefix(line, name)))
		}
	}
	slices.Sort(out)
	return out
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n\t%s\nwant\n\t%s", what, strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// ask sends a request through a chain with the metrics around h, and reports whether the handler has aborted it.
func ask(m *metrics.Registry, method, path string, h http.HandlerFunc, around ...filters.Filter) (aborted bool) {
	list := append([]filters.Filter{filters.Recover(nil, m.Aborted), filters.ReceivedAt(time.Now), filters.RequestInfo(request.Resolver{})}, around...)
	chain := filters.Chain(h, append(list, filters.Metrics(m))...)
	defer func() { aborted = recover() != nil }()
	chain.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, path, nil))
	return false
}

const path = "/apis/example.com/v1/namespaces/n/widgets/a"

func labels(code, verb, scope string) string {
	return fmt.Sprintf(`{code=%q,component="apiserver",dry_run="",group="example.com",resource="widgets",scope=%q,subresource="",verb=%q,version="v1"}`, code, scope, verb)
}

func serving(list ...metrics.Resource) *metrics.Registry {
	m := metrics.New(metrics.Options{})
	m.Serve(append(list, metrics.Resource{GroupVersionResource: widgets()}))
	return m
}

// A request is counted once, however its handler ends. It is counted as an abort if there is no answer.
func TestEndsOfHandlers(t *testing.T) {
	const aborts = `{group="example.com",resource="widgets",scope="resource",subresource="",verb="GET",version="v1"} 1`
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		aborted bool
		total   []string
		aborts  []string
	}{
		"answer":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) }, false, []string{labels("201", "GET", "resource") + " 1"}, nil},
		"silence":        {func(http.ResponseWriter, *http.Request) {}, false, []string{labels("200", "GET", "resource") + " 1"}, nil},
		"no such verb":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) }, false, nil, nil},
		"panic":          {func(http.ResponseWriter, *http.Request) { panic("x") }, false, []string{labels("500", "GET", "resource") + " 1"}, nil},
		"abort":          {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true, nil, []string{aborts}},
		"abort midway":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("x")); panic(http.ErrAbortHandler) }, true, []string{labels("200", "GET", "resource") + " 1"}, []string{aborts}},
		"wrapped abort":  {func(http.ResponseWriter, *http.Request) { panic(fmt.Errorf("so: %w", http.ErrAbortHandler)) }, true, nil, []string{aborts}},
		"informational":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(404) }, false, []string{labels("404", "GET", "resource") + " 1"}, nil},
		"written, panic": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200); panic("x") }, true, []string{labels("200", "GET", "resource") + " 1"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			m := serving()
			if got := ask(m, "GET", path, tc.handler); got != tc.aborted {
				t.Errorf("aborted: %t, want %t", got, tc.aborted)
			}
			want(t, "requests", metricLines(t, m.Handler(), "apiserver_request_total"), tc.total...)
			want(t, "aborts", metricLines(t, m.Handler(), "apiserver_request_aborts_total"), tc.aborts...)
		})
	}
}

// A long-running request is counted in the gauge until it ends, also by a panic. The scope of the gauge depends on the name in a
// field selector, and that of the counter does not, as in kube-apiserver.
func TestRequestsThatLast(t *testing.T) {
	m := serving(metrics.Resource{GroupVersionResource: widgets(), Subresource: "ring", Connect: []string{"GET"}})
	running := func(sub, scope, verb string, n int) string {
		return fmt.Sprintf(`{component="apiserver",group="example.com",resource="widgets",scope=%q,subresource=%q,verb=%q,version="v1"} %d`, scope, sub, verb, n)
	}
	during := func(expected string, end func()) http.HandlerFunc {
		return func(http.ResponseWriter, *http.Request) {
			if got := metricLines(t, m.Handler(), "apiserver_longrunning_requests"); !slices.Contains(got, expected) {
				t.Errorf("under way: %q, want %s", got, expected)
			}
			end()
		}
	}
	const list = "/apis/example.com/v1/namespaces/n/widgets"
	ask(m, "GET", list+"?watch=1", during(running("", "namespace", "WATCH", 1), func() {}))
	ask(m, "GET", list+"?watch=1&fieldSelector=metadata.name%3Da", during(running("", "resource", "WATCH", 1), func() { panic("x") }))
	ask(m, "GET", path+"/ring", during(running("ring", "resource", "CONNECT", 1), func() { panic(http.ErrAbortHandler) }))
	ask(m, "POST", path+"/ring", func(http.ResponseWriter, *http.Request) {})
	want(t, "at the end", metricLines(t, m.Handler(), "apiserver_longrunning_requests"),
		running("", "namespace", "WATCH", 0), running("", "resource", "WATCH", 0), running("ring", "resource", "CONNECT", 0))
	want(t, "counted", metricLines(t, m.Handler(), "apiserver_request_total"), labels("200", "WATCH", "namespace")+" 1", labels("500", "WATCH", "namespace")+" 1",
		strings.Replace(labels("200", "POST", "resource"), `subresource=""`, `subresource="ring"`, 1)+" 1")
}

// A resource that is withdrawn is not counted any more. When it is served again, its counters continue.
func TestServeAgain(t *testing.T) {
	m := serving()
	ok := func(http.ResponseWriter, *http.Request) {}
	ask(m, "GET", path, ok)
	m.Serve(nil)
	ask(m, "GET", path, ok)
	want(t, "withdrawn", metricLines(t, m.Handler(), "apiserver_request_total"), labels("200", "GET", "resource")+" 1")
	m.Serve([]metrics.Resource{{GroupVersionResource: widgets(), Deprecated: true}})
	ask(m, "GET", path, ok)
	want(t, "back", metricLines(t, m.Handler(), "apiserver_request_total"), labels("200", "GET", "resource")+" 2")
	want(t, "deprecated", metricLines(t, m.Handler(), "apiserver_requested_deprecated_apis"),
		`{group="example.com",removed_release="",resource="widgets",subresource="",version="v1"} 1`)
}

// Every hook of a cache changes a metric.
func TestCacheHooks(t *testing.T) {
	m := metrics.New(metrics.Options{})
	h := m.Cache(widgets().GroupResource())
	h.Filled(cacher.Filled{Took: time.Second})
	h.Void(errors.New("x"))
	h.Listed(cacher.Listed{Index: "f:spec.color", Evaluated: 7, Returned: 3})
	h.Listed(cacher.Listed{Returned: 4})
	h.Waited(time.Second)
	h.Consistent(true, false)
	h.Consistent(false, true)
	h.Consistent(false, false)
	h.Received(5)
	h.Initial(6)
	h.Initial(0)
	h.Outrun()
	s := m.Store(widgets().GroupResource())
	s.Requested(t.Context(), storage.OpCreate, time.Second, nil)
	s.Requested(t.Context(), storage.OpGet, time.Second, storage.ErrUnavailable)
	for name, lines := range map[string][]string{
		"apiserver_watch_cache_initializations_total":               {`{group="example.com",resource="widgets"} 1`},
		"apiserver_watch_cache_initialization_duration_seconds_sum": {`{group="example.com",resource="widgets"} 1`},
		"keelson_cache_voids_total":                                 {`{group="example.com",resource="widgets"} 1`},
		"apiserver_watch_cache_read_wait_seconds_sum":               {`{group="example.com",resource="widgets"} 1`},
		"apiserver_watch_cache_events_received_total":               {`{group="example.com",resource="widgets"} 5`},
		"apiserver_storage_events_received_total":                   {`{group="example.com",resource="widgets"} 5`},
		"apiserver_init_events_total":                               {`{group="example.com",resource="widgets"} 6`},
		"apiserver_terminated_watchers_total":                       {`{group="example.com",resource="widgets"} 1`},
		"apiserver_storage_list_evaluated_objects_total":            {`{group="example.com",resource="widgets",storage="watchcache"} 7`},
		"apiserver_storage_list_returned_objects_total":             {`{group="example.com",resource="widgets",storage="watchcache"} 7`},
		"keelson_storage_request_errors_total":                      {`{group="example.com",operation="get",resource="widgets"} 1`},
		"apiserver_storage_list_total": {
			`{group="example.com",index="f:spec.color",resource="widgets",storage="watchcache"} 1`,
			`{group="example.com",index="",resource="widgets",storage="watchcache"} 1`,
		},
		"apiserver_storage_list_fetched_objects_total": {
			`{group="example.com",index="f:spec.color",resource="widgets",storage="watchcache"} 7`,
			`{group="example.com",index="",resource="widgets",storage="watchcache"} 4`,
		},
		"apiserver_watch_cache_consistent_read_total": {
			`{fallback="false",group="example.com",resource="widgets",success="true"} 1`,
			`{fallback="true",group="example.com",resource="widgets",success="false"} 1`,
			`{fallback="false",group="example.com",resource="widgets",success="false"} 1`,
		},
		"keelson_storage_request_duration_seconds_count": {
			`{group="example.com",operation="create",resource="widgets"} 1`,
			`{group="example.com",operation="get",resource="widgets"} 1`,
		},
	} {
		want(t, name, metricLines(t, m.Handler(), name), lines...)
	}
}

// Events are counted in the bucket of their size. A size that is a bound counts in the lower bucket.
func TestEventSizes(t *testing.T) {
	m := metrics.New(metrics.Options{})
	h := m.Handlers(widgets())
	want(t, "before the first", metricLines(t, m.Handler(), "apiserver_watch_events_total"))
	for _, size := range []int{0, 1, 1024, 1025, 2048, 131072, 131073, 5 << 20} {
		h.Event(size)
	}
	const kind = `group="example.com",resource="widgets",version="v1"`
	want(t, "events", metricLines(t, m.Handler(), "apiserver_watch_events_total"), "{"+kind+"} 8")
	var lines []string
	for le, n := range map[string]int{"1024": 3, "2048": 5, "4096": 5, "8192": 5, "16384": 5, "32768": 5, "65536": 5, "131072": 6, "+Inf": 8} {
		lines = append(lines, fmt.Sprintf(`{%s,le=%q} %d`, kind, le, n))
	}
	want(t, "buckets", metricLines(t, m.Handler(), "apiserver_watch_events_sizes_bucket"), lines...)
	want(t, "sum", metricLines(t, m.Handler(), "apiserver_watch_events_sizes_sum"), fmt.Sprintf("{%s} %g", kind, float64(1+1024+1025+2048+131072+131073+5<<20)))
}

// A backend that cannot count its objects is shown as -1, and does not delay the scrape for longer than the timeout.
func TestObjectsThatCannotBeCounted(t *testing.T) {
	m := metrics.New(metrics.Options{})
	m.Stored(func() []metrics.Stored {
		return []metrics.Stored{{GroupResource: widgets().GroupResource(), Count: func(ctx context.Context) (int64, error) {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("a count has no deadline")
			}
			return 7, storage.ErrUnavailable
		}}}
	})
	want(t, "objects", metricLines(t, m.Handler(), "apiserver_resource_objects"), `{group="example.com",resource="widgets"} -1`)
}

// A collector that fails is left out; the others are served.
func TestAFailingCollector(t *testing.T) {
	m := metrics.New(metrics.Options{})
	m.Registerer().MustRegister(broken{prometheus.NewDesc("broken", "Fails.", nil, nil)})
	if got := metricLines(t, m.Handler(), "apiserver_tls_handshake_errors_total"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

type broken struct{ desc *prometheus.Desc }

func (b broken) Describe(to chan<- *prometheus.Desc) { to <- b.desc }
func (b broken) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(b.desc, errors.New("it fails"))
}

// A failed handshake that net/http logs is counted, and logged.
func TestFailedHandshakes(t *testing.T) {
	m := metrics.New(metrics.Options{})
	var out syncBuffer
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.Config.ErrorLog = log.New(m.ServerErrors(&out), "", 0)
	srv.StartTLS()
	defer srv.Close()
	conn, err := tls.Dial("tcp", srv.Listener.Addr().String(), &tls.Config{MinVersion: tls.VersionTLS12}) // the client does not trust the server
	if err == nil {
		_ = conn.Close()
		t.Fatal("an unknown certificate was trusted")
	}
	var got []string
	for range 400 {
		if got = metricLines(t, m.Handler(), "apiserver_tls_handshake_errors_total"); slices.Equal(got, []string{"1"}) {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	want(t, "handshakes", got, "1")
	if !strings.Contains(out.String(), "TLS handshake error") {
		t.Errorf("written: %q", out.String())
	}
	srv.Config.ErrorLog.Print("something else")
	want(t, "handshakes", metricLines(t, m.Handler(), "apiserver_tls_handshake_errors_total"), "1")
}

type syncBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
