package e2e_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/keelson-dev/keelson/examples/e2e/harness"
	"k8s.io/client-go/rest"
)

// rawAnswer sends a request to hello as the administrator or without credentials, and returns the code and the body.
func rawAnswer(t *testing.T, hello *harness.Server, anonymous bool, method, path string) (int, string) {
	t.Helper()
	config := hello.Config()
	if anonymous {
		config = rest.AnonymousClientConfig(config)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return ask(t, client, method, config.Host+path)
}

// /metrics counts the requests of kubectl. Only the administrator may read it.
func TestMetricsSeenByKubectl(t *testing.T) {
	t.Parallel()
	hello := harness.Start(t, harness.Options{})
	create(t, hello, "alpha")
	hello.Kubectl("get", "widgets", "-o", "name").Want("widget.example.com/alpha\n", "")
	hello.Kubectl("get", "--raw", "/").Contains(`"/metrics"`)
	text := hello.Kubectl("get", "--raw", "/metrics").OK().Stdout
	for _, want := range []string{
		`apiserver_request_total{code="201",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="resource",subresource="",verb="POST",version="v1"} 1`,
		`apiserver_request_total{code="200",component="apiserver",dry_run="",group="example.com",resource="widgets",scope="namespace",subresource="",verb="LIST",version="v1"} 1`,
		`apiserver_resource_objects{group="example.com",resource="widgets"} 1`,
		`# TYPE apiserver_request_duration_seconds histogram`,
		`# TYPE go_goroutines gauge`,
		`# TYPE process_start_time_seconds gauge`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("/metrics does not have %s", want)
		}
	}
	if code, _ := rawAnswer(t, hello, true, "GET", "/metrics"); code != http.StatusForbidden {
		t.Errorf("nobody gets /metrics with %d, want 403", code)
	}
	if code, _ := rawAnswer(t, hello, false, "DELETE", "/metrics"); code != http.StatusMethodNotAllowed {
		t.Errorf("a DELETE of /metrics is answered %d, want 405", code)
	}
}

// hello logs its start, its stop and failed requests to stderr, each in one readable line. On stdout it prints only the ready
// line.
func TestHelloLogs(t *testing.T) {
	t.Parallel()
	hello := harness.Start(t, harness.Options{})
	create(t, hello, "alpha")
	hello.Kubectl("get", "widgets", "nonexistent").Fails("Error from server (NotFound): widgets.example.com \"nonexistent\" not found\n")
	if code, body := rawAnswer(t, hello, false, "GET", "/api?timeout=1ns"); code != http.StatusGatewayTimeout {
		t.Fatalf("a request without time is answered %d %s", code, body)
	}
	hello.Stop()
	want := []string{
		`\tinfo\tserving\t{"url": "https://127\.0\.0\.1:[0-9]+", "connections": 10000, "watches": 10000, "requestBytes": 536870912}`,
		`\terror\ta request failed\t{"error": "Timeout: request did not complete within the allotted timeout", "method": "GET", "uri": "/api\?timeout=1ns", "code": 504, "duration": [0-9.e-]+, "auditID": "[-0-9a-f]{36}", "userAgent": ".*"}`,
		`\tinfo\tstopping`,
		`\tinfo\tstopped`,
	}
	lines := strings.Split(strings.TrimSpace(hello.Stderr()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), hello.Stderr())
	}
	for i, line := range lines {
		if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S*` + want[i] + `$`).MatchString(line) {
			t.Errorf("line %d is %q, want %s", i, line, want[i])
		}
	}
	if out := hello.Stdout(); strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "ready https://") {
		t.Errorf("stdout is %q, want the ready line alone", out)
	}
}
