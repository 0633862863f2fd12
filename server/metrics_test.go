package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/servertest"
)

// scrape returns the samples of /metrics, without buckets.
func scrape(t *testing.T, srv *servertest.Server) map[string]float64 {
	t.Helper()
	a := roundTrip(t, srv.Client(), "GET", srv.URL+"/metrics", "")
	if a.code != 200 {
		t.Fatalf("/metrics is answered %d %s", a.code, a.body)
	}
	return samples(t, a.body)
}

func samples(t *testing.T, text string) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		if line[0] == '#' || strings.Contains(line, "_bucket{") {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		out[line[:at]] = value
	}
	return out
}

// label returns the value of a label in the name of a sample.
func label(sample, name string) string {
	_, rest, _ := strings.Cut(sample, name+`="`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// only returns the samples of one name and one resource as lines "labels: value", with the given labels.
func only(all map[string]float64, name, resource string, labels ...string) []string {
	var out []string
	for sample, value := range all {
		if !strings.HasPrefix(sample, name+"{") || label(sample, "resource") != resource {
			continue
		}
		var shown []string
		for _, l := range labels {
			shown = append(shown, label(sample, l))
		}
		out = append(out, fmt.Sprintf("%s: %g", strings.Join(shown, " "), value))
	}
	slices.Sort(out)
	return out
}

// wantLines repeats the scrape until it has the expected lines: a request is counted when its handler has returned, which may be
// after its client has read the answer.
func wantLines(t *testing.T, get func() []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	var got []string
	for range 200 {
		if got = get(); slices.Equal(got, want) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
}

// metered is one request, with its expected code.
type metered struct {
	method, path, contentType, body string
	code                            int
}

func (m metered) send(t *testing.T, srv *servertest.Server) {
	t.Helper()
	var header []string
	if m.contentType != "" {
		header = []string{"Content-Type", m.contentType}
	}
	if a := roundTrip(t, srv.Client(), m.method, srv.URL+m.path, m.body, header...); a.code != m.code {
		t.Errorf("%s %s: %d, want %d: %s", m.method, m.path, a.code, m.code, a.body)
	}
}

const (
	yamlApply = "application/apply-patch+yaml"
	applied   = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`
)

// widgetRequests are the requests that were also made to the ConfigMaps of a kube-apiserver 1.37.1. For requests that it refuses
// without counting them (a patch of another media type), the counts are those for its custom resources.
func widgetRequests() []metered {
	const all, list = "/apis/example.com/v1/widgets", widgetsPath
	return []metered{
		{"POST", list + "?fieldValidation=Strict", "", `{"metadata":{"name":"a"}}`, 201},
		{"POST", list, "", `{"metadata":{"name":"a"}}`, 409},
		{"PUT", list + "/a?fieldValidation=Ignore", "", `{"metadata":{"name":"a"},"spec":{"size":1}}`, 200},
		{"PATCH", list + "/a", mergePatch, `{"spec":{"size":2}}`, 200},
		{"PATCH", list + "/a?fieldManager=x&force=true", yamlApply, applied, 200},
		{"PATCH", list + "/a?fieldManager=x&force=true&fieldValidation=Foo", yamlApply, applied, 422},
		{"PATCH", list + "/a/status", mergePatch, `{"status":{"ready":true}}`, 200},
		{"POST", list + "?dryRun=All", "", `{"metadata":{"name":"b"}}`, 201},
		{"POST", list + "?dryRun=xx", "", `{"metadata":{"name":"b"}}`, 422},
		{"DELETE", list + "/nope", "", "", 404},
		{"GET", list + "?fieldSelector=metadata.name%3Da", "", "", 200},
		{"GET", all, "", "", 200},
		{"GET", list, "", "", 200},
		{"GET", list + "?limit=1&resourceVersion=0", "", "", 200},
		{"GET", list + "?limit=abc", "", "", 400},
		{"GET", list + "?continue=foo", "", "", 400},
		{"GET", list + "/a?resourceVersion=0", "", "", 200},
		{"HEAD", list + "/a", "", "", 405},
		{"GET", list + "/a/scale", "", "", 200},
		{"GET", list + "?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da", "", "", 200},
		{"GET", "/apis/example.com/v1/watch/namespaces/default/widgets?timeoutSeconds=1", "", "", 200},
		{"GET", "/apis/example.com/v1/watch/namespaces/default/widgets/a?timeoutSeconds=1", "", "", 200},
		{"GET", all + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", "", 200},
		{"PATCH", list + "/a", "text/foo", "x", 415},
		{"DELETE", list + "?dryRun=All", "", "", 200},
		{"DELETE", list + "/a", "", "", 200},
		// Not counted: resources that are not served.
		{"FOO", list, "", "", 405},
		{"PATCH", list, "", "", 405},
		{"GET", list + "/a/foo", "", "", 404},
		{"GET", "/apis/example.com/v2/widgets", "", "", 404},
		{"GET", "/apis/example.com/v1/gadgets", "", "", 404},
		{"GET", "/", "", "", 200},
		{"GET", "/version", "", "", 200},
		{"GET", "/apis", "", "", 200},
		{"GET", "/nonexistent", "", "", 404},
		{"DELETE", "/metrics", "", "", 405},
	}
}

func TestMetricsOfRequests(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	for _, r := range widgetRequests() {
		r.send(t, srv)
	}
	from := func(name string, labels ...string) func() []string {
		return func() []string { return only(scrape(t, srv), name, "widgets", labels...) }
	}
	wantLines(t, from("apiserver_request_total", "verb", "scope", "subresource", "dry_run", "code", "component", "group", "version"),
		"POST resource   201 apiserver example.com v1: 1",
		"POST resource   409 apiserver example.com v1: 1",
		"POST resource  All 201 apiserver example.com v1: 1",
		"POST resource  invalid 422 apiserver example.com v1: 1",
		"PUT resource   200 apiserver example.com v1: 1",
		"PATCH resource   200 apiserver example.com v1: 1",
		"PATCH resource   415 apiserver example.com v1: 1",
		"PATCH resource status  200 apiserver example.com v1: 1",
		"APPLY resource   200 apiserver example.com v1: 1",
		"APPLY resource   422 apiserver example.com v1: 1",
		"DELETE resource   404 apiserver example.com v1: 1",
		"DELETE resource   200 apiserver example.com v1: 1",
		"DELETE namespace  All 200 apiserver example.com v1: 1",
		"LIST namespace   200 apiserver example.com v1: 3",
		"LIST namespace   400 apiserver example.com v1: 2",
		"LIST cluster   200 apiserver example.com v1: 1",
		"GET resource   200 apiserver example.com v1: 1",
		"GET resource scale  200 apiserver example.com v1: 1",
		"WATCH namespace   200 apiserver example.com v1: 2",
		"WATCH resource   200 apiserver example.com v1: 1",
		"WATCH cluster   200 apiserver example.com v1: 1",
	)
	wantLines(t, from("apiserver_request_duration_seconds_count", "verb", "scope", "subresource", "dry_run"),
		"POST resource  : 2", "POST resource  All: 1", "POST resource  invalid: 1", "PUT resource  : 1", "PATCH resource  : 2",
		"PATCH resource status : 1", "APPLY resource  : 2", "DELETE resource  : 2", "DELETE namespace  All: 1", "LIST namespace  : 5",
		"LIST cluster  : 1", "GET resource  : 1", "GET resource scale : 1", "WATCH namespace  : 2", "WATCH resource  : 1", "WATCH cluster  : 1")
	wantLines(t, from("apiserver_request_sli_duration_seconds_count", "verb", "scope", "subresource"),
		"POST resource : 4", "PUT resource : 1", "PATCH resource : 2", "PATCH resource status: 1", "APPLY resource : 2", "DELETE resource : 2",
		"DELETE namespace : 1", "LIST namespace : 5", "LIST cluster : 1", "GET resource : 1", "GET resource scale: 1")
	wantLines(t, from("apiserver_response_sizes_count", "verb", "scope", "subresource"),
		"LIST namespace : 5", "LIST cluster : 1", "GET resource : 1", "GET resource scale: 1",
		"WATCH namespace : 2", "WATCH resource : 1", "WATCH cluster : 1")
	wantLines(t, from("apiserver_request_body_size_bytes_count", "verb", "group"),
		"create example.com: 4", "update example.com: 1", "patch example.com: 4", "delete example.com: 2", "delete_collection example.com: 1")
	wantLines(t, from("apiserver_request_body_size_bytes_sum", "verb"),
		"create: 100", "update: 43", fmt.Sprintf("patch: %d", 2*len(applied)+44), "delete: 0", "delete_collection: 0")
	wantLines(t, from("apiserver_longrunning_requests", "verb", "scope"), "WATCH resource: 0", "WATCH namespace: 0", "WATCH cluster: 0")
	wantLines(t, from("apiserver_watch_list_duration_seconds_count", "scope", "version"), "cluster v1: 1")
	// The watches with deprecated paths and without options begin with the state, four times with one object. The last watch ends
	// the state with a bookmark.
	wantLines(t, from("apiserver_watch_events_total", "group", "version"), "example.com v1: 5")
	wantLines(t, from("apiserver_watch_events_sizes_count", "group", "version"), "example.com v1: 5")
	wantLines(t, from("apiserver_init_events_total", "group"), "example.com: 4")
	wantLines(t, func() []string {
		return only(scrape(t, srv), "field_validation_request_duration_seconds_count", "", "field_validation")
	},
		": 7", "Strict: 1", "Ignore: 1", "invalid: 1")
	wantLines(t, func() []string {
		return only(scrape(t, srv), "apiserver_request_total", "", "verb", "code", "subresource", "component")
	}) // no counted path was requested
}

func TestMetricsOfPaths(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	for _, r := range []metered{
		{"GET", "/healthz", "", "", 200},
		{"GET", "/livez?verbose", "", "", 200},
		{"HEAD", "/livez", "", "", 200},
		{"GET", "/readyz", "", "", 200},
		{"POST", "/livez", "", "", 200},
		{"FOO", "/healthz", "", "", 200},
		{"GET", "/livez/ping", "", "", 200}, // not counted
		{"GET", "/openapi/v2", "", "", 200}, // not counted
		{"GET", "/openapi/v3", "", "", 200},
		{"GET", "/openapi/v3/apis/example.com/v1", "", "", 200},
		{"GET", "/openapi/v3/apis/nonexistent/v1", "", "", 404},
	} {
		r.send(t, srv)
	}
	const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, accept := range []string{aggregated, aggregated + ",application/json", "application/json", strings.Replace(aggregated, "v2", "v9", 1)} {
		for _, path := range []string{"/apis", "/apis/", "/apis/example.com"} {
			roundTrip(t, srv.Client(), "GET", srv.URL+path, "", "Accept", accept)
		}
	}
	wantLines(t, func() []string {
		return only(scrape(t, srv), "apiserver_request_total", "", "verb", "scope", "code", "subresource", "component")
	},
		"GET  200 apis apiserver: 4",
		"GET  200 /healthz : 1", "other  200 /healthz : 1", "GET  200 /livez : 2", "POST  200 /livez : 1", "GET  200 /readyz : 1",
		"GET  200 openapi/v3 : 1", "GET  200 openapi/v3/ : 1", "GET  404 openapi/v3/ : 1")
	a := roundTrip(t, srv.Client(), "GET", srv.URL+"/metrics/slis", "")
	slis := samples(t, a.body)
	for sample, want := range map[string]float64{
		`kubernetes_healthcheck{name="ping",type="healthz"}`:                            1,
		`kubernetes_healthcheck{name="storage",type="livez"}`:                           1,
		`kubernetes_healthchecks_total{name="ping",status="success",type="livez"}`:      4,
		`kubernetes_healthchecks_total{name="ping",status="success",type="healthz"}`:    2,
		`kubernetes_healthchecks_total{name="shutdown",status="success",type="readyz"}`: 1,
	} {
		if got, ok := slis[sample]; !ok || got != want {
			t.Errorf("%s is %g (%t), want %g", sample, got, ok, want)
		}
	}
	if _, ok := slis[`kubernetes_healthcheck{name="shutdown",type="livez"}`]; ok {
		t.Error("a check of readiness alone was made for livez")
	}
	index := roundTrip(t, srv.Client(), "GET", srv.URL+"/", "").body
	if !strings.Contains(index, `"/metrics",`) || !strings.Contains(index, `"/metrics/slis",`) {
		t.Errorf("the index does not list /metrics: %s", index)
	}
}
