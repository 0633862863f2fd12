package metrics_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/keelson-dev/keelson/server/metrics"
	"github.com/prometheus/client_golang/prometheus"
)

// series returns a line for each series of a registry: its name, labels and, of a gauge that has it, the value 1.
func series(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+strings.TrimPrefix(l.GetValue(), "sha256:"))
			}
			line := f.GetName() + " " + strings.Join(labels, " ")
			if h := m.GetHistogram(); h != nil {
				line += fmt.Sprint(" ", h.GetSampleCount())
				for _, b := range h.GetBucket() {
					line += fmt.Sprint(" ", b.GetUpperBound())
				}
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// The names, labels and bounds are those of a kube-apiserver 1.37.1, without apiserver_id_hash.
func TestIssuers(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := metrics.NewIssuers(registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.NewIssuers(registry); err == nil {
		t.Error("the metrics are registered twice")
	}
	m.Authenticated("https://a", nil, 2*time.Millisecond)
	m.Authenticated("https://a", errors.New("no"), time.Minute)
	m.Fetched("https://a", "sha256:1", nil)
	m.Fetched("https://a", "sha256:2", nil)
	m.Fetched("https://a", "", errors.New("no"))
	m.Configured([]byte("before"))
	m.Configured([]byte("text"))
	const (
		issuer = "jwt_issuer_hash=44f833239a3830c06cd05a0469cc989dd02c561f2fd1be7c5379b74ccfa78ad6"
		bounds = "0.001 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1 2.5 5 10"
		prefix = "apiserver_authentication_jwt_authenticator_"
	)
	want := []string{
		"apiserver_authentication_config_controller_last_config_info hash=982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1",
		prefix + "jwks_fetch_last_key_set_info hash=2 " + issuer,
		prefix + "jwks_fetch_last_timestamp_seconds " + issuer + " result=failure",
		prefix + "jwks_fetch_last_timestamp_seconds " + issuer + " result=success",
		prefix + "latency_seconds " + issuer + " result=failure 1 " + bounds,
		prefix + "latency_seconds " + issuer + " result=success 1 " + bounds,
	}
	if got := series(t, registry); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	m.Close()
	if got := series(t, registry); len(got) > 0 {
		t.Errorf("%q are left", got)
	}
}
