package metrics_test

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/keelson-dev/keelson/server"
	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// A registry serves a counter of the program beside the metrics of the library.
func ExampleRegistry_Registerer() {
	launched := prometheus.NewCounter(prometheus.CounterOpts{Name: "boats_launched_total", Help: "Boats launched."})
	registry := metrics.New(metrics.Options{})
	if err := registry.Registerer().Register(launched); err != nil {
		fmt.Println(err)
		return
	}
	launched.Add(2)

	w := httptest.NewRecorder()
	registry.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	lines := bufio.NewScanner(w.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "boats_") {
			fmt.Println(lines.Text())
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// boats_launched_total 2
}

// A server has a registry of its own, and Server.Metrics takes the counters of a program.
func Example() {
	srv, err := server.New(server.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = srv.Close() }()
	launched := prometheus.NewCounter(prometheus.CounterOpts{Name: "boats_launched_total", Help: "Boats launched."})
	if err := srv.Metrics().Register(launched); err != nil {
		fmt.Println(err)
		return
	}
	launched.Inc()

	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+srv.Credentials().Token)
	w := httptest.NewRecorder()
	srv.Handler().ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "\nboats_launched_total 1\n"))
	// Output:
	// 200 true
}
