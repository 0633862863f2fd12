package server_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/runtime"
	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/servertest"
)

func TestMetricsOfAccess(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	scrape(t, srv)
	before := scrape(t, srv)
	for _, c := range []struct {
		token string
		path  string
		code  int
	}{
		{"", "/metrics", 403}, {"", "/metrics/slis", 403}, {"", widgetsPath, 403}, {"", "/healthz", 200},
		{"wrong", "/metrics", 401}, {"wrong", widgetsPath, 401},
		{srv.Token, widgetsPath, 200},
	} {
		var header []string
		if c.token != "" {
			header = []string{"Authorization", "Bearer " + c.token}
		}
		if a := roundTrip(t, srv.Anonymous(), "GET", srv.URL+c.path, "", header...); a.code != c.code {
			t.Errorf("%s with token %q: %d, want %d", c.path, c.token, a.code, c.code)
		}
	}
	after := scrape(t, srv)
	for sample, want := range map[string]float64{
		`authentication_attempts{result="success"}`:                 5 + 1, // plus the scrape
		`authentication_attempts{result="error"}`:                   2,
		`authentication_duration_seconds_count{result="success"}`:   6,
		`authenticated_user_requests{username="other"}`:             4,
		`authenticated_user_requests{username="admin"}`:             1 + 1,
		`authorization_attempts_total{result="allowed"}`:            2 + 1,
		`authorization_attempts_total{result="no-opinion"}`:         3,
		`authorization_duration_seconds_count{result="no-opinion"}`: 3,
	} {
		if got := after[sample] - before[sample]; got != want {
			t.Errorf("%s grew by %g, want %g", sample, got, want)
		}
	}
	if got := only(after, "apiserver_request_total", "widgets", "code"); !slices.Equal(got, []string{"200: 1"}) {
		t.Errorf("who is refused before the handler was counted: %q", got)
	}
}

func TestMetricsOfRefusals(t *testing.T) {
	t.Parallel()
	srv, s := startSwells(t, server.Options{Limits: server.Limits{MaxReadsInFlight: 1, RequestTimeout: time.Second}})
	done := make(chan answer, 1)
	go func() { done <- answerTo(srv.Anonymous(), srv.URL+swellsPath+"slack") }()
	<-s.entered
	all := scrape(t, srv)
	if got := all[`apiserver_current_inflight_requests{request_kind="readOnly"}`]; got != 1 {
		t.Errorf("%g reads in flight, want 1", got)
	}
	if got := all[`apiserver_current_inflight_requests{request_kind="mutating"}`]; got != 0 {
		t.Errorf("%g writes in flight, want 0", got)
	}
	for _, path := range []string{swellsPath + "neap", "/apis/sea.example.com/v1/nonexistent/x", "/some/path"} {
		if a := answerTo(srv.Anonymous(), srv.URL+path); a.code != 429 {
			t.Errorf("%s: %d, want 429", path, a.code)
		}
	}
	if a := <-done; a.code != 504 {
		t.Errorf("the slack swell: %d, want 504", a.code)
	}
	if a := answerTo(srv.Client(), srv.URL+swellsPath+"rip"); a.code != 500 {
		t.Errorf("a panic: %d, want 500", a.code)
	}
	terminations := func(resource string) func() []string {
		return func() []string {
			return only(scrape(t, srv), "apiserver_request_terminations_total", resource, "verb", "scope", "code", "component", "subresource")
		}
	}
	wantLines(t, terminations("swells"), "GET resource 429 apiserver : 1", "GET resource 504 apiserver : 1")
	wantLines(t, terminations(""), "GET resource 429 apiserver : 1", "GET  429 apiserver : 1") // a resource that is not served, and a path
	total := func(resource string) func() []string {
		return func() []string {
			return only(scrape(t, srv), "apiserver_request_total", resource, "verb", "scope", "code", "group", "component")
		}
	}
	// The request that timed out has not ended: its handler ignores the context.
	wantLines(t, total("swells"), "GET resource 429 sea.example.com apiserver: 1", "GET resource 500 sea.example.com apiserver: 1")
	wantLines(t, total(""), "GET resource 429  apiserver: 1", "GET  429  apiserver: 1")
	close(s.release)
	wantLines(t, total("swells"), "GET resource 429 sea.example.com apiserver: 1", "GET resource 500 sea.example.com apiserver: 1",
		"GET resource 200 sea.example.com apiserver: 1")
}

// answerTo is roundTrip for goroutines. The code of the answer is 0 if there was none.
func answerTo(c *http.Client, url string) answer {
	resp, err := c.Get(url)
	if err != nil {
		return answer{body: err.Error()}
	}
	_ = resp.Body.Close()
	return answer{code: resp.StatusCode, header: resp.Header}
}

func TestMetricsOfDeprecatedVersions(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, ropes("v1", server.KindOptions[*Rope]{}))
	asked := func() []string {
		return only(scrape(t, srv), "apiserver_requested_deprecated_apis", "ropes", "group", "version", "removed_release")
	}
	metered{"GET", "/apis/sea.example.com/v1/namespaces/default/ropes", "", "", 200}.send(t, srv)
	wantLines(t, asked)
	metered{"GET", "/apis/sea.example.com/v1alpha1/namespaces/default/ropes", "", "", 200}.send(t, srv)
	wantLines(t, asked, "sea.example.com v1alpha1 : 1")
}

