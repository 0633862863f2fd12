package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/audit"
	"github.com/keelson-dev/keelson/server/builtin"
	"github.com/keelson-dev/keelson/server/builtin/accounts"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// own are the metrics that kube-apiserver does not have, as in testdata/metrics/kube-apiserver.txt. The two of storage differ
// only in their names from kube-apiserver's etcd_request_duration_seconds and etcd_request_errors_total.
func own() []string {
	return []string{
		"keelson_budget_held gauge {what}",
		"keelson_budget_limit gauge {of,what}",
		"keelson_budget_rejected_total counter {what}",
		"keelson_cache_bytes gauge {group,resource}",
		"keelson_cache_lag_revisions gauge {group,resource}",
		"keelson_cache_log_bytes gauge {group,resource}",
		"keelson_cache_log_changes gauge {group,resource}",
		"keelson_cache_watchers gauge {group,resource}",
		"keelson_cache_window_seconds gauge {group,resource}",
		"keelson_connections_displaced_total counter {}",
		"keelson_form_cache_bytes gauge {}",
		"keelson_form_cache_evictions_total counter {}",
		"keelson_form_cache_forms gauge {}",
		"keelson_form_cache_hits_total counter {}",
		"keelson_form_cache_max_bytes gauge {}",
		"keelson_form_cache_misses_total counter {}",
		"keelson_storage_request_duration_seconds histogram {group,operation,resource} 0.005 0.025 0.05 0.1 0.2 0.4 0.6 0.8 1 1.25 1.5 2 3 4 5 6 8 10 15 20 30 45 60 +Inf",
	}
}

// rare are metrics that this test does not produce: that would need a client that is too slow, a store that is restored or fails,
// a handler that gives up, or a file that changes. Other tests produce them.
func rare() []string {
	return []string{
		"apiserver_request_aborts_total", "apiserver_terminated_watchers_total",
		"apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds", "apiserver_authentication_config_controller_automatic_reloads_total",
		"keelson_cache_voids_total", "keelson_storage_request_errors_total",
	}
}

// The names, types, labels and buckets of all metrics are those of kube-apiserver.
func TestMetricsHaveTheNamesOfKubernetes(t *testing.T) {
	t.Parallel()
	group := ropes("v1", server.KindOptions[*Rope]{})
	srv := servertest.New(t, widgets(), group, builtin.New(builtin.Options{}), accounts.New(accounts.Options{NoControllers: true}))
	if err := host(t, srv).Audit(audit.Backend{
		Name: "full", Policy: &audit.Policy{Rules: []audit.Rule{{Level: audit.Metadata}}},
		Sink: audit.SinkFunc(func(context.Context, ...*audit.Event) error { return errors.New("disk full") }),
	}); err != nil {
		t.Fatal(err)
	}
	issuers, err := metrics.NewIssuers(host(t, srv).Metrics())
	if err != nil {
		t.Fatal(err)
	}
	issuers.Authenticated("https://issuer.example", nil, time.Millisecond)
	issuers.Fetched("https://issuer.example", "sha256:0", nil)
	issuers.Configured([]byte("x"))
	for _, r := range widgetRequests() {
		r.send(t, srv)
	}
	for _, path := range []string{"/readyz", "/apis/sea.example.com/v1alpha1/namespaces/default/ropes", widgetsPath + "?labelSelector=x"} {
		metered{"GET", path, "", "", 200}.send(t, srv)
	}
	metered{"GET", widgetsPath + "?timeout=1ns", "", "", 504}.send(t, srv)
	// A list waits for the cache only by chance.
	text := everything(t, srv)
	want := slices.DeleteFunc(strings.Split(readFile(t, "testdata/metrics/kube-apiserver.txt"), "\n"), func(l string) bool { return l == "" || l[0] == '#' })
	want = append(want, own()...)
	got := describe(t, text)
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("kube-apiserver does not have: %s", line)
		}
	}
	for _, line := range want {
		name, _, _ := strings.Cut(line, " ")
		if !slices.Contains(got, line) && !slices.Contains(rare(), name) && name != "apiserver_watch_cache_read_wait_seconds" {
			t.Errorf("the server does not show: %s", line)
		}
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// everything returns /metrics and /metrics/slis.
func everything(t *testing.T, srv *servertest.Server) string {
	t.Helper()
	return roundTrip(t, srv.Client(), "GET", srv.URL+"/metrics", "").body + roundTrip(t, srv.Client(), "GET", srv.URL+"/metrics/slis", "").body
}

// describe returns a text in Prometheus' format in the form of kube-apiserver.txt, without the metrics of Go and of the process.
func describe(t *testing.T, text string) []string {
	t.Helper()
	types, labels, buckets := map[string]string{}, map[string]string{}, map[string][]string{}
	pair := regexp.MustCompile(`(\w+)="([^"]*)"`)
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(strings.TrimSpace(rest), " ")
			types[name] = kind
			continue
		}
		if line[0] == '#' {
			continue
		}
		name := line[:strings.IndexAny(line, "{ ")]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); types[base] == "histogram" {
				name = base
			}
		}
		var names []string
		for _, m := range pair.FindAllStringSubmatch(line, -1) {
			if m[1] != "le" {
				names = append(names, m[1])
			} else if !slices.Contains(buckets[name], m[2]) {
				buckets[name] = append(buckets[name], m[2])
			}
		}
		slices.Sort(names)
		shown := "{" + strings.Join(names, ",") + "}"
		if was, ok := labels[name]; ok && was != shown {
			t.Errorf("%s has labels %s and %s", name, was, shown)
		}
		labels[name] = shown
	}
	var out []string
	for name, shown := range labels {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", name, types[name], shown, strings.Join(buckets[name], " "))))
	}
	return out
}

