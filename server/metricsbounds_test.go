package server_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/keelson-dev/keelson/server/servertest"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Clients cannot add series: requests are counted with labels of a fixed set.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	c := srv.Client()
	hostile := func(i int) {
		x := fmt.Sprintf("x%d", i)
		for _, r := range []metered{
			{method: "GET", path: "/" + x}, {method: "GET", path: "/healthz/" + x}, {method: "GET", path: "/openapi/v3/" + x},
			{method: "GET", path: "/apis/" + x + "/v1/widgets"}, {method: "GET", path: "/apis/example.com/" + x + "/widgets"},
			{method: "GET", path: "/apis/example.com/v1/" + x}, {method: "GET", path: widgetsPath + "/" + x}, {method: "GET", path: widgetsPath + "/a/" + x},
			{method: "GET", path: "/apis/example.com/v1/namespaces/" + x + "/widgets"}, {method: strings.ToUpper(x), path: widgetsPath},
			{method: strings.ToUpper(x), path: "/healthz"}, {method: "DELETE", path: widgetsPath + "/a?dryRun=" + x},
			{method: "POST", path: widgetsPath + "?fieldValidation=" + x, body: "{}"}, {method: "GET", path: widgetsPath + "?watch=1&timeoutSeconds=1&resourceVersion=" + x},
			{method: "PATCH", path: widgetsPath + "/a", contentType: "application/" + x, body: x},
		} {
			var header []string
			if r.contentType != "" {
				header = []string{"Content-Type", r.contentType}
			}
			roundTrip(t, c, r.method, srv.URL+r.path, r.body, header...)
			roundTrip(t, srv.Anonymous(), r.method, srv.URL+r.path, r.body, append(header, "Authorization", "Bearer "+x)...)
		}
	}
	names := func() []string {
		return slices.DeleteFunc(slices.Sorted(maps.Keys(scrape(t, srv))), func(s string) bool { return strings.HasPrefix(s, "go_") || strings.HasPrefix(s, "process_") })
	}
	for i := range 3 {
		hostile(i)
	}
	before := names()
	for i := range 20 {
		hostile(100 + i)
	}
	if after := names(); len(after) != len(before) {
		t.Errorf("%d series have become %d: %q", len(before), len(after), slices.DeleteFunc(after, func(s string) bool { return slices.Contains(before, s) }))
	}
	for _, s := range names() {
		if strings.Contains(s, "x1") || strings.Contains(s, "X1") {
			t.Errorf("a series has what a client made up: %s", s)
		}
	}
}

// Scrapes, requests and changes of groups at the same time, for the race detector. At the end everything is counted.
func TestMetricsDuringTraffic(t *testing.T) {
	t.Parallel()
	srv := servertest.New(t, widgets())
	h := host(t, srv)
	const workers, rounds = 4, 30
	var traffic sync.WaitGroup
	for i := range workers {
		traffic.Go(func() {
			c := srv.Client()
			for j := range rounds {
				name := fmt.Sprintf("w%d-%d", i, j)
				for _, r := range []metered{{"POST", widgetsPath, "", `{"metadata":{"name":"` + name + `"}}`, 201}, {"GET", widgetsPath + "/" + name, "", "", 200}, {"GET", widgetsPath, "", "", 200}} {
					if code, body := call(t, c, r.method, srv.URL+r.path, r.body); code != r.code {
						t.Errorf("%s %s: %d %s", r.method, r.path, code, body)
					}
				}
			}
		})
	}
	traffic.Go(func() {
		for range rounds {
			if err := h.Serve(clockGroup()); err != nil {
				t.Error(err)
			}
			if err := h.Withdraw(schema.GroupResource{Group: "time.example.com", Resource: "clocks"}); err != nil {
				t.Error(err)
			}
		}
	})
	traffic.Go(func() {
		for range rounds {
			scrape(t, srv)
		}
	})
	traffic.Wait()
	wantLines(t, func() []string { return only(scrape(t, srv), "apiserver_request_total", "widgets", "verb", "code") },
		fmt.Sprintf("POST 201: %d", workers*rounds), fmt.Sprintf("GET 200: %d", workers*rounds), fmt.Sprintf("LIST 200: %d", workers*rounds))
}

// Servers in one process share no metric, and accept collectors of the program.
func TestMetricsAreTheServersOwn(t *testing.T) {
	t.Parallel()
	one, other := servertest.New(t, widgets()), servertest.New(t, widgets())
	own := prometheus.NewCounter(prometheus.CounterOpts{Name: "widgets_polished_total", Help: "Widgets that were polished."})
	if err := one.Metrics().Register(own); err != nil {
		t.Fatal(err)
	}
	own.Add(3)
	taken := prometheus.NewCounter(prometheus.CounterOpts{Name: "apiserver_request_total", Help: "Mine."})
	if err := host(t, one).Metrics().Register(taken); err == nil {
		t.Error("a name of the server's was taken by another")
	}
	metered{"GET", widgetsPath, "", "", 200}.send(t, one)
	wantLines(t, func() []string { return only(scrape(t, one), "apiserver_request_total", "widgets", "verb", "code") }, "LIST 200: 1")
	if got := scrape(t, one)["widgets_polished_total"]; got != 3 {
		t.Errorf("the program's own counter is %g", got)
	}
	all := scrape(t, other)
	if got := only(all, "apiserver_request_total", "widgets", "verb", "code"); got != nil {
		t.Errorf("another server was told: %q", got)
	}
	if _, ok := all["widgets_polished_total"]; ok {
		t.Error("another server shows the program's counter")
	}
}