func TestMetricsOfStorage(t *testing.T) {
	t.Parallel()
	group := widgets()
	group.Versions[0].Resources = append(group.Versions[0].Resources, server.Kind("Sprocket", server.KindOptions[*Sprocket]{NoCache: true, NoStatus: true, ClusterScoped: true}))
	srv := servertest.New(t, group)
	const sprockets = "/apis/example.com/v1/sprockets"
	for _, r := range []metered{
		{"POST", widgetsPath, "", `{"metadata":{"name":"a","labels":{"x":"y"}}}`, 201},
		{"POST", widgetsPath, "", `{"metadata":{"name":"b"}}`, 201},
		{"POST", sprockets, "", `{"metadata":{"name":"s","labels":{"x":"y"}}}`, 201},
		{"POST", sprockets, "", `{"metadata":{"name":"t"}}`, 201},
	} {
		r.send(t, srv)
	}
	objects := func() []string {
		all := scrape(t, srv)
		return slices.Concat(only(all, "apiserver_resource_objects", "sprockets", "resource", "group"),
			only(all, "apiserver_resource_objects", "widgets", "resource", "group"))
	}
	wantLines(t, objects, "sprockets example.com: 2", "widgets example.com: 2") // the cache is not in use yet
	if got := only(scrape(t, srv), "keelson_cache_watchers", "widgets"); got != nil {
		t.Errorf("a scrape has begun to fill a cache: %q", got)
	}
	for _, path := range []string{widgetsPath, sprockets} {
		for _, query := range []string{"", "?labelSelector=x%3Dy", "?limit=1"} {
			metered{"GET", path + query, "", "", 200}.send(t, srv)
		}
		metered{"PUT", path + "/nope", "", `{"metadata":{"name":"nope","resourceVersion":"1"}}`, 404}.send(t, srv)
	}
	metered{"DELETE", widgetsPath + "/b", "", "", 200}.send(t, srv)
	wantLines(t, objects, "sprockets example.com: 2", "widgets example.com: 1")
	from := func(name, resource string, labels ...string) []string {
		return only(scrape(t, srv), name, resource, labels...)
	}
	for _, tc := range []struct {
		got  []string
		want []string
	}{
		{from("apiserver_storage_list_total", "widgets", "storage", "index"), []string{"watchcache : 3"}},
		{from("apiserver_storage_list_returned_objects_total", "widgets", "storage"), []string{"watchcache: 4"}},
		{from("apiserver_storage_list_fetched_objects_total", "widgets", "storage", "index"), []string{"watchcache : 5"}},
		{from("apiserver_storage_list_evaluated_objects_total", "widgets", "storage"), []string{"watchcache: 2"}},
		{from("apiserver_storage_list_total", "sprockets", "storage", "index"), []string{"backend : 3"}},
		{from("apiserver_storage_list_returned_objects_total", "sprockets", "storage"), []string{"backend: 4"}},
		{from("apiserver_storage_list_fetched_objects_total", "sprockets", "storage", "index"), []string{"backend : 5"}},
		{from("apiserver_storage_list_evaluated_objects_total", "sprockets", "storage"), []string{"backend: 2"}},
		{from("apiserver_watch_cache_initializations_total", "widgets", "group"), []string{"example.com: 1"}},
		{from("apiserver_watch_cache_initialization_duration_seconds_count", "widgets", "group"), []string{"example.com: 1"}},
		{from("apiserver_watch_cache_consistent_read_total", "widgets", "success", "fallback"), []string{"true false: 3"}},
		{from("apiserver_watch_cache_events_received_total", "widgets", "group"), []string{"example.com: 1"}},
		{from("apiserver_storage_events_received_total", "widgets", "group"), []string{"example.com: 1"}},
		{from("apiserver_watch_cache_initializations_total", "sprockets"), nil},
		{from("keelson_storage_request_errors_total", "widgets"), nil},
		{from("keelson_cache_watchers", "widgets", "group"), []string{"example.com: 0"}},
		{from("keelson_cache_log_changes", "widgets", "group"), []string{"example.com: 3"}},
	} {
		if !slices.Equal(tc.got, tc.want) {
			t.Errorf("%q, want %q", tc.got, tc.want)
		}
	}
	for _, want := range []string{"create: 2", "delete: 1"} {
		if got := from("keelson_storage_request_duration_seconds_count", "widgets", "operation"); !slices.Contains(got, want) {
			t.Errorf("storage of widgets: %q, want %q", got, want)
		}
	}
	got := from("keelson_storage_request_duration_seconds_count", "sprockets", "operation")
	lists := func(line string) bool { // equal requests share a read
		return slices.Contains([]string{"list: 1", "list: 2", "list: 3"}, line)
	}
	if !slices.Contains(got, "create: 2") || !slices.ContainsFunc(got, lists) {
		t.Errorf("storage of sprockets: %q, want 2 creates, and 1 to 3 lists", got)
	}
}

// Sprocket is a kind without a cache.
type Sprocket = runtime.Resource[SprocketSpec, struct{}]

// SprocketSpec is the spec of a Sprocket.
type SprocketSpec struct {
	Teeth int32 `json:"teeth,omitempty"`
}