// promlint finds only problems in names that are kube-apiserver's.
func TestMetricsPassPromlint(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	for _, r := range widgetRequests() {
		r.send(t, srv)
	}
	metered{"GET", "/readyz", "", "", 200}.send(t, srv)
	known := map[string]string{
		"authenticated_user_requests": `counter metrics should have "_total" suffix`,
		"authentication_attempts":     `counter metrics should have "_total" suffix`,
	}
	problems, err := promlint.New(strings.NewReader(everything(t, srv))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if known[p.Metric] != p.Text {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
		delete(known, p.Metric)
	}
	for name := range known {
		t.Errorf("%s is no problem any more", name)
	}
}

// A request for OpenMetrics gets that format, and one that accepts gzip gets compressed text.
func TestMetricsFormats(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t)
	for _, tc := range []struct{ accept, mediaType, end string }{
		{"", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores", "\n"},
		{"application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores", "\n# EOF\n"},
	} {
		a := roundTrip(t, srv.Client(), "GET", srv.URL+"/metrics", "", "Accept", tc.accept)
		if a.code != 200 || a.header.Get("Content-Type") != tc.mediaType || !strings.HasSuffix(a.body, tc.end) {
			t.Errorf("Accept %q: %d %q", tc.accept, a.code, a.header.Get("Content-Type"))
		}
		packed := roundTrip(t, srv.Client(), "GET", srv.URL+"/metrics", "", "Accept", tc.accept, "Accept-Encoding", "gzip")
		if packed.header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(packed.body, "\x1f\x8b") || len(packed.body) > len(a.body)/2 {
			t.Errorf("Accept %q with gzip: %q, %d bytes for %d", tc.accept, packed.header.Get("Content-Encoding"), len(packed.body), len(a.body))
		}
	}
	head := roundTrip(t, srv.Client(), "HEAD", srv.URL+"/metrics", "")
	if head.code != 200 || head.body != "" {
		t.Errorf("HEAD is answered %d %q", head.code, head.body)
	}
	for _, method := range []string{"POST", "PUT", "DELETE"} {
		if a := roundTrip(t, srv.Client(), method, srv.URL+"/metrics", ""); a.code != 405 || a.header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s is answered %d, Allow %q", method, a.code, a.header.Get("Allow"))
		}
	}
}
